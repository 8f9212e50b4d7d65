"""Changes of a program from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchwhy.tuning.records import Facts

__all__ = ["Change", "ChangeKind", "by_environment", "changes"]


@dataclass(frozen=True)
class Change:
    """A change that can be tried.

    Attributes:
        name: in a few words, such as "2 threads".
        permanent: lines to write into the program or the shell to keep it.
        environment: variables that the program is started with.
        apply: changes the process when PyTorch has been imported; it can be pickled.
        inexact: how it changes the arithmetic; "" where results may differ by the order of sums at most.
        kind: whose alternatives it is one of.
        answers: slugs of the rules whose findings it may answer.
        stake: the largest share of the time that such a finding puts at stake.
    """

    name: str
    permanent: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    apply: Callable[[Any], None] | None = None
    inexact: str = ""
    kind: str = ""
    answers: tuple[str, ...] = ()
    stake: float = 0.0


@dataclass(frozen=True)
class ChangeKind:
    """A function that yields the alternatives of one kind that fit a program, and the rules that they answer."""

    function: Callable[[Facts], Iterator[Change]]
    answers: tuple[str, ...]
    asked: bool = False

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__


def changes(*answers: str, asked: bool = False) -> Callable[[Callable[[Facts], Iterator[Change]]], ChangeKind]:
    """Make a function of `Facts` a kind of change.

    Args:
        *answers: slugs of rules. Where one of them has a finding, the change is tried the earlier, the more time that
            finding puts at stake.
        asked: whether it is tried only then.
    """
    return lambda function: ChangeKind(function, answers, asked)


def by_environment(name: str, variables: Mapping[str, str]) -> Change:
    """Return a change that environment variables make."""
    line = " ".join(f"{variable}={value}" for variable, value in variables.items())
    return Change(name, (f"{line} in the environment",), variables)
