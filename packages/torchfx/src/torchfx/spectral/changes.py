"""What features do over time: their slopes, and their deviation from a running mean."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad as padded

from torchfx.core.feature import Feature
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, count, flag
from torchfx.spectral.framed import PAD_MODES

__all__ = ["ComputeDeltas", "SlidingWindowCmn"]


class ComputeDeltas(Feature):
    """The slope of each bin over time: that of the line of regression over `win_length` frames.

    With n = (win_length - 1) / 2, d[t] is the sum of k c[t + k] over k from -n to n, divided by the sum of k^2.

    Examples:
        >>> import torch
        >>> ComputeDeltas()(torch.arange(6.0)[None])
        tensor([[0.5000, 0.8000, 1.0000, 1.0000, 0.8000, 0.5000]])
    """

    takes: ClassVar[str] = "features"
    win_length: int = count(default=5, low=3, draws=(3, 5), doc="frames, odd or one less")
    mode: str = choice(PAD_MODES, default="replicate", doc="what lies beyond the ends")

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape it is given."""
        return shape

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the slopes."""
        n = (self.win_length - 1) // 2
        if x.shape[-1] < {"reflect": n + 1, "circular": n}.get(self.mode, 1):
            raise ArgumentError(f"x must have more than {n} frames where its ends are of mode {self.mode!r}")
        rows = padded(x.reshape(1, -1, x.shape[-1]), (n, n), mode=self.mode)
        weights = torch.arange(-n, n + 1, dtype=x.dtype, device=x.device)
        return (rows.unfold(-1, 2 * n + 1, 1) @ weights).reshape(x.shape) / weights.square().sum()


class SlidingWindowCmn(Feature):
    """Each bin minus its mean over a window of frames, and, if wanted, divided by its deviation there.

    The window of frame t ends with t, and has at least `min_cmn_window` frames at the signal's start; with `center`, t
    is in its middle. As Kaldi's `apply-cmvn-sliding`; takes and gives (..., bins, frames).

    Examples:
        >>> import torch
        >>> SlidingWindowCmn(cmn_window=3, min_cmn_window=1)(torch.tensor([[1.0, 2.0, 4.0, 8.0]]))
        tensor([[0.0000, 0.5000, 1.6667, 4.2500]])
    """

    takes: ClassVar[str] = "features"
    cmn_window: int = count(default=600, draws=(2, 8), doc="frames before the last one, or in all with center")
    min_cmn_window: int = count(default=100, draws=(1, 4), doc="frames at the signal's start; not used with center")
    center: bool = flag(default=False, doc="whether a frame is in its window's middle")
    norm_vars: bool = flag(default=False, doc="whether bins are divided by their standard deviation")

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape it is given."""
        return shape

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the deviations."""
        frames = x.shape[-1]
        t = torch.arange(frames, device=x.device)
        if self.center:
            first = (t - self.cmn_window // 2).clamp(min=0)
            end = first + self.cmn_window
        else:
            first, end = (t - self.cmn_window).clamp(min=0), (t + 1).clamp(min=self.min_cmn_window)
        first = (first - (end - frames).clamp(min=0)).clamp(min=0)
        end = end.clamp(max=frames)
        count = (end - first).double()

        def means(of: Tensor) -> Tensor:
            sums = padded(of.double().cumsum(-1), (1, 0))
            return (sums[..., end] - sums[..., first]) / count

        middle = x.double().mean(-1, keepdim=True)  # a large mean would take digits from the squares
        moved = x.double() - middle
        mean = means(moved)
        found = moved - mean
        if self.norm_vars:
            variance = means(moved.square()) - mean.square()
            found = torch.where((count > 1) & (variance > 0), found * variance.clamp(min=1e-300).rsqrt(), 0.0)
        return found.to(x.dtype)
