"""Convolution with impulse responses, for example of rooms, cabinets and microphones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torchfx import _ops, audio_io
from torchfx.core.resample import Resample
from torchfx.errors import ArgumentError, SampleRateError
from torchfx.filter.filter import Filter
from torchfx.parameters import Value, impulse_response, number
from torchfx.plan import LTI, Handover, State
from torchfx.rate import sample_rate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Response = Sequence[float] | npt.NDArray[np.floating[Any]] | Tensor | str | os.PathLike[str]

__all__ = ["Convolution"]

CACHED = 8  # files of seconds are megabytes


class Convolution(Filter):
    """Convolve with an impulse response of any length, without latency, both whole signals and streams.

    Streams use partitioned convolution, with longer partitions for later parts of the response. With a response of 2 s
    and blocks of 512 samples, a stream takes three to six times as long as one call.

    A response (n,) applies to all channels; (channels, n) has one response per channel. True stereo has four responses,
    (2, 2, n): `ir[o, i]` is the response from input i to output o. In an audio file with four channels their order is
    left to left, right to left, left to right, right to right. The output is as long as the input: append silence to
    keep the tail.

    Args:
        ir: a tensor or array (n,), (channels, n) or (2, 2, n) at the signal's sample rate, or the path of an audio
            file, which is resampled to that rate. A tensor that requires a gradient is learned.
        mix: from 0 (dry signal only) to 1 (convolution only).

    Raises:
        ArgumentError: another shape, or mix out of range.
        AudioFileError: the file cannot be read.

    Examples:
        >>> import torch
        >>> echo = Convolution([0.0, 0.0, 0.5], mix=0.5)
        >>> echo(torch.tensor([1.0, 0.0, 0.0, 0.0]))
        tensor([0.5000, 0.0000, 0.2500, 0.0000])
    """

    ir: Response = impulse_response()
    mix: Value = number(default=1.0, low=0.0, high=1.0)

    def check_parameters(self) -> None:
        """Raise if the response has another shape than these three, or its file cannot be read."""
        if isinstance(self.ir, str):
            with audio_io.Reader(self.ir):
                return
        shape = tuple(self._given().shape)
        if len(shape) > 3 or (len(shape) == 3 and shape[:2] != (2, 2)):
            raise ArgumentError(f"ir must have the shape (n,), (channels, n) or (2, 2, n), got {shape}")

    def _given(self) -> Tensor:
        return self.ir  # type: ignore[return-value]

    def taps_at(self, rate: float | None) -> Tensor:
        """Return the impulse response at a sample rate (Hz): float64, in one of the three shapes."""
        if not isinstance(self.ir, str):
            return self._given().double()
        if rate is None:
            raise SampleRateError(
                f"the sample rate of the signal is unknown, and {self.ir} must be resampled to it: pipe a Wave into "
                f"the module, or call it inside `with torchfx.sample_rate(fs):`"
            )
        return _read(self.ir, Path(self.ir).stat().st_mtime_ns, rate)

    def lti(self, rate: Any) -> LTI | None:
        """Return the response as FIR taps, or None for true stereo."""
        response = self.taps_at(rate)
        return None if response.dim() == 3 else LTI(taps=self._mixed(response))

    def whole(self, x: Tensor, rate: Any) -> Tensor:
        """Return the true-stereo convolution of a whole signal (..., 2, time)."""
        return _stereo(x, self._mixed(self.taps_at(rate)), None)[0]

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state at rest; the state holds the contribution of past input to future output."""
        response = self.taps_at(rate)
        if response.dim() < 3:
            return self._streaming(rate).init_state(tuple(shape), dtype, torch.device(device))
        return (torch.zeros(*shape[:-1], 2, 2, response.shape[-1] - 1, dtype=torch.float64, device=device),)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Convolve the next block."""
        response = self.taps_at(rate)
        if response.dim() < 3:
            return self._streaming(rate).step(x, state)
        y, after = _stereo(x, self._mixed(response), state[0])
        return y, (after,)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append the true-stereo convolution to a native program."""
        taps = self._mixed(self.taps_at(rate))
        if taps.dim() < 3 or taps.requires_grad or taps.shape[-1] < 2 or program.shape[-1:] != (2,):
            return None
        target: int = program.partitioned(source, taps, state[0], width=2)
        return target

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return the state at rest, since pending output belongs to the old response. The new response fades in after
        its length.
        """
        return Handover((None,) * len(new), self.taps_at(rate).shape[-1] - 1)

    def _mixed(self, response: Tensor) -> Tensor:
        """Return a response with the signal's own part in it."""
        if not isinstance(self.mix, Tensor) and self.mix == 1:
            return response
        stereo = response.dim() == 3
        dry = torch.zeros(response.shape[-1], dtype=torch.float64, device=response.device)
        dry[0] = 1
        if stereo:
            dry = torch.eye(2, dtype=torch.float64, device=response.device)[..., None] * dry
        mix = self.mix.double()[..., None] if isinstance(self.mix, Tensor) else self.mix
        if isinstance(mix, Tensor) and stereo:
            mix = mix[..., None]
        return response * mix + dry * (1 - mix)


@lru_cache(CACHED)
def _read(path: str, changed_ns: int, rate: float) -> Tensor:
    """Return a file's response at a sample rate (Hz); shared, and read again when the file has changed."""
    samples, fs = audio_io.load(path)
    taps: Tensor
    # Samples of a response stand for an integral: at twice the rate there are twice as many, half as large.
    with sample_rate(fs):  # the file's own, while that of the signal holds around it
        taps = Resample(rate)(samples.double()) * (fs / rate)
    return taps[0] if len(taps) == 1 else taps.reshape(2, 2, -1) if len(taps) == 4 else taps


def _stereo(x: Tensor, taps: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    if x.dim() < 2 or x.shape[-2] != 2:
        raise ArgumentError(f"x must have two channels, shape (..., 2, time), for a (2, 2, n) ir, got {tuple(x.shape)}")
    y, after = _ops.fir_forward(x[..., None, :, :], taps.to(x.device), state)
    return y.sum(-2), after
