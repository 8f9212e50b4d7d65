"""AAC through PyAV: exact lengths, blocks that equal the whole, errors in one line."""

import io
import sys
from fractions import Fraction

import numpy as np
import pytest

from command import run_here
from torchfx import audio_io
from torchfx.errors import ArgumentError, AudioFileError

av = pytest.importorskip("av")

FS = 48_000
LENGTHS = [1, 1023, 1024, 1025, 2047, 10_000, 3 * FS + 17]


def tone(frames, channels=2, fs=FS):
    t = np.arange(frames) / fs
    return 0.5 * np.stack([np.sin(2 * np.pi * 440 * (i + 1) * t) for i in range(channels)]).astype(np.float32)


def decoded(path, block=777):
    with audio_io.Reader(path) as reader:
        return np.concatenate([reader.read_array(block) for _ in range(0, reader.frames, block)], axis=1)


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("frames", LENGTHS)
def test_an_m4a_has_the_length_it_was_given(tmp_path, frames, channels):
    audio_io.save(tmp_path / "a.m4a", tone(frames, channels), FS)
    assert audio_io.info(tmp_path / "a.m4a").frames == frames
    assert decoded(tmp_path / "a.m4a").shape == (channels, frames)


@pytest.mark.parametrize("frames", LENGTHS)
def test_an_aac_has_its_delay_and_whole_packets(tmp_path, frames):
    audio_io.save(tmp_path / "a.aac", tone(frames), FS)
    assert decoded(tmp_path / "a.aac").shape == (2, 1024 * (1 + -(-frames // 1024)))


@pytest.mark.parametrize(("name", "delay"), [("a.m4a", 0), ("a.aac", 1024)])
def test_the_sound_is_where_it_was(tmp_path, name, delay):
    given = np.random.default_rng(0).uniform(-0.5, 0.5, (1, FS))
    audio_io.save(tmp_path / name, given, FS, bitrate=192_000)
    found = decoded(tmp_path / name)[0]
    products = [given[0, 4000:40_000] @ found[4000 + lag : 40_000 + lag] for lag in range(delay - 5, delay + 6 + 1)]
    assert np.argmax(products) == 5


def test_blocks_make_no_difference(tmp_path):
    given = tone(10_000)
    audio_io.save(tmp_path / "a.m4a", given, FS)
    with audio_io.Writer(tmp_path / "b.m4a", FS, 2) as writer:
        for start in range(0, 10_000, 333):
            writer.write(given[:, start : start + 333].astype(np.float64))
    whole = decoded(tmp_path / "a.m4a", 10_000)
    np.testing.assert_array_equal(decoded(tmp_path / "b.m4a", 1), whole)
    with audio_io.Reader(tmp_path / "a.m4a") as reader:
        for start in (5000, 1025, 9999, 0):
            reader.seek(start)
            np.testing.assert_array_equal(reader.read_array(100), whole[:, start : start + 100])


@pytest.mark.parametrize("name", ["m4a", "aac"])
def test_file_objects_are_read_and_written(tmp_path, name):
    file = io.BytesIO(b"before")
    file.seek(6)
    audio_io.save(file, tone(5000), FS, format=name)
    file.seek(6)
    samples, fs = audio_io.load(file)
    audio_io.save(tmp_path / f"a.{name}", tone(5000), FS)
    np.testing.assert_array_equal(samples.numpy(), decoded(tmp_path / f"a.{name}"))
    assert fs == FS
    assert not file.closed


@pytest.mark.parametrize("bitrate", [64_000, 256_000])
def test_a_bitrate_is_kept_on_average(tmp_path, bitrate):
    noise = np.random.default_rng(0).uniform(-0.3, 0.3, (2, 4 * FS))
    audio_io.save(tmp_path / "a.m4a", noise, FS, bitrate=bitrate)
    found = audio_io.info(tmp_path / "a.m4a")
    assert found.bitrate == pytest.approx(bitrate, rel=0.07)
    assert audio_io.kept_bitrate("b.aac", found, FS, 2) == found.bitrate


def test_tags_and_chapters_need_no_mutagen(tmp_path, monkeypatch):
    monkeypatch.setattr(audio_io.tags, "has_mutagen", lambda: False)
    monkeypatch.setattr(audio_io.writer, "has_mutagen", lambda: False)
    tags = {
        name: f"1 {name} 日本" for name in set(audio_io.TAGS) - {"tracknumber", "discnumber", "license", "software"}
    }
    tags |= {"tracknumber": "3", "discnumber": "2"}
    chapters = (audio_io.Chapter(0.0, "Größe"), audio_io.Chapter(0.125, ""), audio_io.Chapter(0.5, "日本"))
    audio_io.save(tmp_path / "a.m4a", tone(FS), FS, tags={**tags, "license": "CC0"}, chapters=chapters)
    found = audio_io.info(tmp_path / "a.m4a")
    assert (found.tags, found.chapters) == (tags, chapters)


def test_commands_take_them(tmp_path):
    chapters = [audio_io.Chapter(0.0, "a"), audio_io.Chapter(0.5, "b")]
    audio_io.save(tmp_path / "a.m4a", tone(FS), FS, tags={"title": "A"}, chapters=chapters)
    for words in (
        ["convert", "a.m4a", "a.wav"],
        ["process", "a.wav", "b.m4a", "-e", "gain:-6dB", "--bitrate", "96k"],
        ["trim", "b.m4a", "c.m4a", "--start", "0.5"],
        ["concat", "c.m4a", "b.m4a", "d.flac"],
    ):
        assert run_here(*words, folder=tmp_path).stderr == ""
    assert [audio_io.info(tmp_path / name).frames for name in ("a.wav", "b.m4a", "c.m4a", "d.flac")] == [
        FS, FS, FS // 2, FS + FS // 2
    ]  # fmt: skip
    assert audio_io.info(tmp_path / "d.flac").tags["title"] == "A"


@pytest.mark.parametrize("bits", [16, 24])
def test_alac_is_read_bit_for_bit(tmp_path, bits):
    ints = np.random.default_rng(0).integers(-(1 << bits - 1), 1 << bits - 1, (2, 10_000))
    form, kind = {16: ("s16p", np.int16), 24: ("s32p", np.int32)}[bits]
    with av.open(tmp_path / "a.m4a", "w", format="ipod") as container:
        stream = container.add_stream("alac", rate=FS, layout="stereo", format=form)
        frame = av.AudioFrame.from_ndarray((ints << (8 * np.dtype(kind).itemsize - bits)).astype(kind), form, "stereo")
        frame.sample_rate, frame.pts, frame.time_base = FS, 0, Fraction(1, FS)
        container.mux([*stream.encode(frame), *stream.encode(None)])
    found = audio_io.info(tmp_path / "a.m4a")
    assert found.encoding == f"ALAC_{8 * np.dtype(kind).itemsize}"
    with audio_io.Reader(tmp_path / "a.m4a") as reader:
        samples = reader.read_array(reader.frames)
    np.testing.assert_array_equal(samples * 2.0 ** (bits - 1), ints[:, : found.frames])


def test_edit_lists_in_milliseconds_are_taken_as_they_are(tmp_path):
    """FFmpeg's command writes such."""
    options = {"movie_timescale": "1000"}
    with av.open(tmp_path / "a.m4a", "w", format="ipod", container_options=options) as container:
        stream = container.add_stream("aac", rate=FS, layout="mono")
        frame = av.AudioFrame.from_ndarray(tone(10_000, 1), "fltp", "mono")
        frame.sample_rate, frame.pts, frame.time_base = FS, 0, Fraction(1, FS)
        container.mux([*stream.encode(frame), *stream.encode(None)])
    assert decoded(tmp_path / "a.m4a").shape == (1, 10_000 // 48 * 48)


def test_a_file_that_ends_early_is_said(tmp_path):
    audio_io.save(tmp_path / "a.m4a", tone(FS), FS)
    whole = (tmp_path / "a.m4a").read_bytes()
    (tmp_path / "a.m4a").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AudioFileError, match=r"^cannot read .*a\.m4a: Invalid data found when processing input$"):
        audio_io.load(tmp_path / "a.m4a")


def test_tags_that_are_no_utf8_are_read(tmp_path):
    audio_io.save(tmp_path / "a.m4a", tone(FS), FS, tags={"title": "ABCD", "artist": "x"})
    content = (tmp_path / "a.m4a").read_bytes()
    assert content.count(b"ABCD") == 1
    (tmp_path / "a.m4a").write_bytes(content.replace(b"ABCD", b"A\xffCD"))
    assert audio_io.info(tmp_path / "a.m4a").tags == {"title": "A\ufffdCD", "artist": "x"}


def test_damaged_packets_raise(tmp_path):
    audio_io.save(tmp_path / "a.m4a", tone(FS), FS)
    content = bytearray((tmp_path / "a.m4a").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = b"\xff" * 2000
    (tmp_path / "a.m4a").write_bytes(content)
    with pytest.raises(AudioFileError, match=r"^cannot read .*a\.m4a: "):
        decoded(tmp_path / "a.m4a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fs": 47_999}, r"fs must be one of 7350, .*, 96000 Hz in M4A files, got 47999"),
        ({"channels": 3}, "ys must have 1 to 2 channels in M4A files, got 3"),
        ({"bitrate": 8000}, r"bitrate must lie in \[16000, 512000\] bits/s in M4A files"),
        ({"encoding": "PCM_16"}, "M4A files hold AAC; got encoding='PCM_16'"),
    ],
)
def test_what_aac_does_not_have_is_refused(tmp_path, options, message):
    fs, channels = options.pop("fs", FS), options.pop("channels", 2)
    with pytest.raises(ArgumentError, match=message):
        audio_io.save(tmp_path / "a.m4a", np.zeros((channels, 100)), fs, **options)


@pytest.mark.parametrize("name", ["a.m4a", "a.aac"])
def test_without_pyav_the_extra_is_named(tmp_path, monkeypatch, name):
    audio_io.save(tmp_path / name, tone(100), FS)
    monkeypatch.setitem(sys.modules, "av", None)
    for verb, work in (("read", audio_io.info), ("write", lambda path: audio_io.save(path, tone(100), FS))):
        with pytest.raises(AudioFileError, match=rf"^cannot {verb} .*{name}: AAC needs PyAV; pip install av"):
            work(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
