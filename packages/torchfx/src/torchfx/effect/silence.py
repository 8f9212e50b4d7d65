"""Add or remove silence at both ends. Both effects change the length of the signal."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from torchfx.core.processor import Processor
from torchfx.parameters import duration, duration_samples, number, sample_rate
from torchfx.pieces import PIECE, Pieces
from torchfx.rate import ambient_rate

__all__ = ["Pad", "TrimSilence"]


class Pad(Processor):
    """Add silence before and after a signal.

    Examples:
        >>> import torch
        >>> Pad("1 samples", "2 samples", fs=48_000)(torch.tensor([1.0, 2.0]))
        tensor([0., 1., 2., 0., 0.])
    """

    before: float | str = duration(default=0.0, plausible=60.0, doc="silence before the signal")
    after: float | str = duration(default=1.0, plausible=60.0, doc="silence after the signal")
    fs: float | None = sample_rate(default=None)

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return "needs the whole signal, since silence follows its end"

    def forward(self, x: Tensor) -> Tensor:
        """Return the longer signal."""
        return torch.nn.functional.pad(x, self._around())

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the longer signal."""
        before, after = self._around()
        for start in range(-before, x.time + after, PIECE):
            yield x.read(start, min(x.time + after, start + PIECE))

    def _around(self) -> list[int]:
        """Return how many samples of silence come before and after."""
        rate = self.rate_for(None if torch.compiler.is_dynamo_compiling() else ambient_rate())
        assert rate is not None
        return [duration_samples(each, rate) for each in (self.before, self.after)]


class TrimSilence(Processor):
    """Remove samples below a threshold at the beginning and the end of a signal.

    The result begins with the first sample, in any channel or example, whose magnitude exceeds the threshold, and ends
    with the last. The threshold is in dB relative to full scale (1.0). If the whole signal is silent, one sample
    remains, since empty signals are not allowed.

    Examples:
        >>> import torch
        >>> TrimSilence(-40.0)(torch.tensor([0.0, 0.001, 0.5, 0.0, -0.5, 0.001]))
        tensor([ 0.5000,  0.0000, -0.5000])
    """

    threshold_db: float = number(
        default=-60.0, high=0.0, unit="dB", doc="levels up to this one count as silence", learnable=False
    )

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return "needs the whole signal, whose last loud sample ends the result"

    def forward(self, x: Tensor) -> Tensor:
        """Return the shorter signal."""
        loud = self._loud(x)
        if not len(loud):
            return x[..., :1]
        return x[..., int(loud[0]) : int(loud[-1]) + 1]

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the shorter signal; the search for its ends starts from both sides."""
        first, last = 0, 0
        for start in range(0, x.time, PIECE):
            loud = self._loud(x.read(start, min(x.time, start + PIECE)))
            if len(loud):
                first = last = start + int(loud[0])
                break
        for stop in range(x.time, first, -PIECE):
            start = max(first, stop - PIECE)
            loud = self._loud(x.read(start, stop))
            if len(loud):
                last = start + int(loud[-1])
                break
        for start in range(first, last + 1, PIECE):
            yield x.read(start, min(last + 1, start + PIECE))

    def _loud(self, x: Tensor) -> Tensor:
        """Return the indices (n, 1) of the samples above the threshold in any channel or example."""
        return (x.abs() > 10 ** (self.threshold_db / 20)).reshape(-1, x.shape[-1]).any(0).nonzero()
