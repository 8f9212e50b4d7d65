"""Where a signal is not silent."""

from __future__ import annotations

from torch import Tensor

from torchfx import intervals
from torchfx.checks import whole_number
from torchfx.errors import ArgumentError
from torchfx.intervals import Interval
from torchfx.parameters import decibels, named
from torchfx.tensors import check_signal

__all__ = ["loud_intervals"]

SILENCE_DB = named("silence_db", decibels())


def loud_intervals(x: Tensor, silence_db: float = -60.0, least: int = 1, keep: int = 0) -> list[Interval]:
    """Return where a signal is not silent: the parts that `torchfx split --silence` cuts a file into.

    Args:
        x: float32 or float64, (time,) or (channels, time).
        silence_db: the loudest silence, in dB below full scale (1.0): a part is silent where no channel is louder.
        least: how many silent samples end a part, >= 1; shorter silence belongs to it.
        keep: how many silent samples on both sides belong to a part, >= 0, at most half of those between two.

    Returns:
        Pairs (start, end) of samples, in order; none where all is silent.

    Raises:
        ArgumentError: an argument out of range, or more dimensions.

    Examples:
        >>> import torch
        >>> x = torch.zeros(2, 1000)
        >>> x[0, 100:200], x[1, 210:300], x[1, 600:700] = 0.5, 0.5, 0.5
        >>> loud_intervals(x, -40.0, least=50, keep=10)
        [(90, 310), (590, 710)]
    """
    x = check_signal(x)
    if x.dim() > 2:
        raise ArgumentError(f"x must have the shape (time,) or (channels, time), got {tuple(x.shape)}")
    threshold = 10 ** (float(SILENCE_DB.check(silence_db, None)) / 20)
    least, keep = whole_number("least", least, 1), whole_number("keep", keep, 0)
    samples = x.detach().cpu().numpy()
    found = intervals.loud([samples if x.dim() == 2 else samples[None]], threshold, least)
    return intervals.widened(found, keep, x.shape[-1])
