"""Changes of features over time: deltas, and sliding-window mean normalisation."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad as padded

from torchfx.core.feature import Feature
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, count, flag
from torchfx.plan import State
from torchfx.spectral.framed import PAD_MODES, Framed, Framing

__all__ = ["ComputeDeltas", "SlidingWindowCmn"]


class ComputeDeltas(Framed):
    """Delta features: the slope of each bin over time, by linear regression over `win_length` frames.

    With n = (win_length - 1) // 2, d[t] is the sum of k c[t + k] over k from -n to n, divided by the sum of k^2. In a
    stream the slopes lag by n frames (`latency_frames`).

    Examples:
        >>> import torch
        >>> ComputeDeltas()(torch.arange(6.0)[None])
        tensor([[0.5000, 0.8000, 1.0000, 1.0000, 0.8000, 0.5000]])
    """

    takes: ClassVar[str] = "features"
    win_length: int = count(default=5, low=3, draws=(3, 5), doc="frames, odd or one less")
    mode: str = choice(PAD_MODES, default="replicate", doc="what lies beyond the ends")

    @property
    def latency_frames(self) -> int:
        """Latency of a slope in a stream, in frames: half a window."""
        return (self.win_length - 1) // 2

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape unchanged."""
        return shape

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream, or ""."""
        return "needs the whole signal, whose end lies before its start, with mode='circular'" if self._wraps else ""

    @property
    def _wraps(self) -> bool:
        return self.mode == "circular"

    def framing(self, rate: float | None) -> Framing:
        """Return the positions of the windows, in frames."""
        n = self.latency_frames
        return Framing(2 * n + 1, 1, n, n, self.mode == "reflect")

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the slopes."""
        n = self.latency_frames
        if self._wraps and x.shape[-1] < n:
            raise ArgumentError(f"x must have at least {n} frames where its ends are of mode 'circular'")
        return super().features(x, rate)

    def of_frames(self, x: Tensor, rate: Any, origin: int, count: int) -> Tensor:
        """Return the slopes of some frames, with padding at the ends."""
        n = self.latency_frames
        left, right = max(0, origin), max(0, count + 2 * n - origin - x.shape[-1])
        x = x[..., max(0, -origin) :]
        rows = padded(x.reshape(1, -1, x.shape[-1]), (left, right), mode=self.mode)
        weights = torch.arange(-n, n + 1, dtype=x.dtype, device=x.device)
        slopes = rows[..., : count + 2 * n].unfold(-1, 2 * n + 1, 1) @ weights / weights.square().sum()
        return slopes.reshape(*x.shape[:-1], count)


class SlidingWindowCmn(Feature):
    """Subtract from each bin its mean over a sliding window of frames, and optionally divide by its standard deviation.

    A window with a NaN or an infinity gives NaN.

    The window of frame t ends at t, and has at least `min_cmn_window` frames at the start of the signal; with `center`,
    t is its middle. Input and output have the shape (..., bins, frames). Equals Kaldi's `apply-cmvn-sliding`.

    A stream returns a frame when its window is complete: without latency after the first `min_cmn_window` frames; with
    `center`, half a window later (`latency_frames`), and the first frames together with the last frame of the first
    complete window.

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

    @property
    def latency_frames(self) -> int:
        """Latency of a result in a stream after the first window, in frames."""
        return self.cmn_window - 1 - self.cmn_window // 2 if self.center else 0

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape unchanged."""
        return shape

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream, or ""."""
        return ""

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the normalised features."""
        return self._part(x, x.shape[-1], 0, x.shape[-1])

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return no past frames, and zero counts of frames received and returned."""
        past = torch.zeros(*shape, self._kept, dtype=dtype, device=device)
        return past, torch.zeros(2, dtype=torch.int64)

    @property
    def _kept(self) -> int:
        return max(self.cmn_window, 0 if self.center else self.min_cmn_window)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Return the frames whose windows are complete."""
        past, counts = state
        received, given = counts.tolist()
        known = torch.cat([past[..., past.shape[-1] - min(received, self._kept) :], x], dim=-1)
        received += x.shape[-1]
        least = self.cmn_window if self.center else self.min_cmn_window
        ready = max(given, received - self.latency_frames) if received >= least else given
        y = self._part(known, received, given, ready)
        enough = padded(known, (max(0, self._kept - known.shape[-1]), 0))
        return y, (enough[..., enough.shape[-1] - self._kept :], torch.tensor([received, ready]))

    def finish(self, state: State, rate: Any) -> Tensor:
        """Return the frames whose windows extend beyond the end."""
        past, counts = state
        received, given = counts.tolist()
        return self._part(past[..., past.shape[-1] - min(received, self._kept) :], received, given, received)

    def _part(self, known: Tensor, received: int, start: int, end: int) -> Tensor:
        """Return frames `start` to `end` of a signal of which `received` frames came, the last of them known."""
        if end <= start:
            return known[..., :0]
        t = torch.arange(start, end, device=known.device)
        if self.center:
            first = (t - self.cmn_window // 2).clamp(min=0)
            last = first + self.cmn_window
        else:
            first, last = (t - self.cmn_window).clamp(min=0), (t + 1).clamp(min=self.min_cmn_window)
        first = (first - (last - received).clamp(min=0)).clamp(min=0)
        last = last.clamp(max=received)
        count = (last - first).double()
        before = received - known.shape[-1]  # frames that are no longer known

        def means(of: Tensor) -> Tensor:
            sums = padded(of.cumsum(-1), (1, 0))
            return (sums[..., last - before] - sums[..., first - before]) / count

        is_finite = known.isfinite()  # a running sum would carry a NaN to all frames after it
        finite = torch.where(is_finite, known, 0.0).double()
        moved = finite - finite[..., :1]  # a large mean would take digits from the squares
        mean = torch.where(means((~is_finite).double()) > 0, torch.nan, means(moved))
        found = moved[..., start - before : end - before] - mean
        if self.norm_vars:
            variance = means(moved.square()) - mean.square()
            found = torch.where((count > 1) & (variance > 0), found * variance.clamp(min=1e-300).rsqrt(), 0.0 * found)
        return found.to(known.dtype)
