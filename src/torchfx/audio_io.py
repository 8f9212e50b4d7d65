"""Audio files: the suffix decides the format, outputs appear whole or not at all, and errors fit one line."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from torchfx.checks import sample_rate, whole_number
from torchfx.errors import ArgumentError, AudioFileError

if TYPE_CHECKING:
    import numpy.typing as npt
    from soundfile import SoundFile

__all__ = ["FORMATS", "AudioInfo", "ClippingWarning", "info", "load", "save"]

FORMATS = {
    ".wav": "WAV", ".flac": "FLAC", ".ogg": "OGG", ".oga": "OGG", ".mp3": "MP3", ".aiff": "AIFF", ".aif": "AIFF",
}  # fmt: skip
DEFAULT_ENCODING = {
    "WAV": "FLOAT",
    "FLAC": "PCM_24",
    "OGG": "VORBIS",
    "MP3": "MPEG_LAYER_III",
    "AIFF": "PCM_24",
}
MOST_CHANNELS = {"WAV": 1024, "FLAC": 8, "OGG": 255, "MP3": 2, "AIFF": 1024}
HIGHEST_RATE = {"OGG": 200_000}  # Hz; libsndfile 1.2 dies of a segmentation fault beyond these two limits of Vorbis
LONGEST_HEADER = 1 << 16  # bytes that a header takes at most, generously
COUNTABLE = (1 << 32) - LONGEST_HEADER  # bytes of samples: WAV and AIFF count theirs in 32 bits
INTEGER_BITS = {"PCM_S8": 8, "PCM_U8": 8, "PCM_16": 16, "PCM_24": 24, "PCM_32": 32}
BLOCK = 1 << 18  # frames converted at a time, so that a long recording needs no second copy


class ClippingWarning(UserWarning):
    """Samples beyond full scale were clipped because the file holds integers."""


@dataclass(frozen=True)
class AudioInfo:
    """What a file says of itself.

    Attributes:
        fs: sample rate, Hz.
        channels: number of channels.
        frames: samples per channel.
        format: container, such as "WAV".
        encoding: how samples are held, such as "PCM_16".
    """

    fs: int
    channels: int
    frames: int
    format: str
    encoding: str


def info(path: str | os.PathLike[str]) -> AudioInfo:
    """Read a file's header.

    Raises:
        AudioFileError: the file is missing, empty, truncated or of no known format.
    """
    with _opened(path) as file:
        container = "WAV" if file.format in {"WAVEX", "RF64"} else file.format  # WAVs with longer headers
        return AudioInfo(file.samplerate, file.channels, file.frames, container, file.subtype)


def load(path: str | os.PathLike[str], frame_offset: int = 0, num_frames: int = -1) -> tuple[Tensor, int]:
    """Read samples.

    Args:
        path: WAV, FLAC, OGG, MP3, AIFF or whatever else libsndfile reads.
        frame_offset: first frame to read, >= 0.
        num_frames: how many, > 0; -1 reads to the end. Fewer come back where the file ends.

    Returns:
        Samples (channels, frames) and the sample rate in Hz; float64 if the file holds doubles, float32 otherwise,
        integers scaled to [-1, 1).

    Raises:
        AudioFileError: the file is missing, empty, truncated, or of no known format.
        ArgumentError: frame_offset or num_frames out of range.
    """
    if num_frames != -1:
        whole_number("num_frames (-1 for all)", num_frames, 1)
    whole_number("frame_offset", frame_offset, 0)
    with _opened(path) as file:
        if frame_offset >= file.frames:
            raise ArgumentError(f"frame_offset must lie in [0, {file.frames}) for {path}, got {frame_offset}")
        count = file.frames - frame_offset
        wanted = count if num_frames == -1 else min(num_frames, count)
        if frame_offset:  # GSM 6.10 cannot be sought in, not even to its start
            file.seek(frame_offset)
        dtype = "float64" if file.subtype == "DOUBLE" else "float32"
        try:
            samples = torch.empty(file.channels, wanted, dtype=getattr(torch, dtype))
        except RuntimeError as error:  # a damaged header may promise anything
            shape = f"{wanted} frames of {file.channels} channels"
            raise AudioFileError(f"cannot read {path}: the {shape} it promises do not fit into memory") from error
        for start in range(0, wanted, BLOCK):
            size = min(BLOCK, wanted - start)
            block = file.read(size, dtype=dtype, always_2d=True)
            if len(block) < size:
                raise AudioFileError(
                    f"cannot read {path}: truncated, it promises {file.frames} frames and ends after "
                    f"{frame_offset + start + len(block)}"
                )
            samples[:, start : start + size] = torch.from_numpy(block).T
        return samples, file.samplerate


def save(
    path: str | os.PathLike[str],
    ys: Tensor,
    fs: float,
    format: str | None = None,
    encoding: str | None = None,
    bits_per_sample: int | None = None,
) -> None:
    """Write samples; the file appears under its name only when it is complete.

    Args:
        path: where to; the suffix decides the format: .wav, .flac, .ogg, .mp3, .aiff. A WAV beyond 4 GiB is written as
            RF64, its form for long recordings.
        ys: float32 or float64, (channels, frames).
        fs: sample rate, Hz, a whole number.
        format: the format's name, instead of the suffix.
        encoding: "PCM_S", "PCM_U", "PCM_F", "ULAW", "ALAW", or libsndfile's name of a subtype; by default float for WAV
            (double for float64 samples), 24-bit integers for FLAC and AIFF, Vorbis for OGG.
        bits_per_sample: 8, 16, 24, 32 (or 64 for "PCM_F").

    Raises:
        ArgumentError: an unknown format; an encoding, a rate or a number of channels the format cannot hold; NaN where
            the file holds integers.
        AudioFileError: the file cannot be written.

    Warns:
        ClippingWarning: samples beyond full scale in an integer encoding, with their number.
    """
    path = Path(path)
    container = _container(path, format)
    subtype = _subtype(container, encoding, bits_per_sample, double=ys.dtype == torch.float64)
    rate = sample_rate(fs)
    if not isinstance(rate, int):
        raise ArgumentError(f"fs must be a whole number of Hz in an audio file, got {fs}")
    if ys.ndim != 2 or ys.numel() == 0:
        raise ArgumentError(f"ys must have the shape (channels, frames) and hold samples, got {tuple(ys.shape)}")
    _check_capacity(container, ys.shape[0], rate)
    ys = ys.detach().cpu()
    if subtype not in {"FLOAT", "DOUBLE"} and not bool(torch.isfinite(ys).all()):
        raise ArgumentError(f"ys must be finite in a {subtype} file, got {int((~torch.isfinite(ys)).sum())} NaN or inf")
    container = _long_form(container, subtype, ys.numel())
    with _written(path) as temporary:
        clipped = _encode(_native(temporary), path, ys, rate, container, subtype)
    if clipped:
        warnings.warn(
            f"{path}: {clipped} of {ys.numel()} samples lie beyond full scale and were clipped ({subtype}); "
            f"normalise first, or save as floating point",
            ClippingWarning,
            stacklevel=3,
        )


def _encode(temporary: str | bytes, path: Path, ys: Tensor, rate: int, container: str, subtype: str) -> int:
    """Write samples to a temporary name of `path`, all of them or raise; return how many were clipped."""
    import soundfile

    bits, clipped = INTEGER_BITS.get(subtype), 0
    try:
        with soundfile.SoundFile(
            temporary, "w", samplerate=rate, channels=ys.shape[0], format=container, subtype=subtype
        ) as file:
            for block in ys.split(BLOCK, dim=-1):
                frames = block.T.contiguous().numpy()
                if bits is not None:
                    clipped += int((np.abs(frames) > 1).sum())
                    frames = _quantised(frames, bits)
                file.write(frames)
        with soundfile.SoundFile(temporary) as file:  # Vorbis does not tell when the disk is full
            kept = file.frames
    except (soundfile.LibsndfileError, ValueError) as error:
        raise AudioFileError(f"cannot write {path}: {_reason(error)}") from error
    if kept < ys.shape[1]:
        raise AudioFileError(f"cannot write {path}: {kept} of {ys.shape[1]} frames were kept; is the disk full?")
    return clipped


def _quantised(frames: npt.NDArray[Any], bits: int) -> npt.NDArray[np.int32]:
    """Round to integers, top-aligned in 32 bits as libsndfile takes them; what was read comes back bit by bit."""
    full_scale = 2.0 ** (bits - 1)
    integers = np.clip(np.rint(frames.astype(np.float64) * full_scale), -full_scale, full_scale - 1)
    return np.left_shift(integers.astype(np.int64), 32 - bits).astype(np.int32)


def _check_capacity(container: str, channels: int, rate: int) -> None:
    """Raise where the format has no room for so many channels or so high a rate."""
    if channels > MOST_CHANNELS[container]:
        raise ArgumentError(
            f"ys must have 1 to {MOST_CHANNELS[container]} channels in {container} files, got {channels}"
        )
    highest = HIGHEST_RATE.get(container, (1 << 31) - 1)
    if rate > highest:
        raise ArgumentError(f"fs must lie in (0, {highest}] Hz in {container} files, got {rate}")


def _long_form(container: str, subtype: str, samples: int) -> str:
    """Return the container that can count the bytes of so many samples; libsndfile would lose the rest silently."""
    width = {"FLOAT": 4, "DOUBLE": 8}.get(subtype, INTEGER_BITS.get(subtype, 8) // 8)
    if container not in {"WAV", "AIFF"} or samples * width < COUNTABLE:
        return container
    if container == "WAV" and subtype in {"FLOAT", "DOUBLE", *INTEGER_BITS}:
        return "RF64"
    raise ArgumentError(f"ys must be shorter than 4 GiB in {container} files of {subtype}, got {samples * width} bytes")


def _native(path: str | Path) -> str | bytes:
    """Return a path as soundfile takes any: names that are not UTF-8 only as bytes, which Windows has none of."""
    return str(path) if os.name == "nt" else os.fsencode(path)


def _container(path: Path, name: str | None) -> str:
    if name is None:
        container = FORMATS.get(path.suffix.lower())
        if container is None:
            known = ", ".join(FORMATS)
            raise ArgumentError(f"path must end in one of {known} (or pass format=), got {path.name!r}")
        return container
    container = name.upper()
    if container not in DEFAULT_ENCODING:
        raise ArgumentError(f"format must be one of {', '.join(DEFAULT_ENCODING)}, got {name!r}")
    return container


def _subtype(container: str, encoding: str | None, bits: int | None, double: bool) -> str:
    import soundfile

    if encoding is None and bits is None:
        return "DOUBLE" if double and container == "WAV" else DEFAULT_ENCODING[container]
    subtype = _named_subtype(container, encoding.upper() if encoding else None, bits)
    allowed = soundfile.available_subtypes(container)
    if subtype not in allowed:
        asked = f"encoding={encoding!r}, bits_per_sample={bits!r}"
        raise ArgumentError(f"{container} files hold {', '.join(sorted(allowed))}; got {asked}")
    return subtype


def _named_subtype(container: str, encoding: str | None, bits: int | None) -> str:
    eight = "PCM_U8" if container == "WAV" else "PCM_S8"
    if encoding in {None, "PCM_S", "PCM_U"}:
        return eight if bits == 8 else f"PCM_{bits or 16}"
    if encoding == "PCM_F":
        return {None: "FLOAT", 32: "FLOAT", 64: "DOUBLE"}.get(bits, f"PCM_F with {bits} bits")
    if bits is not None and INTEGER_BITS.get(str(encoding)) != bits:
        return f"{encoding} with {bits} bits"
    return str(encoding)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[SoundFile]:
    import soundfile

    path = Path(path)
    try:
        if not path.is_file():
            raise AudioFileError(f"cannot read {path}: {'it is a folder' if path.is_dir() else 'no such file'}")
        if path.stat().st_size == 0:
            raise AudioFileError(f"cannot read {path}: the file is empty")
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise _as_file_error("read", path, error) from error
    if path.suffix.lower() == ".raw":  # soundfile would ask for what the file does not say
        raise AudioFileError(f"cannot read {path}: raw samples don't say their rate, channels and encoding")
    try:
        with soundfile.SoundFile(_native(path)) as file:
            if file.frames == 0:
                raise AudioFileError(f"cannot read {path}: it holds no samples")
            _check_length(path, file)
            yield file
    except soundfile.LibsndfileError as error:
        raise AudioFileError(f"cannot read {path}: {_reason(error)}") from error


def _check_length(path: Path, file: SoundFile) -> None:
    """Raise when the samples' chunk promises more bytes than the file has; libsndfile would shorten it silently.

    0 and values near 2^31 and 2^32 are what programs write that stream to a pipe and can't go back: not a promise.
    """
    if file.format not in {"WAV", "WAVEX", "AIFF"}:
        return
    promised, available = _data_chunk(path)
    if available < promised < 0x7F000000:
        raise AudioFileError(f"cannot read {path}: truncated, {promised - available} of {promised} bytes are missing")


def _data_chunk(path: Path) -> tuple[int, int]:
    """Return the size a WAV's or AIFF's chunk of samples promises and the bytes that follow it; zeros without one."""
    with path.open("rb") as file:
        wanted, order = _CHUNKS.get(file.read(4), (b"", "little"))
        if not wanted:
            return 0, 0
        file.seek(12)
        while len(header := file.read(8)) == 8:
            size = int.from_bytes(header[4:], order)
            if header[:4] == wanted:
                return size, path.stat().st_size - file.tell()
            file.seek(size + size % 2, os.SEEK_CUR)
    return 0, 0


_CHUNKS: dict[bytes, tuple[bytes, Literal["little", "big"]]] = {b"RIFF": (b"data", "little"), b"FORM": (b"SSND", "big")}


@contextmanager
def _written(path: Path) -> Iterator[str]:
    """Give a temporary name beside `path` and rename it to `path` when the block ends well."""
    try:
        handle, temporary = tempfile.mkstemp(prefix=".torchfx-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise _as_file_error("write", path, error) from error
    os.close(handle)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # noqa: PTH101  (mkstemp makes files private)
        os.replace(temporary, path)  # noqa: PTH105  (a plain string from mkstemp)
    except OSError as error:
        raise _as_file_error("write", path, error) from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _as_file_error(verb: str, path: Path, error: OSError) -> AudioFileError:
    """Return the system's error as this package's, in one line; one that is so already stays as it is."""
    if isinstance(error, AudioFileError):
        return error
    return AudioFileError(f"cannot {verb} {path}: {error.strerror or error}")


def _reason(error: Exception) -> str:
    text = getattr(error, "error_string", None) or str(error)
    text = text.strip().rstrip(".").removeprefix("Error : ")
    return "the system refused; is the disk full?" if text == "System error" else text
