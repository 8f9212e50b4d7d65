"""MP3s: all samples are read with and without a header, and written ones keep their length and level."""

import io

import numpy as np
import pytest
import soundfile

from many_cases import spread_out
from torchfx import audio_io
from torchfx.audio_io.bitrate import MP3_RATES
from torchfx.audio_io.coding import coded
from torchfx.audio_io.mpeg import KBPS, counted
from torchfx.errors import AudioFileError

DELAY = 1105  # samples of LAME and a decoder, which the header lets decoders leave out
LAYOUTS = [
    (fs, channels, 1000 * kbps)
    for fs in (8000, 16_000, 22_050, 44_100, 48_000)
    for least, low, high in [next(row for row in MP3_RATES if fs >= row[0])]
    for kbps in KBPS[fs >= 32_000, 3]
    for channels in (1, 2)
    if low <= 1000 * kbps <= high
]


def tone(fs, channels, seconds=0.5):
    """A tone between silences of 50 ms, at -20 dB."""
    t = np.arange(int(seconds * fs)) / fs
    heard = (t > 0.05) & (t < seconds - 0.05)
    return np.tile(0.1 * np.sin(2 * np.pi * 440 * t) * heard, (channels, 1)).astype(np.float32)


def written(ys, fs, **options):
    """Return the bytes of an MP3."""
    file = io.BytesIO()
    audio_io.save(file, ys, fs, format="mp3", **options)
    return file.getvalue()


def without_header(mp3):
    """Return an MP3 without its first frame, in which another header begins."""
    kind = mp3[:2]
    frame = mp3.index(kind, 4)
    while mp3[frame + 2] & 0x0C != mp3[2] & 0x0C or mp3[frame + 2] >> 4 in {0, 15}:
        frame = mp3.index(kind, frame + 1)
    assert {b"Info", b"Xing"} & {mp3[4 + side : 8 + side] for side in (9, 17, 32)}
    return mp3[frame:]


@pytest.mark.parametrize(("fs", "channels", "bitrate"), spread_out(LAYOUTS, every=5))
def test_every_bit_rate_keeps_the_samples_number_place_and_level(fs, channels, bitrate):
    ys = tone(fs, channels)
    file = written(ys, fs, bitrate=bitrate)
    for found in (audio_io.load(io.BytesIO(file))[0].numpy(), coded(ys, fs, "mp3", bitrate)):
        assert found.shape == ys.shape
        middle = slice(int(0.15 * fs), int(0.35 * fs))
        level_db = 20 * np.log10((ys * found)[:, middle].sum() / np.square(ys[:, middle]).sum())
        assert abs(level_db) < (0.05 if bitrate >= 16_000 else 0.1)
    described = audio_io.info(io.BytesIO(file))
    assert described.frames == ys.shape[1]
    assert described.bitrate >= 0.97 * bitrate
    assert soundfile.info(io.BytesIO(file)).frames == ys.shape[1]


@pytest.mark.parametrize("bitrate", [32_000, 128_000])
def test_generations_keep_length_and_level(tmp_path, bitrate):
    ys, path = tone(44_100, 1, 1.0), tmp_path / "a.mp3"
    audio_io.save(path, ys, 44_100, bitrate=bitrate)
    for _ in range(3):
        again, fs = audio_io.load(path)
        audio_io.save(path, again, fs, bitrate=audio_io.kept_bitrate(path, audio_io.info(path), fs, 1))
    found = audio_io.load(path)[0].numpy()
    assert found.shape == ys.shape
    assert abs(20 * np.log10(np.linalg.norm(found) / np.linalg.norm(ys))) < 0.1


def test_samples_at_full_scale_are_not_clipped_where_the_encoder_scales():
    ys = (np.sin(2 * np.pi * 440 * np.arange(22_050) / 44_100)[None]).astype(np.float32)
    found = audio_io.load(io.BytesIO(written(ys, 44_100, bitrate=128_000)))[0].numpy()
    assert np.abs(found - ys)[:, 4000:-4000].max() < 0.01


@pytest.mark.parametrize("bitrate", [None, 64_000, 160_000])
@pytest.mark.parametrize("loud_first", [False, True])
@pytest.mark.parametrize(("fs", "channels"), [(44_100, 2), (22_050, 1), (16_000, 2)])
def test_without_a_header_all_samples_are_read_in_any_order(fs, channels, loud_first, bitrate, rng, capfd):
    """A variable bit rate makes libsndfile's estimate far too long or too short."""
    ys = rng.uniform(-0.5, 0.5, (channels, 3 * fs)).astype(np.float32)
    ys *= np.linspace(*((1, 0) if loud_first else (0, 1)), 3 * fs, dtype=np.float32) ** 4
    whole = written(ys, fs, bitrate=bitrate)
    expected = audio_io.load(io.BytesIO(whole))[0].numpy()
    bare = without_header(whole)
    with audio_io.Reader(io.BytesIO(bare)) as reader:
        assert reader.frames == reader.info.frames >= DELAY + expected.shape[1]
        assert reader.frames % 576 == 0
        pieces = [reader.read_array(count) for count in (1, 1000, 4096, reader.frames)]
        found = np.concatenate(pieces, axis=1)
        assert found.shape[1] == reader.frames
        assert np.allclose(found[:, DELAY:][:, : expected.shape[1]], expected, rtol=0, atol=1e-6)
        assert capfd.readouterr().err == ""
        for frame in (40_000, 5, 0, reader.frames - 100):
            reader.seek(frame)
            assert np.allclose(reader.read_array(100), found[:, frame : frame + 100], rtol=0, atol=1e-6)


def test_tags_damage_and_an_early_end_change_no_other_sample(tmp_path, capfd):
    ys = tone(44_100, 2, 2.0)
    bare = without_header(written(ys, 44_100, bitrate=128_000))
    frames = audio_io.info(io.BytesIO(bare)).frames
    id3 = b"ID3\4\0\0\0\0\1\0" + bytes(128)
    third = bare.index(bare[:2], bare.index(bare[:2], 2) + 2)
    for data in (
        id3 + bare, bare + b"TAG" + bytes(125), bare + b"junk" * 50, bare[:third] + b"junk" * 50 + bare[third:],
    ):  # fmt: skip
        path = tmp_path / "a.mp3"
        path.write_bytes(data)
        assert audio_io.load(path)[0].shape[1] == frames
    cut = audio_io.load(io.BytesIO(bare[: len(bare) // 2]))[0]
    assert frames // 2 - 1152 <= cut.shape[1] <= frames // 2
    whole = audio_io.load(io.BytesIO(bare))[0]
    assert np.allclose(cut, whole[:, : cut.shape[1]], rtol=0, atol=1e-6)
    for junk, message in ((b"junk" * 50, r"damaged, \d+ bytes at its end cannot be decoded"), (b"junk" * 2500, "")):
        path.write_bytes(bare[:9000] + junk + bare[9000:])  # within a frame
        with pytest.raises(AudioFileError, match=rf"a\.mp3: {message}"):
            audio_io.info(path)
    capfd.readouterr()  # libmpg123 writes about the damage


@pytest.mark.parametrize("bitrate", [32_000, 128_000])
def test_a_file_that_promises_more_than_it_holds_is_truncated(bitrate):
    data = written(tone(44_100, 1, 2.0), 44_100, bitrate=bitrate)
    assert counted(io.BytesIO(data)) is None
    with pytest.raises(AudioFileError, match="truncated, it promises 88200 frames and ends after"):
        audio_io.load(io.BytesIO(data[: len(data) // 2]))


@pytest.mark.parametrize("fs", [16_000, 22_050, 44_100])
def test_blocks_are_read_without_messages_of_the_decoder(fs, rng, capfd):
    ys = rng.uniform(-0.3, 0.3, (1, 2 * fs)).astype(np.float32)
    data = written(ys, fs)
    whole = audio_io.load(io.BytesIO(data))[0].numpy()
    with audio_io.Reader(io.BytesIO(data)) as reader:
        blocks = [reader.read_array(1000) for _ in range(0, 2 * fs, 1000)]
        assert np.array_equal(np.concatenate(blocks, axis=1), whole)
        reader.seek(0)
        assert np.array_equal(reader.read_array(2 * fs), whole)
    assert capfd.readouterr().err == ""


def test_layer_two_is_read_to_its_end(tmp_path, rng):
    av = pytest.importorskip("av")
    path = tmp_path / "a.mp2"
    samples = (rng.uniform(-0.3, 0.3, (1, 2 * 44_100)) * 32_767).astype(np.int16)
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mp2", rate=44_100, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
        frame.sample_rate = 44_100
        for packet in (*stream.encode(frame), *stream.encode(None)):
            file.mux(packet)
    found = audio_io.load(path)[0]
    assert found.shape[1] % 1152 == 0
    assert found.shape[1] >= samples.shape[1]
    assert audio_io.info(path).frames == found.shape[1]
