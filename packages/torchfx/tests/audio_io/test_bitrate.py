"""Bit rates of lossy files: chosen, or no lower than the source's; and raw samples."""

import io

import numpy as np
import pytest
import soundfile

from torchfx import audio_io
from torchfx.errors import ArgumentError

FS = 48_000


def written(path, fs=FS, channels=2, **options):
    """Write two seconds of noise; return what the file says of itself."""
    noise = np.random.default_rng(0).uniform(-0.3, 0.3, (channels, 2 * fs)).astype(np.float32)
    audio_io.save(path, noise, fs, **options)
    return audio_io.info(path)


@pytest.mark.parametrize(
    ("name", "fs", "channels", "bitrate", "most"),
    [
        ("a.mp3", 44_100, 2, 320_000, 1.03),
        ("a.mp3", 44_100, 1, 100_000, 1.2),  # 112 kbit/s is the next that the format has
        ("a.mp3", 16_000, 1, 64_000, 1.05),
        ("a.mp3", 8_000, 1, 8_000, 1.1),
        ("a.opus", 48_000, 2, 96_000, 1.1),
        ("a.opus", 16_000, 1, 24_000, 1.15),
        ("a.ogg", 44_100, 2, 192_000, 1.2),
        ("a.ogg", 16_000, 1, 40_000, 1.2),
    ],
)
def test_a_bitrate_is_at_least_what_was_asked_for(tmp_path, name, fs, channels, bitrate, most):
    found = written(tmp_path / name, fs, channels, bitrate=bitrate).bitrate
    assert 0.9 * bitrate <= found <= most * bitrate  # two seconds at 8 kHz are a few frames


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.mp3", {"bitrate": 400_000}, r"bitrate must lie in \[32000, 320000\] bits/s in MP3 files of 48000 Hz"),
        ("a.opus", {"bitrate": 600_000}, r"bitrate must lie in \[12000, 512000\] bits/s in OPUS files"),
        ("a.ogg", {"bitrate": 9_000_000}, r"bitrate must lie in \[1, \d+\] bits/s in OGG files"),
        ("a.flac", {"bitrate": 128_000}, "bitrate is for MP3, OGG, OPUS, M4A, AAC files, got 128000 for FLAC"),
        ("a.opus", {"fs": 44_100}, "fs must be one of 8000, 12000, 16000, 24000, 48000 Hz in OPUS files, got 44100"),
    ],
)
def test_what_a_format_does_not_have_is_refused(tmp_path, name, options, message):
    with pytest.raises(ArgumentError, match=message):
        written(tmp_path / name, **options)


@pytest.mark.parametrize("source", ["a.mp3", "a.ogg", "a.opus"])
@pytest.mark.parametrize("target", ["b.mp3", "b.ogg", "b.opus"])
def test_a_bitrate_is_kept(tmp_path, source, target):
    info = written(tmp_path / source, bitrate=192_000)
    kept = audio_io.kept_bitrate(target, info, FS, 2)
    assert kept == info.bitrate >= 0.98 * 192_000
    again = written(tmp_path / target, bitrate=kept)
    assert 0.98 * kept <= again.bitrate <= 1.2 * kept


def test_only_lossy_files_have_one(tmp_path):
    lossless = written(tmp_path / "a.flac")
    assert lossless.bitrate is None
    assert audio_io.kept_bitrate("b.mp3", lossless, FS, 2) is None
    lossy = written(tmp_path / "a.mp3", bitrate=320_000)
    assert audio_io.kept_bitrate("b.wav", lossy, FS, 2) is None
    assert audio_io.kept_bitrate("b.mp3", lossy, 16_000, 2) == 160_000  # the most there is at that rate


@pytest.mark.parametrize("encoding", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_raw_samples_are_written_and_read(tmp_path, encoding):
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (2, 100))
    for target in (tmp_path / "a.raw", tmp_path / "a.wav"):
        audio_io.save(target, x, FS, encoding=encoding)
    raw, wav = ((tmp_path / name).read_bytes() for name in ("a.raw", "a.wav"))
    assert raw in wav
    assert len(raw) == 200 * audio_io.info(tmp_path / "a.wav").bits // 8
    expected = soundfile.read(tmp_path / "a.wav", always_2d=True)[0].T
    for source in (tmp_path / "a.raw", io.BytesIO(raw)):
        with audio_io.Reader(source, raw=(FS, 2, encoding)) as reader:
            assert (reader.fs, reader.encoding, reader.frames) == (FS, encoding, 100)
            assert np.allclose(reader.read_array(100, exact=True), expected, rtol=0, atol=1e-12)
