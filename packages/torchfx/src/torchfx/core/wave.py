"""Samples and their sample rate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

import numpy as np
import torch
from torch import Tensor, nn

from torchfx import audio_io
from torchfx._ops.observers import profiler_enabled
from torchfx.checks import number_text, whole_number
from torchfx.checks import sample_rate as checked_rate
from torchfx.core.processor import Processor
from torchfx.core.seams import look_for_seams
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError
from torchfx.other_names import ATTRIBUTES, checks_names, plain
from torchfx.parameters import position
from torchfx.plan import gives_of, plan_to_run
from torchfx.rate import ambient, resolve_rate, sample_rate
from torchfx.tensors import on_device

__all__ = ["Wave", "load"]

if TYPE_CHECKING:
    import numpy.typing as npt

    from torchfx.core.feature import Feature
    from torchfx.spectrogram import Spectrogram

    ArrayLike = Tensor | npt.NDArray[Any] | Sequence[Any]

MOST_CHANNELS = 128
"""Arrays with more rows than this, and far more rows than columns, are taken for frames first, as soundfile reads."""


class Wave:
    """Audio samples (channels, time) with their sample rate.

    `wave | module` runs immediately and returns a new Wave; module and wave are unchanged. `a + b` mixes, `a - b`
    subtracts, `wave * 0.5` and `wave / 2` scale. `wave[1000:2000]` selects a time range in samples, `wave[1.0:2.0]` and
    `wave["500ms":]` select it in seconds. `wave[0]` and `wave[[1, 0]]` select channels, and `for channel in wave`
    iterates over channels. `len(wave)` is the number of samples per channel.

    `a == b` compares rate and samples; dtype, device and metadata do not matter. A wave is mutable (`wave.ys = ...`),
    so it has no hash.

    Args:
        ys: samples, (channels, time) or (time,), which becomes (1, time). float32 and float64 are kept; arrays of
            integers are scaled to float32 in [-1, 1). Tensors and arrays are shared, not copied, if possible.
        fs: sample rate, Hz.
        device: device of the samples.
        metadata: any object; every operation copies it to its result.

    Raises:
        ArgumentError: no samples, more than two dimensions, or a sample rate out of range.
        ArgumentTypeError: samples that are complex, half precision or not numbers.

    Examples:
        >>> import torch, torchfx as fx
        >>> wave = fx.Wave(torch.ones(2, 48_000), 48_000)
        >>> wave | fx.filter.HiButterworth(80) | fx.effect.Gain(0.5)
        Wave(2 channels, 1.000 s, 48000 Hz, torch.float32, cpu)
        >>> left, right = wave
        >>> (left - right)["250ms":0.75].shape
        torch.Size([1, 24000])
        >>> wave / 2 + wave * 0.5 == wave
        True
    """

    __array_priority__ = 1000  # NumPy's scalars leave `scalar * wave` to the wave

    _is_piped = False
    """Whether a module made the samples, and no other module got them while a profiler looked."""

    @checks_names
    def __init__(
        self,
        ys: ArrayLike,
        fs: float | str,
        device: str | torch.device = "cpu",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Check and store the samples and the rate."""
        self.fs = checked_rate(fs)
        self.ys = on_device(_as_samples(ys), device)
        self.metadata: dict[str, Any] = dict(metadata or {})

    if not TYPE_CHECKING:  # a type checker reports attributes that do not exist

        def __getattr__(self, name: str) -> Any:
            """Raise an error that says what to write for an attribute that other libraries have."""
            other = ATTRIBUTES.get(plain(name))
            text = f"'Wave' object has no attribute {name!r}" + (f"; write {other}" if other else "")
            raise AttributeError(text, name=name, obj=self)

    @classmethod
    def from_file(cls, source: str | os.PathLike[str] | BinaryIO, frame_offset: int = 0, num_frames: int = -1) -> Wave:
        """Read a file: WAV, FLAC, OGG, MP3, AIFF.

        Args:
            source: a path, or a binary file object.
            frame_offset: first frame to read, >= 0.
            num_frames: number of frames, > 0; -1 reads to the end.

        Returns:
            The wave. Its metadata contains "path", "format", "encoding", "bits" and "tags", if the file has them.

        Raises:
            AudioFileError: the file is missing, empty, truncated, or in an unknown format.
            ArgumentError: frame_offset or num_frames out of range.
        """
        with audio_io.Reader(source) as reader:
            ys = reader.part(frame_offset, num_frames)
            metadata: dict[str, Any] = {"format": reader.format, "encoding": reader.encoding, "bits": reader.bits}
            if reader.tags:
                metadata["tags"] = reader.tags
            fs = reader.fs
        if isinstance(source, (str, os.PathLike)):
            metadata["path"] = os.fspath(source)
        return cls(ys, fs, metadata=metadata)

    load = from_file

    @classmethod
    def merge(cls, waves: Iterable[Wave], split_channels: bool = False) -> Wave:
        """Combine waves of one sample rate. If metadata conflict, the first wave's take precedence.

        Args:
            waves: at least one. Shorter waves are padded with silence at their end.
            split_channels: concatenate the channels instead of adding the waves. Waves that are added must have the
                same number of channels.

        Raises:
            ArgumentError: no waves, different sample rates, or different numbers of channels to add.
            ArgumentTypeError: an argument is not a wave.
        """
        waves = list(waves)
        if not waves:
            raise ArgumentError("waves must hold at least one wave, got none")
        if other := [wave for wave in waves if not isinstance(wave, Wave)]:
            raise ArgumentTypeError(f"waves must hold waves only, got {type(other[0]).__name__}")
        if len({wave.fs for wave in waves}) > 1:
            rates = ", ".join(number_text(wave.fs) for wave in waves)
            raise SampleRateError(f"waves must share one sample rate, got {rates} Hz")
        longest = max(len(wave) for wave in waves)
        padded = [nn.functional.pad(wave.ys, (0, longest - len(wave))) for wave in waves]
        if split_channels:
            total = torch.cat(padded)
        elif len({wave.channels() for wave in waves}) > 1:
            counts = ", ".join(str(wave.channels()) for wave in waves)
            raise ArgumentError(f"waves must have the same number of channels to be added up, got {counts}")
        else:
            total = padded[0]
            for ys in padded[1:]:
                total = total + ys
        metadata = {name: value for wave in reversed(waves) for name, value in wave.metadata.items()}
        return cls(total, waves[0].fs, total.device, metadata)

    @property
    def device(self) -> torch.device:
        """Device of the samples."""
        return self.ys.device

    @property
    def samples(self) -> Tensor:
        """Alias of `ys`."""
        return self.ys

    @property
    def sample_rate(self) -> float:
        """Alias of `fs`."""
        return self.fs

    @property
    def shape(self) -> torch.Size:
        """Number of channels and number of samples per channel."""
        return self.ys.shape

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
        """Return one channel as a separate wave; it shares the samples."""
        return self._with(self.ys[self._channel(i)])

    def to(self, device: str | torch.device) -> Wave:
        """Move the samples to a device, in place; return this wave."""
        self.ys = on_device(self.ys, device)
        return self

    def cpu(self) -> Wave:
        """Move the samples to the CPU, in place; return this wave."""
        return self.to("cpu")

    def cuda(self, index: int | None = None) -> Wave:
        """Move the samples to a CUDA device, by default the current one, in place; return this wave."""
        return self.to("cuda" if index is None else f"cuda:{whole_number('index', index, 0)}")

    def transform(self, f: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Wave:
        """Return a new wave with the samples `f(ys, *args, **kwargs)`; filters inside `f` know the sample rate."""
        with sample_rate(self.fs):
            y = f(self.ys, *args, **kwargs)
        return self._with(_returned(getattr(f, "__name__", type(f).__name__), y))

    def resample(self, fs: float | str) -> Wave:
        """Return the wave at another sample rate (Hz, or a string such as "44.1kHz"); see `torchfx.filter.Resample`."""
        from torchfx.core.resample import Resample  # designs of filters come with it

        return self | Resample(checked_rate(fs))

    def save(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        format: str | None = None,
        encoding: str | None = None,
        bits_per_sample: int | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Write a file; the suffix selects the format, or `format` if the suffix names no format.

        See `torchfx.audio_io.save` for the arguments and errors. By default the tags that `from_file` stored in the
        metadata are written, if the format supports them.
        """
        if tags is None and isinstance(self.metadata.get("tags"), Mapping):
            tags = audio_io.kept_tags(target, self.metadata["tags"], format)
        audio_io.save(target, self.ys, self.fs, format, encoding, bits_per_sample, tags)

    def spectrogram(self, columns: int = 1200, size: int = 2048, mel: int | None = None) -> Spectrogram:
        """Compute a spectrogram in dB; notebooks display it as a plot.

        Args:
            columns: maximum number of time frames, >= 1.
            size: samples of the Hann window, >= 2.
            mel: number of mel bands, 1 to size / 2; None: FFT bins.

        Returns:
            An object with `levels_db` (frequencies, times), the mean power of all channels, where 0 dB is a sine of
            amplitude 1; `frequencies_hz`, `times_s` and `plot()`. For features of a network, see
            `torchfx.spectral.Spectrogram`.

        Raises:
            ArgumentError: an argument out of range.

        Warns:
            UserWarning: samples that are NaN or infinite; their times have no levels.

        Examples:
            >>> tone = Wave(torch.sin(2 * torch.pi * 1000 * torch.arange(16_000) / 16_000)[None], 16_000)
            >>> found = tone.spectrogram()
            >>> found
            Spectrogram(1025 frequencies, 1200 times, 1.000 s, loudest 0.0 dB)
            >>> print(found.frequencies_hz[found.levels_db[:, 600].argmax()])
            1000.0
        """
        from torchfx.spectrogram import ArraySamples, measured

        return measured(ArraySamples(np.asarray(self), self.fs), columns, size, mel)

    @overload
    def __or__(self, module: Feature) -> Tensor: ...  # type: ignore[overload-overlap]
    @overload
    def __or__(self, module: object) -> Wave: ...
    def __or__(self, module: object) -> Wave | Tensor:
        """Apply a module, or a function, to the samples immediately.

        A chain that ends in features returns a tensor (..., bins, frames).

        `wave | a | b` makes two calls, `wave | (a | b)` one. A profiler records the second of two calls as `torchfx
        pipe again`.
        """
        if self._is_piped and profiler_enabled() and not torch.compiler.is_dynamo_compiling():
            self._is_piped = False  # other modules on the same samples are no chain
            with torch._C._profiler._RecordFunctionFast("torchfx pipe again"):
                return self | module
        if not isinstance(module, nn.Module):
            if isinstance(module, type) and issubclass(module, nn.Module):
                raise ArgumentTypeError(f"a wave is piped into a module, got the class: write {module.__name__}(...)")
            return self.transform(module) if callable(module) else NotImplemented
        if "_orig_mod" in module._modules:  # torch.compile: traced code cannot ask for the ambient rate
            for part in module.modules():
                if isinstance(part, Processor):
                    resolve_rate(part.fs, self.fs, type(part).__name__)
        fs = self.fs
        token = ambient.set(fs)
        try:
            plan = plan_to_run(module, fs)
            if plan is not None:
                y, fs = plan.run(self.ys), plan.output_rate or fs
            else:
                y = module(self.ys)
                fs = module.output_rate(fs) if isinstance(module, Processor) else fs
        finally:
            ambient.reset(token)
        if self.ys.storage_offset():
            look_for_seams(self.ys, module, self.fs)
        if (gives_of(module) if plan is None else plan.gives) == "features":
            return y
        made = self._with(_returned(type(module).__name__, y), fs)
        made._is_piped = True
        return made

    def __add__(self, other: object) -> Wave:
        """Mix with another wave of the same rate; the shorter wave is padded with silence."""
        return Wave.merge([self, other]) if isinstance(other, Wave) else NotImplemented

    def __mul__(self, factor: object) -> Wave:
        """Scale by a number, or by a tensor that broadcasts to (channels, time)."""
        if not isinstance(factor, (Real, Tensor)):
            return NotImplemented
        return self._with(self.ys * (factor if isinstance(factor, Tensor) else float(factor)))

    __rmul__ = __mul__

    def __neg__(self) -> Wave:
        """Invert the polarity."""
        return self._with(-self.ys)

    def __sub__(self, other: object) -> Wave:
        """Subtract another wave of the same rate; the shorter wave is padded with silence."""
        return self + -other if isinstance(other, Wave) else NotImplemented

    def __truediv__(self, divisor: object) -> Wave:
        """Divide by a number other than 0, or by a tensor that broadcasts to (channels, time)."""
        if not isinstance(divisor, (Real, Tensor)):
            return NotImplemented
        if not isinstance(divisor, Tensor) and divisor == 0:
            raise ArgumentError("a wave is divided by a number other than 0, got 0")
        return self._with(self.ys / (divisor if isinstance(divisor, Tensor) else float(divisor)))

    def __eq__(self, other: object) -> bool:
        """Return whether rate and samples are equal; type and device do not matter."""
        if not isinstance(other, Wave):
            return NotImplemented
        if self.fs != other.fs or self.shape != other.shape:
            return False
        return bool((self.ys == other.ys.to(self.device)).all())

    __hash__ = None  # type: ignore[assignment]

    __reversed__ = None  # Python would count down from the number of samples

    def __iter__(self) -> Iterator[Wave]:
        """Yield the channels, each as a wave that shares the samples."""
        return map(self.get_channel, range(self.channels()))

    def __getitem__(self, index: int | slice | Sequence[int] | tuple[Any, Any]) -> Wave:
        """Select channels, a time range, or both with `wave[channels, time]`.

        Args:
            index: a time slice whose ends are integers (samples), floats (seconds), or strings such as "500ms";
                negative values count from the end. Or a channel number, or a list of channel numbers. Slices and single
                channels share the samples.

        Raises:
            ArgumentError: the channel does not exist, or the time range is empty.
            ArgumentTypeError: the index is neither a channel nor a time slice.
        """
        if isinstance(index, tuple) and len(index) == 2:
            channels, index = index
            if not isinstance(channels, slice):
                return self[channels][index]
            return self._with(self.ys[channels])[index]
        if isinstance(index, list):
            return self._with(self.ys[[self._channel(each) for each in index]])
        if not isinstance(index, slice):
            return self.get_channel(index)  # type: ignore[arg-type]  # what is no number is refused there
        if index.step is not None:
            whole_number("the slice's step", index.step, 1)
        ends = (index.start, index.stop)
        if any(map(_in_samples, ends)) and any(map(_in_seconds, ends)):
            raise ArgumentTypeError(
                f"a slice's ends must both be samples (whole numbers) or both seconds, got {ends[0]!r} and {ends[1]!r}"
            )
        start, stop = map(self._bound, ("start", "stop"), ends)
        return self._with(self.ys[:, start : stop : index.step])

    def _bound(self, name: str, bound: Any) -> Any:
        """Return an end of a slice of time in samples."""
        if not _in_seconds(bound):
            return bound
        if not isinstance(bound, str) and bound < 0:
            return max(0, len(self) - position(name, -bound, len(self), self.fs))
        return position(name, bound, len(self), self.fs)

    def _channel(self, i: int) -> int:
        """Return a channel's number, or raise."""
        if not -self.channels() <= whole_number("i", i, -self.channels()) < self.channels():
            raise ArgumentError(f"i must lie in [0, {self.channels()}), got {i}")
        return i

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the samples for NumPy, shape (channels, time)."""
        array = self.ys.detach().cpu().numpy()
        return array.astype(dtype or array.dtype, copy=bool(copy))

    def __repr__(self) -> str:
        """Return the shape of the recording in words."""
        count = f"{self.channels()} channel" + ("" if self.channels() == 1 else "s")
        return f"Wave({count}, {self.duration():.3f} s, {number_text(self.fs)} Hz, {self.ys.dtype}, {self.device})"

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

    def _with(self, ys: Tensor, fs: float | None = None) -> Wave:
        """Return a wave of other samples; what a module returned is checked only where it could be wrong."""
        wave = object.__new__(Wave)
        wave.fs = self.fs if fs is None else fs
        wave.ys = ys if ys.dim() == 2 and ys.dtype in FLOATS and ys.shape[-1] else _as_samples(ys)
        wave.metadata = dict(self.metadata)
        return wave


def load(source: str | os.PathLike[str] | BinaryIO, frame_offset: int = 0, num_frames: int = -1) -> Wave:
    """Read a file, as `Wave.from_file` does."""
    return Wave.from_file(source, frame_offset, num_frames)


FLOATS = frozenset((torch.float32, torch.float64))


def _in_seconds(bound: Any) -> bool:
    """Return whether an end of a slice is a time; 0 is one and a sample as well."""
    return isinstance(bound, str) or (isinstance(bound, Real) and not isinstance(bound, Integral))


def _in_samples(bound: Any) -> bool:
    return bound is not None and not _in_seconds(bound) and bound != 0


def _returned(name: str, y: Any) -> Tensor:
    """Return the result of a module or function as a tensor, or raise."""
    if isinstance(y, Tensor):
        return y
    if isinstance(y, np.ndarray):
        return _from_array(y)
    raise ArgumentTypeError(f"{name} must return a tensor (..., time), got {type(y).__name__}")


def _as_samples(ys: ArrayLike) -> Tensor:
    """Return samples as a float tensor (channels, time), or raise."""
    if not isinstance(ys, Tensor):
        ys = _from_array(ys)
    if ys.dtype not in FLOATS:
        ys = _scaled(ys)
    if ys.ndim == 1:
        ys = ys[None]
    if ys.ndim != 2 or ys.numel() == 0:
        hint = "; call a bank of filters on wave.ys, under torchfx.sample_rate(wave.fs)" if ys.ndim > 2 else ""
        raise ArgumentError(
            f"ys must have the shape (channels, time) or (time,) and hold samples, got {tuple(ys.shape)}{hint}"
        )
    channels, time = ys.shape
    if channels > MOST_CHANNELS and channels > 8 * time:
        raise ArgumentError(
            f"ys must have the shape (channels, time), got {channels} channels of {time} samples: the frames come "
            f"first, as in the result of soundfile.read; pass ys.T"
        )
    return ys


def _from_array(ys: Any) -> Tensor:
    try:
        array = np.asarray(ys)
    except ValueError as error:  # rows of different lengths
        raise ArgumentError(f"ys must have the shape (channels, time) or (time,): {error}") from error
    if array.dtype.kind not in "fiu":
        raise ArgumentTypeError(f"ys must hold real numbers, got {array.dtype}")
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        raise ArgumentTypeError(f"ys must be float32, float64 or integers, got {array.dtype}")
    if array.dtype.kind in "iu" and not hasattr(ys, "dtype"):
        array = array.astype(np.float32)  # a list's whole numbers are samples like its other numbers
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()  # PyTorch shares neither read-only memory nor negative strides
    return torch.from_numpy(array)


def _scaled(ys: Tensor) -> Tensor:
    """Map an integer type's range to [-1, 1), unsigned ones around their middle."""
    if ys.dtype.is_floating_point or ys.dtype.is_complex or ys.dtype == torch.bool:
        raise ArgumentTypeError(f"ys must be float32, float64 or integers, got {ys.dtype}")
    limits = torch.iinfo(ys.dtype)
    if limits.bits == 64:
        raise ArgumentTypeError(
            f"ys must be float32, float64 or integers of 8, 16 or 32 bits, got {ys.dtype}: audio of 64-bit integers "
            f"has no agreed full scale; convert it to a float type"
        )
    middle = 0 if limits.min < 0 else (limits.max + 1) // 2
    half = max(limits.max - middle + 1, 1)
    return ((ys.double() - middle) / half).float()
