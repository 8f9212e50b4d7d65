"""The ambient sample rate, which filters without `fs` use while a wave is processed.

It is a context variable, so each thread and asynchronous task has a separate value, and modules are not modified.
"""

from __future__ import annotations

import math
from contextvars import ContextVar, Token
from types import TracebackType
from weakref import WeakKeyDictionary

import torch
from torch import nn

from torchfx.checks import number_text
from torchfx.checks import sample_rate as checked_rate
from torchfx.errors import SampleRateError

__all__ = [
    "ambient",
    "ambient_rate",
    "followed_rate",
    "rate_ratio",
    "resampled_length",
    "resolve_rate",
    "sample_rate",
]

ambient: ContextVar[float | None] = ContextVar("torchfx_sample_rate", default=None)


def ambient_rate() -> float | None:
    """Return the sample rate (Hz) of the wave being processed, or None."""
    return ambient.get()


class sample_rate:  # noqa: N801  (used like a function)
    """Context manager: modules without `fs` use this rate (Hz) for plain tensors.

    `wave | module` sets the rate automatically.

    Examples:
        >>> import torch, torchfx as fx
        >>> lowpass = fx.filter.LoButterworth(1000)
        >>> with fx.sample_rate(48_000):
        ...     y = lowpass(torch.zeros(2, 64))
        >>> y.shape
        torch.Size([2, 64])
    """

    def __init__(self, fs: float | str) -> None:
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


def rate_ratio(before: float | None, after: float | None) -> tuple[int, int]:
    """Return after/before in lowest terms; (1, 1) where one is not known."""
    if before == after or before is None or after is None:
        return 1, 1
    (above, below), (other_above, other_below) = after.as_integer_ratio(), before.as_integer_ratio()
    up, down = above * other_below, below * other_above
    common = math.gcd(up, down)
    return up // common, down // common


def resampled_length(count: int, up: int, down: int) -> int:
    """Return how many samples `count` become at up/down times their rate: ceil(count up / down)."""
    return -(-count * up // down)


_followed: WeakKeyDictionary[nn.Module, set[float]] = WeakKeyDictionary()


def followed_rate(module: nn.Module, rate: float | None) -> float | None:
    """Return the rate (Hz) of a module that follows the signal's: in a backward pass, the one it was called at.

    `torch.utils.checkpoint` calls modules again there, outside of the `sample_rate` that their first call was in.
    """
    if rate is not None:
        _followed.setdefault(module, set()).add(rate)
    elif torch._C._current_graph_task_id() != -1:
        rates = _followed.get(module, set())
        if len(rates) > 1:
            several = " and ".join(number_text(each) for each in sorted(rates))
            raise SampleRateError(
                f"{type(module).__name__} is called again in a backward pass and was called at {several} Hz before; "
                f"build it with fs=..."
            )
        return next(iter(rates), None)
    return rate


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
