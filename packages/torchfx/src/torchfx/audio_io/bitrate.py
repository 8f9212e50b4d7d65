"""Bit rates of lossy encodings, as what libsndfile takes for them: a level of compression from 0 to 1."""

from __future__ import annotations

import io
import os
from functools import cache
from typing import Any, BinaryIO

from torchfx.audio_io.formats import AAC_FORMATS, LOSSY, AudioInfo, output_format
from torchfx.checks import whole_number
from torchfx.errors import ArgumentError

__all__ = ["compression", "kept_bitrate", "mean_bitrate", "mp3_scale", "vorbis_bitrate"]

# bits/s. What LAME takes, narrowest to widest: MPEG-1 from 32 kHz on, MPEG-2 from 16 kHz, MPEG-2.5 below.
MP3_RATES = ((32_000, 32_000, 320_000), (16_000, 8_000, 160_000), (0, 8_000, 64_000))
MP3_STEPS = tuple(
    1000 * step for step in (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 320)
)
OPUS_RATES = (6_000, 256_000)  # for each channel
AAC_RATES = (8_000, 256_000)  # for each channel; no more than 6 bits for each sample (ISO/IEC 14496-3, 4.5.3)
MP3_SCALES = ((160_000, 0.95), (192_000, 0.97), (224_000, 0.98))  # up to a bit rate, bits/s
MP3_LEAD = 1105 + 576  # samples. LAME's delay, and half a frame to fill up the last one
ROUNDING = 1.03  # a mean counts the headers
VORBIS_STEPS = 20  # levels of quality that are tried


def kept_bitrate(
    path: str | os.PathLike[str] | BinaryIO, source: AudioInfo, fs: float, channels: int, format: str | None = None
) -> int | None:
    """Return a lossy output's bit rate that is no lower than its lossy source's, or the highest there is.

    Args:
        path: the output, whose suffix decides its format.
        source: what was read.
        fs: sample rate of the output, Hz.
        channels: its number of channels.
        format: the output's format, instead of the suffix.

    Returns:
        Bits per second; None where source or output is not lossy.
    """
    container = output_format(path, format)
    if source.bitrate is None or container not in LOSSY:
        return None
    low, high = _range(container, int(fs), channels)
    return min(max(source.bitrate, low), high)


def compression(container: str, encoding: str, bitrate: int | None, fs: int, channels: int) -> dict[str, Any]:
    """Return soundfile's arguments, or `AACWriter`'s, for at least a bit rate; AAC keeps it on average.

    Raises:
        ArgumentError: the format has no bit rate, or not this one at this sample rate.
    """
    if bitrate is None:
        return {}
    if container not in LOSSY:
        raise ArgumentError(f"bitrate is for {', '.join(LOSSY)} files, got {bitrate} for {container}")
    container = "OPUS" if encoding == "OPUS" else container
    low, high = _range(container, fs, channels)
    if not low <= whole_number("bitrate", bitrate, 1) <= high:
        raise ArgumentError(
            f"bitrate must lie in [{low}, {high}] bits/s in {container} files of {fs} Hz with {channels} channels, "
            f"got {bitrate}"
        )
    if container in AAC_FORMATS:
        return {"bitrate": bitrate}
    if container == "OGG":
        rates = _vorbis_rates(fs, channels)
        return {"compression_level": next(level for level, rate in reversed(rates) if rate >= bitrate)}
    if container == "OPUS":
        return {"compression_level": (high - bitrate) / (high - OPUS_RATES[0] * channels + 1)}
    step = _mp3_step(bitrate, high)
    # libsndfile 1.2.2 cuts to whole kbit/s and refuses a level of 1.
    return {"compression_level": (high - step) / (high - low) * 0.9999, "bitrate_mode": "CONSTANT"}


def mp3_scale(fs: int, bitrate: int | None) -> float:
    """Return the factor by which LAME 3.100 scales samples at a chosen bit rate (`abr_switch_map` of its presets.c)."""
    if bitrate is None:
        return 1.0
    step = _mp3_step(bitrate, _range("MP3", fs, 1)[1])
    return next((scale for most, scale in MP3_SCALES if step <= most), 1.0)


def _mp3_step(bitrate: int, high: int) -> int:
    """Return the lowest bit rate of the format that is as high; the file's mean counts headers."""
    without = 144_000 if high == MP3_RATES[0][2] else 0
    return next(step for step in MP3_STEPS if step * ROUNDING >= bitrate and step != without)


def _range(container: str, fs: int, channels: int) -> tuple[int, int]:
    if container == "OGG":
        rates = _vorbis_rates(fs, channels)
        return 1, rates[0][1]
    if container == "OPUS":
        return OPUS_RATES[0] * channels, OPUS_RATES[1] * channels
    if container in AAC_FORMATS:
        return AAC_RATES[0] * channels, min(AAC_RATES[1], 6 * fs) * channels
    return next((low, high) for least, low, high in MP3_RATES if fs >= least)


@cache
def _vorbis_rates(fs: int, channels: int) -> list[tuple[float, int]]:
    """Return levels of compression, and the bit rate that the encoder's header then names."""
    import numpy as np
    import soundfile

    found = []
    for level in np.linspace(0, 1, VORBIS_STEPS + 1).tolist():
        file = io.BytesIO()
        with soundfile.SoundFile(file, "w", fs, channels, "VORBIS", format="OGG", compression_level=level) as writer:
            writer.write(np.zeros((1, channels), np.float32))
        found.append((level, vorbis_bitrate(file.getvalue()) or 0))
    return found


def vorbis_bitrate(start: bytes) -> int | None:
    """Return the nominal bit rate that an Ogg file's first bytes name (Vorbis I specification, 4.2.2), or None."""
    at = start.find(b"\x01vorbis")
    rate = int.from_bytes(start[at + 20 : at + 24], "little", signed=True)
    return rate if at >= 0 and rate > 0 else None


def mean_bitrate(size: int, frames: int, fs: int, encoding: str) -> int:
    """Return the bit rate of a file of this size in bytes, with headers and pictures."""
    return round(size * 8 * fs / (frames + (MP3_LEAD if encoding == "MPEG_LAYER_III" else 0)))
