"""A reservation about a number, as data: programs read the code, people the message and the advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass

__all__ = ["TimingWarning"]


@dataclass(frozen=True)
class TimingWarning:
    """Why a measurement may mislead, and what to do about it.

    `code` is one of `nothing-ran`, `wide-spread`, `still-falling`, `still-rising`, `few-runs`, `busy-machine`.

    >>> print(TimingWarning("few-runs", "only 3 runs fitted into 10 s", "raise max_time_s"))
    few-runs: only 3 runs fitted into 10 s; raise max_time_s
    """

    code: str
    message: str
    advice: str

    def __str__(self) -> str:
        """Return code, message and advice in one line."""
        return f"{self.code}: {self.message}; {self.advice}"

    def to_dict(self) -> dict[str, str]:
        """Return the fields by name."""
        return asdict(self)
