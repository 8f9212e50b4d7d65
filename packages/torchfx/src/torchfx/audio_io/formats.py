"""Formats and encodings: which suffix names which, what each holds, and which encoding keeps a file's bit depth."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from typing import BinaryIO

from torchfx.audio_io.messages import shown
from torchfx.checks import sample_rate, whole_number
from torchfx.errors import ArgumentError

__all__ = [
    "AAC_FORMATS",
    "BITS",
    "FORMATS",
    "INTEGERS",
    "LOSSY",
    "AudioInfo",
    "Chapter",
    "check_channels",
    "file_rate",
    "kept_encoding",
    "long_format",
    "named_encoding",
    "named_format",
    "output_format",
]

FORMATS = {
    ".wav": "WAV", ".flac": "FLAC", ".ogg": "OGG", ".oga": "OGG", ".mp3": "MP3", ".aiff": "AIFF", ".aif": "AIFF",
    ".opus": "OPUS", ".m4a": "M4A", ".aac": "AAC", ".raw": "RAW",
}  # fmt: skip
DEFAULT_ENCODING = {
    "WAV": "FLOAT",
    "FLAC": "PCM_24",
    "OGG": "VORBIS",
    "MP3": "MPEG_LAYER_III",
    "AIFF": "PCM_24",
    "OPUS": "OPUS",
    "M4A": "AAC",
    "AAC": "AAC",
    "RAW": "PCM_16",
}
AAC_FORMATS = {"M4A", "AAC"}  # that PyAV reads and writes
LOSSY = ("MP3", "OGG", "OPUS", "M4A", "AAC")  # have a bit rate, and no bits per sample
MOST_CHANNELS = {
    "WAV": 1024, "FLAC": 8, "OGG": 255, "MP3": 2, "AIFF": 1024, "OPUS": 255, "M4A": 2, "AAC": 2, "RAW": 1024,
}  # fmt: skip
OPUS_RATES = (8000, 12_000, 16_000, 24_000, 48_000)  # Hz
AAC_RATES = (7350, 8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000)
RATES = {"OPUS": OPUS_RATES, "M4A": AAC_RATES, "AAC": AAC_RATES}
# Hz. libsndfile 1.2.2 ends in a segmentation fault beyond Vorbis' limits of channels and rate, and writes 800 MHz into
# an AIFF from 2^30 Hz on.
HIGHEST_RATE = {"OGG": 200_000, "AIFF": (1 << 30) - 1}
LONGEST_HEADER = 1 << 16  # bytes, with all tags at their longest
COUNTABLE = (1 << 32) - LONGEST_HEADER  # bytes of samples: WAV and AIFF count theirs in 32 bits
INTEGERS = {"PCM_S8": 8, "PCM_U8": 8, "PCM_16": 16, "PCM_24": 24, "PCM_32": 32}
BITS = {
    **INTEGERS, "FLOAT": 32, "DOUBLE": 64, "ALAC_16": 16, "ALAC_20": 20, "ALAC_24": 24, "ALAC_32": 32,
    "DWVW_12": 12, "DWVW_16": 16, "DWVW_24": 24, "DPCM_8": 8, "DPCM_16": 16,
}  # fmt: skip
# The integers that every reader of a format knows, narrow to wide. AIFF-C's unsigned bytes are not among them.
COMMON_INTEGERS = {
    "WAV": ("PCM_U8", "PCM_16", "PCM_24", "PCM_32"),
    "FLAC": ("PCM_S8", "PCM_16", "PCM_24"),
    "AIFF": ("PCM_S8", "PCM_16", "PCM_24", "PCM_32"),
    "RAW": ("PCM_U8", "PCM_16", "PCM_24", "PCM_32"),
}
WITH_FLOATS = {"WAV", "AIFF", "RAW"}
# libsndfile 1.2.2 lists these encodings and refuses to write them.
UNWRITABLE = {
    "WAV": {"MPEG_LAYER_III"},
    "MP3": {"MPEG_LAYER_I", "MPEG_LAYER_II"},
    "AIFF": {"DWVW_12", "DWVW_16", "DWVW_24"},
}


@dataclass(frozen=True)
class Chapter:
    """A chapter of a recording; it ends where the next chapter begins.

    Attributes:
        start_s: start, seconds. Files store it with a resolution of 1 ms.
        title: title of the chapter.
    """

    start_s: float
    title: str


@dataclass(frozen=True)
class AudioInfo:
    """Metadata of an audio file.

    Attributes:
        fs: sample rate, Hz.
        channels: number of channels.
        frames: samples per channel.
        format: container, such as "WAV".
        encoding: sample encoding, such as "PCM_16".
        tags: tags by name, such as "title"; see `torchfx.audio_io.TAGS`.
        bitrate: bit rate of a lossy encoding, bits per second: nominal for Vorbis, else the mean; None for lossless
            encodings.
        chapters: chapters, sorted by start.
    """

    fs: int
    channels: int
    frames: int
    format: str
    encoding: str
    tags: dict[str, str] = field(default_factory=dict, hash=False)
    bitrate: int | None = None
    chapters: tuple[Chapter, ...] = ()

    @property
    def bits(self) -> int | None:
        """Bits per sample, or None for a lossy encoding."""
        return BITS.get(self.encoding)


def kept_encoding(path: str | os.PathLike[str] | BinaryIO, source: AudioInfo, format: str | None = None) -> str:
    """Return the encoding of an output that keeps the bit depth of its source.

    It is the source's own encoding in the source's format. In another format it is the narrowest integers that hold the
    source's integers, else the widest integers; floats stay floats in WAV and AIFF. A lossy source, and a lossy output,
    gets the default encoding.

    Args:
        path: the output, whose suffix decides its format.
        source: what was read.
        format: the output's format, if its suffix names no format.

    Returns:
        The encoding to pass to `save` or `Writer`.

    Raises:
        ArgumentError: an unknown format, or another format than the suffix names.
    """
    container = output_format(path, format)
    if container == source.format and source.encoding in _writable(container):
        return source.encoding
    if source.bits is None or container not in COMMON_INTEGERS:
        return DEFAULT_ENCODING[container]
    if source.encoding in {"FLOAT", "DOUBLE"} and container in WITH_FLOATS:
        return source.encoding
    integers = COMMON_INTEGERS[container]
    return next((encoding for encoding in integers if INTEGERS[encoding] >= source.bits), integers[-1])


def output_format(path: str | os.PathLike[str] | BinaryIO, format: str | None) -> str:
    """Return the format of an output, a path or a file object that may have a name, or raise."""
    named = path if isinstance(path, (str, os.PathLike)) else getattr(path, "name", "")
    suffix = os.path.splitext(os.fsdecode(named) if isinstance(named, (str, os.PathLike)) else "")[1]  # noqa: PTH122
    return named_format(suffix, format, shown(path))


def named_format(suffix: str, name: str | None, path: str) -> str:
    """Return the format that `name` or `suffix` names; raise if there is no such format, or if both disagree."""
    by_suffix = FORMATS.get(suffix.lower())
    if name is None:
        if by_suffix is None:
            raise ArgumentError(f"path must end in one of {', '.join(FORMATS)} (or pass format=), got {path!r}")
        return by_suffix
    container = name.upper()
    if container not in DEFAULT_ENCODING:
        raise ArgumentError(f"format must be one of {', '.join(DEFAULT_ENCODING)}, got {name!r}")
    if by_suffix not in {None, container}:
        raise ArgumentError(
            f"format must be {by_suffix}, the format of the suffix {suffix} of {path}, got {name}; use another suffix, "
            f"or omit format"
        )
    return container


def named_encoding(container: str, encoding: str | None, bits: int | None, double: bool) -> str:
    """Return libsndfile's name of the encoding requested, the format's default if none was, or raise."""
    if encoding is None and bits is None:
        return "DOUBLE" if double and container == "WAV" else DEFAULT_ENCODING[container]
    subtype = _subtype(container, encoding.upper() if encoding else None, bits)
    allowed = _writable(container)
    if subtype not in allowed:
        asked = f"encoding={encoding!r}, bits_per_sample={bits!r}"
        raise ArgumentError(f"{container} files hold {', '.join(sorted(allowed))}; got {asked}")
    return subtype


@cache
def _writable(container: str) -> frozenset[str]:
    import soundfile

    if container == "OPUS":  # an Ogg file, too, but named otherwise
        return frozenset({"OPUS"})
    if container in AAC_FORMATS:
        return frozenset({"AAC"})
    return frozenset(soundfile.available_subtypes(container)) - UNWRITABLE.get(container, set())


def _subtype(container: str, encoding: str | None, bits: int | None) -> str:
    eight = "PCM_U8" if container == "WAV" else "PCM_S8"
    if encoding in {None, "PCM_S", "PCM_U"}:
        return eight if bits == 8 else f"PCM_{bits or 16}"
    if encoding == "PCM_F":
        return {None: "FLOAT", 32: "FLOAT", 64: "DOUBLE"}.get(bits, f"PCM_F with {bits} bits")
    if bits is not None and INTEGERS.get(str(encoding)) != bits:
        return f"{encoding} with {bits} bits"
    return str(encoding)


def file_rate(container: str, fs: float) -> int:
    """Return a sample rate as the format holds it, or raise."""
    rate = sample_rate(fs)
    if not isinstance(rate, int):
        raise ArgumentError(f"fs must be a whole number of Hz in an audio file, got {fs}")
    if rate not in RATES.get(container, (rate,)):
        allowed = ", ".join(map(str, RATES[container]))
        raise ArgumentError(f"fs must be one of {allowed} Hz in {container} files, got {rate}")
    highest = HIGHEST_RATE.get(container, (1 << 31) - 1)
    if rate > highest:
        raise ArgumentError(f"fs must lie in (0, {highest}] Hz in {container} files, got {rate}")
    return rate


def check_channels(container: str, channels: int) -> int:
    """Return the number of channels, or raise if the format holds fewer."""
    if whole_number("channels", channels, 1) > MOST_CHANNELS[container]:
        raise ArgumentError(
            f"ys must have 1 to {MOST_CHANNELS[container]} channels in {container} files, got {channels}"
        )
    return int(channels)


def long_format(container: str, encoding: str, samples: int) -> str:
    """Return the container that can count the samples' bytes; libsndfile would lose the rest silently."""
    size = samples * (BITS.get(encoding, 8) // 8)
    if container not in {"WAV", "AIFF"} or size < COUNTABLE:
        return container
    if container == "WAV" and encoding in {"FLOAT", "DOUBLE", *INTEGERS}:
        return "RF64"
    raise ArgumentError(f"ys must be shorter than 4 GiB in {container} files of {encoding}, got {size} bytes")
