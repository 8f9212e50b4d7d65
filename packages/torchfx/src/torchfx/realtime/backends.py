"""Backends of a live engine: a sound device through PortAudio, or a clock for machines without a sound device."""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from torchfx import audio_io
from torchfx.errors import ArgumentError, ArgumentTypeError, TorchFXError
from torchfx.realtime.config import RealtimeConfig
from torchfx.realtime.engine import Block, Engine

__all__ = ["Backend", "DeviceError", "FileClock", "SoundDevice", "Source", "Target"]

Source = str | os.PathLike[str] | BinaryIO | Tensor | Iterable[Tensor]
Target = str | os.PathLike[str] | BinaryIO | Callable[[Tensor], object]


class DeviceError(TorchFXError, OSError):
    """A sound device cannot be opened, or has disappeared."""


class Backend(ABC):
    """Calls a live engine for every block.

    Attributes:
        source: the input instead of the device's: a file, a tensor (channels, time), or blocks (channels, n) of any
            length; None: the device.
        target: an additional output: a file, or a function that is called with blocks (channels, n); None: no
            additional output.
        interleaved: whether the device's samples are (time, channels) or have one pointer per channel.
    """

    source: Source | None = None
    target: Target | None = None
    interleaved = True

    @abstractmethod
    def open(self, engine: Engine, config: RealtimeConfig) -> None:
        """Prepare to call an engine."""

    @abstractmethod
    def start(self) -> None:
        """Start calling the engine."""

    @abstractmethod
    def close(self) -> None:
        """Stop calling the engine. May be called in any state."""

    def problem(self) -> str:
        """Return the reason why the backend stopped, or ""."""
        return ""

    @property
    def latency_s(self) -> float:
        """The latency that the device adds, in seconds."""
        return 0.0


class FileClock(Backend):
    """A thread instead of a sound device: reads a file or tensor, and writes a file or tensor.

    Args:
        source: a file, a tensor (channels, time), or an iterable of tensors (channels, n).
        target: a file to write, or a function that is called with every block; None: `output` holds the result.
        real_time: whether blocks are processed in real time, or as fast as possible.

    Attributes:
        output: the result (channels, time) if no target is given: as long as the source, with the latency compensated.

    Examples:
        >>> import torch, torchfx as fx
        >>> clock = fx.realtime.FileClock(torch.randn(2, 48_000))
        >>> with fx.realtime.RealtimeProcessor(fx.effect.Gain(0.5), clock) as live:
        ...     live.wait()
        True
        >>> clock.output.shape
        torch.Size([2, 48000])
    """

    def __init__(self, source: Source, target: Target | None = None, real_time: bool = False) -> None:
        self.source, self.real_time = source, bool(real_time)
        self._kept: list[Tensor] = []
        self.target = self._kept.append if target is None else target
        self._engine: Engine | None = None

    @property
    def output(self) -> Tensor:
        """The result so far."""
        return torch.cat(self._kept, dim=-1) if self._kept else torch.zeros(1, 0)

    def open(self, engine: Engine, config: RealtimeConfig) -> None:
        """Discard an earlier result."""
        self._engine = engine
        self._kept.clear()

    def start(self) -> None:
        """Start the thread."""
        assert self._engine is not None
        self._engine.start_clock(self.real_time)

    def close(self) -> None:
        """Stop the thread."""
        if self._engine is not None:
            self._engine.stop_clock()
            self._engine = None


def blocks_of(source: Source, config: RealtimeConfig) -> Iterator[tuple[Block, int]]:
    """Yield blocks (channels, block) of a source, padded with zeros at its end, with their number of valid samples.

    Raises:
        ArgumentError: the rate or the number of channels differs from the configuration.
    """
    channels, size = config.channels, config.block_size
    parts = _parts(source, config)
    rest: list[Block] = []
    held = 0
    for part in parts:
        if part.ndim != 2 or part.shape[0] not in {1, channels}:
            raise ArgumentError(f"source must have 1 or {channels} channels, (channels, time), got {part.shape}")
        rest.append(np.broadcast_to(part, (channels, part.shape[1])))
        held += part.shape[1]
        if held >= size:
            joined = np.concatenate(rest, axis=1) if len(rest) > 1 else rest[0]
            whole = held // size * size
            for start in range(0, whole, size):
                yield np.ascontiguousarray(joined[:, start : start + size]), size
            rest, held = [joined[:, whole:]], held - whole
    if held:
        last = np.zeros((channels, size), np.float32)
        last[:, :held] = np.concatenate(rest, axis=1)
        yield last, held


def _parts(source: Source, config: RealtimeConfig) -> Iterator[Block]:
    if isinstance(source, Tensor):
        yield source.detach().to("cpu", torch.float32).reshape(-1, source.shape[-1]).numpy()
    elif isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        with audio_io.Reader(source) as reader:  # type: ignore[arg-type]
            if reader.fs != config.sample_rate:
                raise ArgumentError(
                    f"source must have the sample rate of the configuration, {config.sample_rate:g} Hz, "
                    f"got {reader.fs:g} Hz: convert it, or configure that rate"
                )
            while True:
                found = reader.read_array(1 << 14)
                if found.shape[-1] == 0:
                    return
                yield found.astype(np.float32, copy=False)
    else:
        for part in source:
            yield part.detach().to("cpu", torch.float32).numpy()


def check_ends(source: object, target: object) -> None:
    """Raise if source or target is invalid."""
    files_or_samples = (str, os.PathLike, Tensor, Iterable)
    if source is not None and not isinstance(source, files_or_samples) and not hasattr(source, "read"):
        raise ArgumentTypeError(f"source must be a file, a tensor or tensors, got {type(source).__name__}")
    if (
        target is not None
        and not isinstance(target, (str, os.PathLike))
        and not callable(target)
        and not hasattr(target, "write")
    ):
        raise ArgumentTypeError(f"target must be a file or a function, got {type(target).__name__}")


# --- PortAudio --------------------------------------------------------------------------------------------------------


class _Parameters(ctypes.Structure):
    _fields_ = (
        ("device", ctypes.c_int), ("channels", ctypes.c_int), ("format", ctypes.c_ulong),
        ("latency", ctypes.c_double), ("host_specific", ctypes.c_void_p),
    )  # fmt: skip


class _DeviceInfo(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int), ("name", ctypes.c_char_p), ("host", ctypes.c_int), ("inputs", ctypes.c_int),
        ("outputs", ctypes.c_int), ("low_input_latency", ctypes.c_double), ("low_output_latency", ctypes.c_double),
        ("high_input_latency", ctypes.c_double), ("high_output_latency", ctypes.c_double), ("rate", ctypes.c_double),
    )  # fmt: skip


class _StreamInfo(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int), ("input_latency", ctypes.c_double), ("output_latency", ctypes.c_double),
        ("rate", ctypes.c_double),
    )  # fmt: skip


FLOAT32, NO_DEVICE = 1, -1


def portaudio() -> Any:
    """Return PortAudio's library, as found by the package sounddevice.

    Raises:
        DeviceError: sounddevice or PortAudio is not installed.
    """
    try:
        import sounddevice
    except ImportError:
        raise DeviceError(
            "sound devices need the package sounddevice: pip install sounddevice; without a device, a file can stand "
            "for it: torchfx.realtime.FileClock, on the command line --clock --input FILE --output FILE"
        ) from None
    except OSError as error:
        raise DeviceError(
            f"sound devices need PortAudio ({error}): install the system's package, such as libportaudio2 on Debian"
        ) from None
    library = ctypes.CDLL(sounddevice._libname)
    library.Pa_GetErrorText.restype = ctypes.c_char_p
    library.Pa_GetDeviceInfo.restype = ctypes.POINTER(_DeviceInfo)
    library.Pa_GetStreamInfo.restype = ctypes.POINTER(_StreamInfo)
    library.Pa_OpenStream.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_ulong, ctypes.c_ulong,
        ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    for name in ("StartStream", "StopStream", "CloseStream", "IsStreamActive", "GetStreamInfo", "AbortStream"):
        getattr(library, f"Pa_{name}").argtypes = [ctypes.c_void_p]
    return library


class SoundDevice(Backend):
    """A sound device through PortAudio, which calls the engine directly, without Python.

    Args:
        source: the input instead of the input device: a file, a tensor, an iterable of tensors; None: the input device.
        target: an additional output: a file, or a function; None: no additional output.
        playback: whether the output device plays the result.
        library: PortAudio's functions; None uses the package sounddevice.

    Raises:
        DeviceError: PortAudio is missing, the device does not exist, or it cannot be opened; the message states which.
    """

    def __init__(
        self, source: Source | None = None, target: Target | None = None, playback: bool = True, library: Any = None
    ) -> None:
        self.source, self.target, self.playback = source, target, playback
        self._library = library
        self._stream: ctypes.c_void_p | None = None
        self._started = False

    def open(self, engine: Engine, config: RealtimeConfig) -> None:
        """Open the configured devices, or the system's default devices."""
        pa = self._library = portaudio() if self._library is None else self._library
        self._check(pa.Pa_Initialize(), "PortAudio cannot be started")
        try:
            heard = None if self.source is not None else self._device(config.input_device, "input", config.channels)
            played = self._device(config.output_device, "output", config.channels) if self.playback else None
            stream = ctypes.c_void_p()
            status = pa.Pa_OpenStream(
                ctypes.addressof(stream),
                None if heard is None else ctypes.addressof(heard),
                None if played is None else ctypes.addressof(played),
                float(config.sample_rate), config.block_size, 0, engine.callback, engine.handle,
            )  # fmt: skip
            self._check(
                status,
                f"the sound device cannot be opened with {config.channels} channels at {config.sample_rate:g} Hz "
                f"and blocks of {config.block_size} samples",
            )
        except BaseException:
            pa.Pa_Terminate()
            raise
        self._stream = stream

    def start(self) -> None:
        """Start the stream."""
        self._check(self._library.Pa_StartStream(self._stream), "the sound device cannot be started")
        self._started = True

    def close(self) -> None:
        """Stop and close the stream."""
        if self._stream is None:
            return
        if self._started:
            self._library.Pa_AbortStream(self._stream)
        self._library.Pa_CloseStream(self._stream)
        self._library.Pa_Terminate()
        self._stream, self._started = None, False

    def problem(self) -> str:
        """Return a message if the device stopped by itself, else ""."""
        if not self._started:
            return ""
        active = self._library.Pa_IsStreamActive(self._stream)
        if active == 1:
            return ""
        return "the sound device is gone" + ("" if active == 0 else f": {self._text(active)}")

    @property
    def latency_s(self) -> float:
        """The latency that the device reports, in seconds."""
        if self._stream is None:
            return 0.0
        info = self._library.Pa_GetStreamInfo(self._stream)
        return float(info.contents.input_latency + info.contents.output_latency) if info else 0.0

    def _device(self, wanted: int | str | None, kind: str, channels: int) -> _Parameters:
        pa = self._library
        every = [pa.Pa_GetDeviceInfo(i).contents for i in range(max(0, pa.Pa_GetDeviceCount()))]
        able = [i for i, info in enumerate(every) if getattr(info, f"{kind}s") >= channels]
        shown = "; ".join(f"{i}: {every[i].name.decode(errors='replace')}" for i in able) or "none"
        if wanted is None:
            index = pa.Pa_GetDefaultInputDevice() if kind == "input" else pa.Pa_GetDefaultOutputDevice()
            if index == NO_DEVICE:
                raise DeviceError(f"this machine has no {kind} device that PortAudio can see")
        elif isinstance(wanted, str):
            named = [i for i in able if wanted.lower() in every[i].name.decode(errors="replace").lower()]
            index = named[0] if named else NO_DEVICE
        else:
            index = wanted
        if index not in able:
            called = "the default" if wanted is None else repr(wanted)
            raise DeviceError(
                f"no {kind} device {called} with {channels} channels; devices with enough channels: {shown}"
            )
        return _Parameters(index, channels, FLOAT32, getattr(every[index], f"low_{kind}_latency"), None)

    def _check(self, status: int, what: str) -> None:
        if status != 0:
            raise DeviceError(f"{what}: {self._text(status)}")

    def _text(self, status: int) -> str:
        text: bytes = self._library.Pa_GetErrorText(status)
        return text.decode(errors="replace")
