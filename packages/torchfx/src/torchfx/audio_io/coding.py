"""Samples through a lossy codec and back, in memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from torchfx.audio_io.bitrate import compression, mp3_scale
from torchfx.audio_io.messages import file_errors
from torchfx.audio_io.mpeg import completed
from torchfx.audio_io.samples import interleaved

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["CODECS", "codec_rate", "coded"]

CODECS = {
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "opus": ("OGG", "OPUS"),
    "vorbis": ("OGG", "VORBIS"),
    "gsm": ("WAV", "GSM610"),
    "mulaw": ("WAV", "ULAW"),
    "alaw": ("WAV", "ALAW"),
}
"""libsndfile's format and encoding by a codec's name."""

MP3_RATES = (8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)  # Hz
OPUS_ALIGNED = (8000, 12_000, 16_000, 48_000)  # Hz; at 24 kHz libopus 1.3 comes 1.15 samples early
RATES = {"mp3": MP3_RATES, "opus": OPUS_ALIGNED, "gsm": (8000,), "mulaw": (8000,), "alaw": (8000,)}
MOST_CHANNELS = {"mp3": 2, "gsm": 1}


def codec_rate(codec: str, fs: float) -> int:
    """Return the rate (Hz) at which a codec works on signals of a rate: that, or the next that it has."""
    rates = RATES.get(codec)
    if rates is None:
        return round(fs)
    return next((rate for rate in rates if rate >= fs), rates[-1])


def coded(ys: npt.NDArray[np.float32], fs: int, codec: str, bitrate: int | None = None) -> npt.NDArray[np.float32]:
    """Return samples as a codec leaves them, aligned with the input: libsndfile takes the codec's delay off.

    Args:
        ys: float32, (channels, frames); what lies beyond full scale is clipped.
        fs: a rate that the codec has, Hz, from `codec_rate`.
        codec: one of `CODECS`. MP3 codes channels in pairs, GSM each by itself, and the others all together.
        bitrate: of MP3, Opus or Vorbis, bits/s; None: libsndfile's default.

    Returns:
        Like ys.

    Raises:
        ArgumentError: a bit rate that the codec does not have.
    """
    most = MOST_CHANNELS.get(codec, len(ys))
    if len(ys) > most:
        parts = [coded(ys[first : first + most], fs, codec, bitrate) for first in range(0, len(ys), most)]
        return np.concatenate(parts)
    import soundfile

    container, encoding = CODECS[codec]
    options: dict[str, Any] = compression(container, encoding, bitrate, fs, len(ys))
    scale = mp3_scale(fs, bitrate) if codec == "mp3" else 1.0
    file = io.BytesIO()
    with file_errors("write", codec):
        layout = {"samplerate": fs, "channels": len(ys), "subtype": encoding, "format": container}
        with soundfile.SoundFile(file, "w", **layout, **options) as writer:
            writer.write(interleaved(np.clip(ys, -1, 1) / np.float32(scale), np.float32))
        if codec == "mp3":
            file = io.BytesIO(completed(file.getvalue(), ys.shape[1]))
        file.seek(0)
        found = soundfile.read(file, frames=ys.shape[1], dtype="float32", always_2d=True, fill_value=0.0)[0]
    return np.ascontiguousarray(found.T)
