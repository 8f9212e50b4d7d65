"""Reading and writing files as torchaudio does: float32 or the file's own integers, either axis first."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import BinaryIO, NamedTuple

import torch
from torch import Tensor

from torchfx import audio_io
from torchfx.audio_io.formats import INTEGERS
from torchfx.checks import callers_level
from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = ["AudioMetaData", "info", "load", "save"]

ENCODINGS = {
    **dict.fromkeys(INTEGERS, "PCM_S"),
    "PCM_U8": "PCM_U",
    "FLOAT": "PCM_F",
    "DOUBLE": "PCM_F",
    "MPEG_LAYER_III": "MP3",
    "GSM610": "GSM",
}
"""torchaudio's names of libsndfile's encodings, where they differ."""

BYTES = {"ULAW": 8, "ALAW": 8}  # bits a sample, of encodings that are lossy and have a fixed size

INTEGER_TYPES = {torch.uint8: 8, torch.int16: 16, torch.int32: 32}


class AudioMetaData(NamedTuple):
    """Rate, length, channels and encoding of a file.

    Attributes:
        sample_rate: Hz.
        num_frames: samples per channel.
        num_channels: number of channels.
        bits_per_sample: of integers, floats and companded samples; 0 otherwise.
        encoding: how samples are held: "PCM_S", "PCM_U", "PCM_F", "FLAC", "ULAW", "ALAW", "VORBIS", "OPUS", "MP3".
    """

    sample_rate: int
    num_frames: int
    num_channels: int
    bits_per_sample: int
    encoding: str


def info(
    uri: str | os.PathLike[str] | BinaryIO,
    format: str | None = None,
    buffer_size: int = 4096,
    backend: str | None = None,
) -> AudioMetaData:
    """Read a file's header.

    Args:
        uri: a path or a binary file object.
        format, buffer_size, backend: not needed; torchaudio takes them.

    Raises:
        AudioFileError: the file is missing, empty, truncated or of no known format.

    Examples:
        >>> import io
        >>> file = io.BytesIO()
        >>> save(file, torch.zeros(2, 100), 8000, format="flac", bits_per_sample=16)
        >>> _ = file.seek(0)
        >>> info(file)
        AudioMetaData(sample_rate=8000, num_frames=100, num_channels=2, bits_per_sample=16, encoding='FLAC')
    """
    found = audio_io.info(uri)
    encoding = "FLAC" if found.format == "FLAC" else ENCODINGS.get(found.encoding, found.encoding)
    bits = BYTES.get(found.encoding, found.bits or 0)
    return AudioMetaData(found.fs, found.frames, found.channels, bits, encoding)


def load(
    uri: str | os.PathLike[str] | BinaryIO,
    frame_offset: int = 0,
    num_frames: int = -1,
    normalize: bool = True,
    channels_first: bool = True,
    format: str | None = None,
    buffer_size: int = 4096,
    backend: str | None = None,
) -> tuple[Tensor, int]:
    """Read samples.

    Args:
        uri: a path or a binary file object.
        frame_offset: first frame to read.
        num_frames: how many; -1 reads to the end. Fewer come back where the file ends.
        normalize: whether integers are scaled to [-1, 1) in float32; otherwise they come as uint8 (8 bits), int16, or
            int32 (24 and 32 bits, aligned to the top).
        channels_first: whether the result is (channels, time), else (time, channels).
        format, buffer_size, backend: not needed; torchaudio takes them.

    Returns:
        The samples and the sample rate (Hz).

    Raises:
        AudioFileError: the file is missing, empty, truncated or of no known format.
        ArgumentError: frame_offset or num_frames out of range.

    Examples:
        >>> import io
        >>> file = io.BytesIO()
        >>> save(file, torch.tensor([[0.5, -0.5]]), 8000, format="wav", encoding="PCM_S", bits_per_sample=16)
        >>> _ = file.seek(0)
        >>> load(file, normalize=False)
        (tensor([[ 16384, -16384]], dtype=torch.int16), 8000)
    """
    with audio_io.Reader(uri) as file:
        found = file.part(frame_offset, num_frames) if normalize else _as_held(file, frame_offset, num_frames)
        rate = file.fs
    if normalize:
        found = found.float()
    return found if channels_first else found.T, rate


def _as_held(file: audio_io.Reader, frame_offset: int, num_frames: int) -> Tensor:
    """Return the integers of a file, or its floats."""
    bits = INTEGERS.get(file.encoding)
    if bits is None:
        return file.part(frame_offset, num_frames).float()
    if bits < 32:
        samples = file.part(frame_offset, num_frames).double()
    else:  # float32 does not hold them
        file.part(frame_offset, 1)
        file.seek(frame_offset)
        samples = torch.from_numpy(file.read_array(file.frames if num_frames == -1 else num_frames, exact=True))
    if file.encoding == "PCM_U8":
        return (samples * 128 + 128).to(torch.uint8)
    if bits <= 16:
        return (samples * 2.0**15).to(torch.int16)
    return (samples * 2.0**31).to(torch.int32)


def save(
    uri: str | os.PathLike[str] | BinaryIO,
    src: Tensor,
    sample_rate: int,
    channels_first: bool = True,
    format: str | None = None,
    encoding: str | None = None,
    bits_per_sample: int | None = None,
    buffer_size: int = 4096,
    backend: str | None = None,
    compression: float | None = None,
) -> None:
    """Write samples; the file appears under its name only when it is complete.

    Args:
        uri: a path, whose suffix decides the format, or a binary file object.
        src: (channels, time), or (time,) for one channel: floats in [-1, 1], or uint8, int16 or int32 of full scale.
        sample_rate: Hz.
        channels_first: whether `src` is (channels, time), else (time, channels).
        format: the format's name, if the suffix names no format; it must not contradict the suffix.
        encoding: "PCM_S", "PCM_U", "PCM_F", "ULAW" or "ALAW". A WAV of integers holds integers by default.
        bits_per_sample: 8, 16, 24 or 32 (or 64 for "PCM_F").
        compression: of MP3, kbit/s. Other formats are written with their encoder's default.
        buffer_size, backend: not needed; torchaudio takes them.

    Raises:
        ArgumentError: a shape, a rate, an encoding that the format cannot hold; a format that contradicts the suffix.
        ArgumentTypeError: samples of another type.
        AudioFileError: the file can't be written.

    Warns:
        UserWarning: `compression` of another format, which changes nothing.
    """
    if not isinstance(src, Tensor):
        raise ArgumentTypeError(f"src must be a tensor, got {type(src).__name__}")
    if src.dim() not in {1, 2}:
        raise ArgumentError(f"src must have the shape (channels, time) or (time,), got {tuple(src.shape)}")
    ys = src.detach().cpu()
    ys = ys[None] if ys.dim() == 1 else ys if channels_first else ys.T
    bits = INTEGER_TYPES.get(ys.dtype)
    suffix = (format or (Path(uri).suffix.lstrip(".") if isinstance(uri, (str, os.PathLike)) else "")).lower()
    if bits is not None:
        half = 2.0 ** (bits - 1)
        ys = (ys.double() - half * (bits == 8)) / half
        if suffix == "wav" and encoding is None:
            encoding, bits_per_sample = "PCM_U" if bits == 8 else "PCM_S", bits_per_sample or bits
    elif ys.dtype in {torch.float16, torch.bfloat16}:
        ys = ys.float()
    bitrate = None
    if compression is not None and suffix == "mp3":
        bitrate = round(1000 * abs(compression))
    elif compression is not None:
        warnings.warn(
            f"compression is the bit rate of MP3 (kbit/s), and changes nothing of {suffix}",
            UserWarning,
            stacklevel=callers_level(),
        )
    audio_io.save(uri, ys, sample_rate, format, encoding, bits_per_sample, bitrate=bitrate)
