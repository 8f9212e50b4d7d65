"""The base of every filter and effect: a module that maps a signal to a signal and joins with `|` and `+`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from importlib import import_module
from typing import Any, ClassVar

from torch import Tensor, nn

from torchfx.lti import LTI

__all__ = ["Processor"]

Join = Callable[[Any, Any], nn.Module]
_joins: dict[str, Join] = {}


def register_join(operator: str, join: Join) -> None:
    """Say what `|` or `+` between modules builds; the containers register themselves, so imports go one way."""
    _joins[operator] = join


def _join(operator: str, left: nn.Module, right: nn.Module) -> nn.Module:
    """Build what an operator between two modules means."""
    if operator not in _joins:
        import_module("torchfx.chain")  # whoever imported a filter alone has not met the containers yet
    return _joins[operator](left, right)


def _is_declared(cls: type) -> bool:
    """Return whether no class overrides `forward` below the one whose declaration it inherits."""
    for base in cls.__mro__:
        own = vars(base)
        if "lti" in own or "branches" in own:
            return True
        if "forward" in own:
            return own.get("forward_is_declared") is True
    return False


class Processor(nn.Module):
    """A signal processor: `module(x)` maps a tensor (..., time) to a tensor (..., time) and keeps nothing of it.

    `a | b` runs one after the other, `a + b` side by side and adds the results.
    """

    fs: float | None = None
    """Sample rate (Hz) the module was built for; None follows the signal's, or does not care."""

    forward_is_declared: ClassVar[bool] = True
    """Whether `lti`, `branches` or being a chain says all that `forward` does: a plan then does without calling it.

    Found anew for every subclass: one that overrides `forward` alone has something else in mind.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "forward_is_declared" not in vars(cls):
            cls.forward_is_declared = _is_declared(cls)

    def lti(self, rate: float | None) -> LTI | None:
        """Return the linear time-invariant system this module is, or None if it is none.

        Args:
            rate: the signal's sample rate in Hz, or None where it is not known.
        """
        return None

    def lti_key(self) -> Hashable | None:
        """Return a value that changes whenever `lti` would; None means: ask again every time."""
        return ()

    def branches(self) -> list[nn.Module]:
        """Return the modules that run side by side and are added, which is what a `Parallel` is; none otherwise."""
        return []

    def __or__(self, other: object) -> nn.Module:
        """Join: this module, then `other`."""
        return _join("|", self, other) if isinstance(other, nn.Module) else NotImplemented

    def __ror__(self, other: object) -> nn.Module:
        """Join: `other`, a plain `nn.Module`, then this one."""
        return _join("|", other, self) if isinstance(other, nn.Module) else NotImplemented

    def __add__(self, other: object) -> nn.Module:
        """Join side by side: the outputs are added."""
        return _join("+", self, other) if isinstance(other, nn.Module) else NotImplemented

    def __radd__(self, other: object) -> nn.Module:
        """Join side by side with a plain `nn.Module` on the left."""
        return _join("+", other, self) if isinstance(other, nn.Module) else NotImplemented

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Map a signal (..., time) to a signal (..., time)."""
