"""Frames of a signal: windows, padding, and frames in streams."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad as padded

from torchfx import _ops
from torchfx._ops.again import Again
from torchfx._ops.mel.cpu import Frames, Settings, mel_again
from torchfx._ops.operator import is_direct
from torchfx.core.feature import Feature
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, count, flag, window
from torchfx.plan import State

__all__ = ["Framed", "Framing", "Windowed", "mel_frames", "window_taps"]

PAD_MODES = ("reflect", "constant", "replicate", "circular")


@dataclass(frozen=True)
class Framing:
    """Positions of the frames of a signal.

    Attributes:
        length: samples of a frame.
        hop: samples between frames.
        origin: distance by which the first frame begins before the signal, in samples.
        behind: padding after the signal that frames may use, in samples.
        reflect: whether the padding reflects the signal instead of zeros.
        whole_hops: whether the number of frames is the number of complete hops.
    """

    length: int
    hop: int
    origin: int
    behind: int
    reflect: bool
    whole_hops: bool = False

    def count(self, time: int) -> int:
        """Return the number of frames for a number of samples."""
        if self.whole_hops:
            return time // self.hop
        return max(0, (time + self.origin + self.behind - self.length) // self.hop + 1)

    def ready(self, received: int) -> int:
        """Return the number of frames that are complete with the samples so far, whatever follows."""
        inside = received + min(0, self.behind) - self.length + self.origin
        if inside < 0 or (self.reflect and received <= self.origin):
            return 0
        ready = inside // self.hop + 1
        return min(ready, received // self.hop) if self.whole_hops else ready

    @property
    def kept(self) -> int:
        """Past samples that a stream keeps: the samples of an incomplete frame and of the reflection."""
        return self.length + max(self.origin, self.behind, 0) + self.hop + 1


class Framed(Feature):
    """A processor whose result frames each depend on one frame of samples; it supports streams."""

    @abstractmethod
    def framing(self, rate: float | None) -> Framing:
        """Return the positions of the frames."""

    @abstractmethod
    def of_frames(self, x: Tensor, rate: Any, origin: int, count: int) -> Tensor:
        """Return the features of `count` frames, the first of which begins `origin` samples before x."""

    def settings(self, x: Tensor, rate: Any) -> Settings | None:
        """Return the arguments of `_ops.mel_forward` before and after `origin` and `count`, if it computes all."""
        return None

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream, or ""."""
        return ""

    def features(self, x: Tensor, rate: float | None) -> Tensor:
        """Return the features of all frames."""
        framing = self.framing(rate)
        self.check_length(framing, x.shape[-1])
        return self.of_frames(x, rate, framing.origin, framing.count(x.shape[-1]))

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return no past samples, and zero counts of samples received and frames returned."""
        past = torch.zeros(*shape, self.framing(rate).kept, dtype=dtype, device=device)
        return past, torch.zeros(2, dtype=torch.int64)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Return the frames whose samples are complete."""
        blocks = Blocks(self, rate, state)
        return blocks.run(x), blocks.progress()

    def running(self, state: State, rate: Any) -> Blocks:
        """Return what processes one block after the other and keeps the state."""
        return Blocks(self, rate, state)

    def finish(self, state: State, rate: Any) -> Tensor:
        """Return the frames that extend beyond the end."""
        return Blocks(self, rate, state).rest()

    def check_length(self, framing: Framing, time: int) -> None:
        """Raise where a whole signal is too short for a frame or for its padding."""
        edge = max(framing.origin, framing.behind) + 1 if framing.reflect else 1
        shortest = max(edge, framing.length - framing.origin - framing.behind, framing.hop * framing.whole_hops)
        if time < shortest:
            what = "samples" if self.takes == "samples" else "frames"
            raise ArgumentError(
                f"x must have at least {shortest} {what} for {self._get_name()}'s windows of {framing.length}, "
                f"got {time}"
            )


class Blocks:
    """Blocks of a signal: its last samples, and how many samples were received and frames returned.

    They are in the state that `Framed.init_state` returns after `settle`; `resume` continues from there.
    """

    def __init__(self, of: Framed, rate: Any, state: State) -> None:
        self._of, self._rate, self._state, self._framing = of, rate, state, of.framing(rate)
        self.resume()

    def resume(self) -> None:
        """Continue from the current state."""
        past, counts = self._state
        self._received, self._given = counts.tolist()
        self._past = past[..., past.shape[-1] - min(self._received, past.shape[-1]) :]

    def progress(self) -> State:
        """Return the state after the last block."""
        missing = self._framing.kept - self._past.shape[-1]
        return padded(self._past, (missing, 0)), torch.tensor([self._received, self._given])

    def settle(self) -> None:
        """Write the progress into the state."""
        for kept, value in zip(self._state, self.progress(), strict=True):
            kept.copy_(value)

    def run(self, x: Tensor, frames: Frames | None = None) -> Tensor:
        """Return the frames that a block completes, of another function than the processor's if one is given."""
        framing, known, received = self._framing, torch.cat([self._past, x], dim=-1), self._received + x.shape[-1]
        end = max(self._given, framing.ready(received))
        y = self._before(end, known, received, frames or self._of.of_frames)
        self._past, self._received, self._given = known[..., -framing.kept :], received, end
        return y

    def rest(self) -> Tensor:
        """Return the frames that extend beyond the end."""
        self._of.check_length(self._framing, self._received)
        end = self._framing.count(self._received)
        return self._before(end, self._past, self._received, self._of.of_frames)

    def again(self, x: Tensor) -> Again | None:
        """Return a fast call for blocks like this one, if a native call computes frames."""
        frames = mel_again(x, self._of.settings(x, self._rate))
        if frames is None:
            return None
        shape, dtype, run = x.shape, x.dtype, self.run

        def again(x: Any) -> Tensor | None:
            if not is_direct(x) or not x.is_cpu or x.requires_grad or x.shape != shape or x.dtype is not dtype:
                return None
            return run(x, frames)

        return again

    def _before(self, end: int, known: Tensor, received: int, frames: Frames) -> Tensor:
        """Return the frames before `end` that were not returned yet, of a signal whose last samples are known."""
        framing, count = self._framing, end - self._given
        if count <= 0:
            return known.new_zeros(*self._of.output_shape(tuple(known.shape[:-1])), 0)
        origin = received - known.shape[-1] - self._given * framing.hop + framing.origin
        return frames(known, self._rate, origin, count)


class Windowed(Framed):
    """The parameters of short-time Fourier transforms, with torchaudio's names and defaults."""

    n_fft: int = count(default=400, low=2, draws=(16, 64), doc="samples that are transformed")
    win_length: int | None = count(default=None, draws=(8, 16), doc="samples of the window; None: n_fft")
    hop_length: int | None = count(
        default=None, draws=(4, 16), doc="samples from one frame to the next; None: half of win_length"
    )
    pad: int = count(default=0, low=0, draws=(0, 4), doc="zeros put before and after the signal")
    window: Any = window(default="hann", doc="window")
    normalized: bool = flag(default=False, doc="whether spectra are divided by the root of the window's energy")
    center: bool = flag(default=True, doc="whether frame f has its middle at sample f hop_length")
    pad_mode: str = choice(PAD_MODES, default="reflect", doc="what lies beyond the signal's ends where center is true")

    def check_parameters(self) -> None:
        """Raise if the window is longer than `n_fft`."""
        if self.win_length is not None and self.win_length > self.n_fft:
            raise ArgumentError(f"win_length must be <= n_fft = {self.n_fft}, got {self.win_length}")

    @property
    def hop(self) -> int:
        """Samples between frames."""
        return self.hop_length or max(1, (self.win_length or self.n_fft) // 2)

    def taps(self, x: Tensor) -> Tensor:
        """Return the window (win_length,), float64, on a signal's device, optionally normalised."""
        found = window_taps(self.window, self.win_length or self.n_fft).to(x.device)
        return found / found.square().sum().sqrt() if self.normalized else found

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream, or ""."""
        return "needs the whole signal where pad > 0 or pad_mode is neither reflect nor constant" if self._pads else ""

    @property
    def _pads(self) -> bool:
        """Whether a signal is padded as a whole, and not by its frames."""
        return self.pad > 0 or (self.center and self.pad_mode not in {"reflect", "constant"})

    def framing(self, rate: float | None) -> Framing:
        """Return the positions of the frames; a window shorter than n_fft is centred in n_fft samples."""
        length = self.win_length or self.n_fft
        left = (self.n_fft - length) // 2
        side = self.n_fft // 2 if self.center else 0
        right = self.n_fft - length - left
        return Framing(length, self.hop, side - left, side - right, self.center and self.pad_mode == "reflect")

    def features(self, x: Tensor, rate: float | None) -> Tensor:
        """Return the features of all frames; pad the signal first if `framing` does not."""
        side = self.n_fft // 2 if self.center else 0
        if x.shape[-1] + 2 * self.pad + 2 * side < self.n_fft:
            raise ArgumentError(
                f"x must have at least n_fft = {self.n_fft} samples with its padding, got {x.shape[-1]} samples"
            )
        if not self._pads:
            return super().features(x, rate)
        x = padded(x, (self.pad, self.pad))
        least = {"reflect": side + 1, "circular": side}.get(self.pad_mode, 1)
        if x.shape[-1] < least:
            raise ArgumentError(f"x must have at least {least} samples with its padding, got {x.shape[-1]}")
        if side:
            rows = padded(x.reshape(1, -1, x.shape[-1]), (side, side), mode=self.pad_mode)
            x = rows.reshape(*x.shape[:-1], rows.shape[-1])
        framing = self.framing(rate)
        left, span = side - framing.origin, framing.length + (side - framing.origin) + (side - framing.behind)
        return self.of_frames(x, rate, -left, (x.shape[-1] - span) // framing.hop + 1)


def mel_frames(x: Tensor, settings: Settings, origin: int, count: int) -> Tensor:
    """Return bands of the spectra of frames; see `_ops/mel/schema.py`."""
    before, behind = settings
    arguments: tuple[Any, ...] = (*before, origin, count, *behind)
    found: Tensor = _ops.mel_forward(x, *arguments)
    return found


def window_taps(name: Any, length: int, symmetric: bool = False) -> Tensor:
    """Return a window (length,), float64.

    Args:
        name: a window of `scipy.signal.get_window`, or "povey": Kaldi's symmetric Hann window to the power of 0.85.
        length: samples.
        symmetric: whether the window is symmetric; otherwise periodic.
    """
    return _window_taps(name, length, symmetric)


@lru_cache(maxsize=32)
def _window_taps(name: Any, length: int, symmetric: bool) -> Tensor:
    from scipy import signal

    if name == "povey":
        found = signal.get_window("hann", length, fftbins=False) ** 0.85
    else:
        try:
            found = signal.get_window(name, length, fftbins=not symmetric)
        except ValueError as error:
            raise ArgumentError(f"window must be one that scipy.signal.get_window knows, or povey: {error}") from error
    with torch.inference_mode(False):
        return torch.from_numpy(found.astype("float64"))


# As `torch.compiler.assume_constant_result` does, which imports the compiler: traced programs ask NumPy beforehand.
window_taps._dynamo_marked_constant = True  # type: ignore[attr-defined]
