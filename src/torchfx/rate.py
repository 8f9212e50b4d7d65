"""The ambient sample rate: what a filter built without `fs` uses while a wave flows through it.

It is a context variable, so threads and asynchronous tasks each see their own; nothing is ever written to a module.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType

from torchfx.checks import number_text
from torchfx.checks import sample_rate as checked_rate
from torchfx.errors import SampleRateError

__all__ = ["ambient", "ambient_rate", "resolve_rate", "sample_rate"]

ambient: ContextVar[float | None] = ContextVar("torchfx_sample_rate", default=None)


def ambient_rate() -> float | None:
    """Return the sample rate (Hz) of the wave being processed, or None outside of one."""
    return ambient.get()


class sample_rate:  # noqa: N801  (used like a function)
    """Let modules built without `fs` use this rate (Hz) on plain tensors.

    `wave | module` does this by itself.

    Examples:
        >>> import torch, torchfx as fx
        >>> lowpass = fx.filter.LoButterworth(1000)
        >>> with fx.sample_rate(48_000):
        ...     y = lowpass(torch.zeros(2, 64))
        >>> y.shape
        torch.Size([2, 64])
    """

    def __init__(self, fs: float) -> None:
        """Check the rate."""
        self.fs = checked_rate(fs)
        self._tokens: list[Token[float | None]] = []

    def __enter__(self) -> None:
        """Set the rate."""
        self._tokens.append(ambient.set(self.fs))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Set the rate that was there before."""
        ambient.reset(self._tokens.pop())


def resolve_rate(own: float | None, rate: float | None, who: str) -> float:
    """Return the rate (Hz) a module works at: its own, or the signal's; raise if they differ or neither is known."""
    if own is None:
        if rate is None:
            raise SampleRateError(
                f"{who} has no sample rate: build it with fs=..., pipe a Wave into it, "
                f"or call it inside `with torchfx.sample_rate(fs):`"
            )
        return rate
    if rate is not None and rate != own:
        raise SampleRateError(
            f"{who} was built for fs={number_text(own)} Hz but the signal has fs={number_text(rate)} Hz; "
            f"resample the signal, or build the filter without fs to follow it"
        )
    return own
