"""Samples and their sample rate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from torchfx import audio_io
from torchfx.checks import sample_rate as checked_rate
from torchfx.checks import whole_number
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError
from torchfx.plan import is_opaque, lower
from torchfx.processor import Processor
from torchfx.rate import resolve_rate, sample_rate

__all__ = ["Wave"]

if TYPE_CHECKING:
    import numpy.typing as npt

    ArrayLike = Tensor | npt.NDArray[Any] | Sequence[Any]


class Wave:
    """A recording: samples (channels, time) with their sample rate.

    `wave | module` runs now and returns a new Wave; the module, and the wave, stay as they are.

    Args:
        ys: samples, (channels, time) or (time,), which becomes (1, time). float32 and float64 are kept, integers are
            scaled to float32 in [-1, 1). Tensors and arrays are shared, not copied, where that is possible.
        fs: sample rate, Hz.
        device: where the samples go.
        metadata: anything; a copy travels along.

    Raises:
        ArgumentError: no samples, more than two dimensions, a sample rate out of range.
        ArgumentTypeError: samples that are complex, half precision or no numbers.

    Examples:
        >>> import torch, torchfx as fx
        >>> wave = fx.Wave(torch.ones(2, 48_000), 48_000)
        >>> wave | fx.filter.HiButterworth(80) | fx.effect.Gain(0.5)
        Wave(2 channels, 1.000 s, 48000 Hz, torch.float32, cpu)
    """

    def __init__(
        self,
        ys: ArrayLike,
        fs: float,
        device: str | torch.device = "cpu",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Check the samples and the rate and keep them."""
        self.fs = checked_rate(fs)
        self.ys = _as_samples(ys).to(device)
        self.metadata: dict[str, Any] = dict(metadata or {})

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], frame_offset: int = 0, num_frames: int = -1) -> Wave:
        """Read a file: WAV, FLAC, OGG, MP3, AIFF; see `torchfx.audio_io.load` for the arguments and errors."""
        ys, fs = audio_io.load(path, frame_offset, num_frames)
        return cls(ys, fs, metadata={"path": os.fspath(path)})

    @classmethod
    def merge(cls, waves: Iterable[Wave], split_channels: bool = False) -> Wave:
        """Combine waves of one sample rate.

        Args:
            waves: at least one. Shorter ones are filled with silence at their end.
            split_channels: keep every channel apart, one after the other, instead of adding the waves up. Waves that
                are added up must have the same number of channels.

        Raises:
            ArgumentError: no waves, different sample rates, or different numbers of channels to add up.
        """
        waves = list(waves)
        if not waves:
            raise ArgumentError("waves must hold at least one wave, got none")
        if len({wave.fs for wave in waves}) > 1:
            rates = ", ".join(f"{wave.fs:g}" for wave in waves)
            raise SampleRateError(f"waves must share one sample rate, got {rates} Hz")
        longest = max(len(wave) for wave in waves)
        padded = [nn.functional.pad(wave.ys, (0, longest - len(wave))) for wave in waves]
        if split_channels:
            return cls(torch.cat(padded), waves[0].fs, waves[0].device)
        if len({wave.channels() for wave in waves}) > 1:
            counts = ", ".join(str(wave.channels()) for wave in waves)
            raise ArgumentError(f"waves must have the same number of channels to be added up, got {counts}")
        total = padded[0]
        for ys in padded[1:]:
            total = total + ys
        return cls(total, waves[0].fs, waves[0].device)

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return self.ys.device

    def __len__(self) -> int:
        """Return the number of samples per channel."""
        return self.ys.shape[-1]

    def channels(self) -> int:
        """Return the number of channels."""
        return self.ys.shape[0]

    def duration(self, unit: Literal["sec", "ms"] = "sec") -> float:
        """Return the length in seconds or milliseconds."""
        if unit not in {"sec", "ms"}:
            raise ArgumentError(f'unit must be "sec" or "ms", got {unit!r}')
        return len(self) / self.fs * (1000 if unit == "ms" else 1)

    def get_channel(self, i: int) -> Wave:
        """Return one channel as a wave of its own; it shares the samples."""
        if not -self.channels() <= whole_number("i", i, -self.channels()) < self.channels():
            raise ArgumentError(f"i must lie in [0, {self.channels()}), got {i}")
        return self._with(self.ys[i])

    def to(self, device: str | torch.device) -> Wave:
        """Move the samples to a device, in place; return this wave."""
        self.ys = self.ys.to(device)
        return self

    def transform(self, f: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Wave:
        """Return a new wave of `f(ys, *args, **kwargs)`, inside which filters know the sample rate."""
        with sample_rate(self.fs):
            return self._with(f(self.ys, *args, **kwargs))

    def save(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        encoding: str | None = None,
        bits_per_sample: int | None = None,
    ) -> None:
        """Write a file; the suffix decides the format. See `torchfx.audio_io.save` for the arguments and errors."""
        audio_io.save(path, self.ys, self.fs, format, encoding, bits_per_sample)

    def __or__(self, module: object) -> Wave:
        """Run the samples through a module, now; containers are lowered first."""
        if not isinstance(module, nn.Module):
            return NotImplemented
        if "_orig_mod" in module._modules:  # torch.compile: traced code cannot ask for the ambient rate
            for part in module.modules():
                if isinstance(part, Processor):
                    resolve_rate(part.fs, self.fs, type(part).__name__)
        with sample_rate(self.fs):
            plain = type(module) is nn.Sequential and not is_opaque(module)
            y = lower(module).run(self.ys) if plain else module(self.ys)
        if not isinstance(y, Tensor):
            raise ArgumentTypeError(f"{type(module).__name__} must return a tensor (..., time), got {type(y).__name__}")
        return self._with(y)

    def __getitem__(self, index: slice) -> Wave:
        """Return a stretch of time, given in samples, as a wave of its own; it shares the samples."""
        if not isinstance(index, slice):
            raise ArgumentTypeError(f"a wave is sliced by samples, as in wave[a:b], got {index!r}")
        if index.step is not None:
            whole_number("the slice's step", index.step, 1)
        return self._with(self.ys[:, index])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the samples for NumPy, shape (channels, time)."""
        array = self.ys.detach().cpu().numpy()
        return array.astype(dtype or array.dtype, copy=bool(copy))

    def __repr__(self) -> str:
        """Return the shape of the recording in words."""
        count = f"{self.channels()} channel" + ("" if self.channels() == 1 else "s")
        return f"Wave({count}, {self.duration():.3f} s, {self.fs:g} Hz, {self.ys.dtype}, {self.device})"

    def _repr_html_(self) -> str:
        """Return a player for notebooks."""
        import base64
        import io

        import soundfile

        buffer = io.BytesIO()
        samples = self.ys.detach().cpu().float().clamp(-1, 1).T.numpy()
        soundfile.write(buffer, samples, round(self.fs), format="WAV", subtype="PCM_16")
        data = base64.b64encode(buffer.getvalue()).decode()
        return f'<div>{self!r}</div><audio controls src="data:audio/wav;base64,{data}"></audio>'

    def _with(self, ys: Tensor) -> Wave:
        return Wave(ys, self.fs, ys.device, self.metadata)


def _as_samples(ys: ArrayLike) -> Tensor:
    """Return samples as a float tensor (channels, time), or raise."""
    if not isinstance(ys, Tensor):
        try:
            array = np.asarray(ys)
        except ValueError as error:  # rows of different lengths
            raise ArgumentError(f"ys must have the shape (channels, time) or (time,): {error}") from error
        if array.dtype.kind not in "fiu":
            raise ArgumentTypeError(f"ys must hold real numbers, got {array.dtype}")
        if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
            raise ArgumentTypeError(f"ys must be float32, float64 or integers, got {array.dtype}")
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        if not array.flags.writeable or any(stride < 0 for stride in array.strides):
            array = array.copy()  # PyTorch shares neither read-only memory nor negative strides
        ys = torch.from_numpy(array)
    if ys.dtype not in (torch.float32, torch.float64):
        ys = _scaled(ys)
    if ys.ndim == 1:
        ys = ys[None]
    if ys.ndim != 2 or ys.numel() == 0:
        raise ArgumentError(
            f"ys must have the shape (channels, time) or (time,) and hold samples, got {tuple(ys.shape)}"
        )
    return ys


def _scaled(ys: Tensor) -> Tensor:
    """Map an integer type's range to [-1, 1), unsigned ones around their middle."""
    if ys.dtype.is_floating_point or ys.dtype.is_complex or ys.dtype == torch.bool:
        raise ArgumentTypeError(f"ys must be float32, float64 or integers, got {ys.dtype}")
    limits = torch.iinfo(ys.dtype)
    middle = 0 if limits.min < 0 else (limits.max + 1) // 2
    half = max(limits.max - middle + 1, 1)
    return ((ys.double() - middle) / half).float()
