"""Reader: any pieces, any order, any kind of source give what `load` gives."""

import io
import os
import threading

import numpy as np
import pytest
import soundfile
import torch

from torchfx import audio_io
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

FS = 48_000

ENCODINGS = [
    ("wav", "PCM_U8"), ("wav", "PCM_16"), ("wav", "PCM_24"), ("wav", "PCM_32"), ("wav", "FLOAT"), ("wav", "DOUBLE"),
    ("wav", "ULAW"), ("wav", "IMA_ADPCM"), ("wav", "GSM610"), ("flac", "PCM_16"), ("flac", "PCM_24"),
    ("aiff", "PCM_S8"), ("aiff", "PCM_24"), ("aiff", "FLOAT"), ("ogg", "VORBIS"), ("mp3", "MPEG_LAYER_III"),
]  # fmt: skip


def noise(channels, frames, seed=0):
    return torch.rand(channels, frames, generator=torch.Generator().manual_seed(seed)) - 0.5


def same(ys, expected, suffix):
    """Return whether samples are equal; of an MP3, libmpg123 rounds differently after a seek."""
    bound = 2**-22 if suffix == "mp3" else 0.0
    return ys.shape == expected.shape and torch.allclose(ys, expected, rtol=0, atol=bound)


@pytest.fixture
def wav():
    """Bytes of a WAV, and its samples."""
    ys, file = noise(2, 5000), io.BytesIO()
    audio_io.save(file, ys, FS, format="wav")
    return file.getvalue(), ys


@pytest.mark.parametrize(("suffix", "encoding"), ENCODINGS)
def test_pieces_in_a_row_are_what_load_gives(tmp_path, suffix, encoding):
    path = tmp_path / f"a.{suffix}"
    audio_io.save(path, noise(1, 20_000), FS, encoding=encoding)
    whole, _ = audio_io.load(path)
    with audio_io.Reader(path) as reader:
        pieces = [reader.read(count) for count in (0, 1, 7, 1024, 0, 3333, 100_000, 1)]
    assert [piece.shape[1] for piece in pieces] == [0, 1, 7, 1024, 0, 3333, whole.shape[1] - 4365, 0]
    assert torch.equal(torch.cat(pieces, dim=1), whole)


@pytest.mark.parametrize(("suffix", "encoding"), ENCODINGS)
def test_a_seek_leads_to_the_frame_asked_for(tmp_path, suffix, encoding):
    path = tmp_path / f"a.{suffix}"
    audio_io.save(path, noise(1, 70_000), FS, encoding=encoding)
    whole, _ = audio_io.load(path)
    end = whole.shape[1]
    with audio_io.Reader(path) as reader:
        for frame in (10, 60_000, 5, end - 3, end, 0, 33_333, 40_000, 36_000, end - 50):
            reader.seek(frame)
            assert same(reader.read(200), whole[:, frame : frame + 200], suffix), frame


@pytest.mark.parametrize("suffix", ["ogg", "mp3"])
def test_a_part_of_a_lossy_file_is_a_part_of_its_whole(tmp_path, suffix):
    """Left to libsndfile, seeks in lossy files give other samples at some frames, mostly late ones."""
    path = tmp_path / f"a.{suffix}"
    audio_io.save(path, noise(1, 120_000) * torch.linspace(0, 1, 120_000), FS)
    whole, _ = audio_io.load(path)
    for frame in range(90_000, 120_000, 1373):
        part, _ = audio_io.load(path, frame, 100)
        assert same(part, whole[:, frame : frame + 100], suffix), frame


def test_a_seek_beyond_the_file_raises(wav):
    with audio_io.Reader(io.BytesIO(wav[0])) as reader:
        with pytest.raises(ArgumentError, match=r"frame must lie in \[0, 5000\] for the BytesIO object, got 5001"):
            reader.seek(5001)
        with pytest.raises(ArgumentError, match="frame must be a whole number >= 0, got -1"):
            reader.seek(-1)
        with pytest.raises(ArgumentError, match="count must be a whole number >= 0, got -1"):
            reader.read(-1)
        with pytest.raises(ArgumentTypeError, match=r"count must be a whole number >= 0, got 1\.5"):
            reader.read(1.5)


def test_a_reader_says_what_the_file_is(tmp_path):
    audio_io.save(tmp_path / "a.flac", noise(3, 100), 44_100, bits_per_sample=16, tags={"title": "T"})
    with audio_io.Reader(tmp_path / "a.flac") as reader:
        assert reader.info == audio_io.AudioInfo(44_100, 3, 100, "FLAC", "PCM_16", {"title": "T"})
        assert (reader.fs, reader.channels, reader.frames) == (44_100, 3, 100)
        assert (reader.format, reader.encoding, reader.bits, reader.tags) == ("FLAC", "PCM_16", 16, {"title": "T"})
    audio_io.save(tmp_path / "a.ogg", noise(1, 100), 44_100)
    assert audio_io.info(tmp_path / "a.ogg").bits is None


def test_a_closed_reader_raises(wav):
    reader = audio_io.Reader(io.BytesIO(wav[0]))
    reader.close()
    reader.close()
    for call in (lambda: reader.read(1), lambda: reader.seek(0)):
        with pytest.raises(AudioFileError, match="it was closed"):
            call()


# --- file objects -----------------------------------------------------------------------------------------------------


def test_a_file_in_memory_is_read_and_stays_open(wav):
    data, ys = wav
    file = io.BytesIO(data)
    assert torch.equal(audio_io.load(file)[0], ys)
    assert not file.closed


def test_an_open_file_is_read_from_its_position_on(tmp_path, wav):
    data, ys = wav
    (tmp_path / "a.bin").write_bytes(b"something else" + data)
    with (tmp_path / "a.bin").open("rb") as file:
        file.seek(14)
        with audio_io.Reader(file) as reader:
            assert torch.equal(reader.read(100), ys[:, :100])
            reader.seek(4900)
            assert torch.equal(reader.read(1000), ys[:, 4900:])
            reader.seek(0)
            assert torch.equal(reader.read(5000), ys)
        assert not file.closed


@pytest.mark.parametrize("suffix", ["flac", "ogg", "mp3"])
def test_compressed_formats_are_read_from_file_objects(suffix):
    file = io.BytesIO()
    audio_io.save(file, noise(1, 50_000), FS, format=suffix)
    file.seek(0)
    whole, _ = audio_io.load(file)
    file.seek(0)
    with audio_io.Reader(file) as reader:
        reader.seek(45_000)
        assert same(reader.read(10_000), whole[:, 45_000:], suffix)
        reader.seek(10)
        assert same(reader.read(10), whole[:, 10:20], suffix)


class Reluctant(io.RawIOBase):
    """An unbuffered file that gives at most 7 bytes at a time."""

    def __init__(self, data):
        self.inner = io.BytesIO(data)

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        return self.inner.seek(offset, whence)

    def tell(self):
        return self.inner.tell()

    def readinto(self, buffer):
        data = self.inner.read(min(len(buffer), 7))
        buffer[: len(data)] = data
        return len(data)


def test_a_file_object_may_give_less_than_asked_for(wav):
    data, ys = wav
    assert torch.equal(audio_io.load(Reluctant(data))[0], ys)


def test_an_unbuffered_file_is_read(tmp_path, wav):
    data, ys = wav
    (tmp_path / "a.wav").write_bytes(data)
    with (tmp_path / "a.wav").open("rb", buffering=0) as file:
        assert torch.equal(audio_io.load(file)[0], ys)


class Failing(io.BytesIO):
    """A file whose method raises once it was called a number of times."""

    def __init__(self, data, method, calls, error):
        super().__init__(data)
        self.method, self.calls, self.error = method, calls, error

    def _count(self, method):
        if method == self.method:
            self.calls -= 1
            if self.calls < 0:
                raise self.error

    def read(self, *arguments):
        self._count("read")
        return super().read(*arguments)

    def seek(self, *arguments):
        self._count("seek")
        return super().seek(*arguments)


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg"])
@pytest.mark.parametrize("method", ["read", "seek"])
@pytest.mark.parametrize("error", [RuntimeError("the server hung up"), KeyboardInterrupt(), OSError(5, "I/O error")])
def test_what_a_file_object_raises_arrives(suffix, method, error):
    """libsndfile calls it, and C passes no exception on: at whichever call it fails, the reason must not be lost."""
    file = io.BytesIO()
    audio_io.save(file, noise(1, 2000), FS, format=suffix)
    raised = []
    for calls in range(60):
        source = Failing(file.getvalue(), method, calls, error)
        raised.append(raised_by(source))
        assert (raised[-1] is None) == (source.calls >= 0)
        if raised[-1] is None:
            break
    assert len(raised) > 3
    assert raised.pop() is None
    for caught in raised:
        if isinstance(error, OSError):
            assert caught.__cause__ is error
            assert str(caught) == "cannot read the Failing object: I/O error"
        else:
            assert caught is error


def raised_by(source):
    """Return what `load` raises, or None."""
    try:
        audio_io.load(source)
    except BaseException as error:  # noqa: BLE001
        return error
    return None


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (
            io.StringIO("text"),
            ArgumentTypeError,
            "the source must be a path or a binary file object, got <_io.StringIO",
        ),
        (3.5, ArgumentTypeError, r"the source must be a path or a binary file object, got 3.5 \(float\)"),
        (None, ArgumentTypeError, r"binary file object, got None \(NoneType\)"),
        (io.BytesIO(), AudioFileError, "cannot read the BytesIO object: the file is empty"),
        (io.BytesIO(b"no audio at all"), AudioFileError, "cannot read the BytesIO object: "),
    ],
)
def test_what_is_no_audio_file_raises(source, error, message):
    with pytest.raises(error, match=message):
        audio_io.load(source)


def test_file_objects_that_cannot_be_read_raise(tmp_path):
    with (tmp_path / "a.wav").open("wb") as file, pytest.raises(AudioFileError, match="opened for writing only"):
        audio_io.load(file)
    file = io.BytesIO(b"RIFF")
    file.close()
    with pytest.raises(AudioFileError, match=r"cannot read the BytesIO object: .*closed file"):
        audio_io.load(file)


# --- pipes ------------------------------------------------------------------------------------------------------------


def test_a_pipe_is_read_more_than_once(tmp_path, wav):
    data, ys = wav
    reading, writing = os.pipe()

    def feed():
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(data)

    feeder = threading.Thread(target=feed)
    feeder.start()
    with os.fdopen(reading, "rb") as pipe, audio_io.Reader(pipe) as reader:
        for _ in range(2):
            reader.seek(0)
            assert torch.equal(reader.read(5000), ys)
    feeder.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_read(tmp_path, wav):
    data, ys = wav
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(data))
    feeder.start()
    assert torch.equal(audio_io.load(tmp_path / "pipe")[0], ys)
    feeder.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_without_bytes_raises(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b""))
    feeder.start()
    with pytest.raises(AudioFileError, match=r"cannot read .*pipe: the file is empty"):
        audio_io.load(tmp_path / "pipe")
    feeder.join()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs device files")  # noqa: PTH110
def test_a_device_raises_before_a_byte_is_read():
    with pytest.raises(AudioFileError, match="cannot read /dev/zero: it is neither a file nor a pipe"):
        audio_io.load("/dev/zero")


# --- truncated files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["wav", "aiff"])
def test_missing_bytes_of_a_file_object_are_noticed_before_samples_are_read(suffix):
    file = io.BytesIO()
    audio_io.save(file, noise(1, 1000), FS, format=suffix, bits_per_sample=16)
    with pytest.raises(AudioFileError, match=r"truncated, 500 of 20\d\d bytes are missing"):
        audio_io.Reader(io.BytesIO(file.getvalue()[:-500]))


def test_a_flac_that_ends_early_gives_its_first_frames_and_then_raises(tmp_path):
    path = tmp_path / "a.flac"
    audio_io.save(path, noise(1, 50_000), FS)
    whole, data = audio_io.load(path)[0], path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with audio_io.Reader(path) as reader:
        assert torch.equal(reader.read(4096), whole[:, :4096])
        with pytest.raises(AudioFileError, match=rf"^cannot read {path}: "):  # then in libsndfile's words
            reader.read(50_000)


def test_samples_of_a_wav_with_more_chunks_are_found(tmp_path):
    """Chunks before and behind the samples, one of odd length, are no missing bytes."""
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(100, np.int16), FS)
    data = path.read_bytes()
    odd = b"note\x03\x00\x00\x00abc\x00"
    path.write_bytes(data[:36] + odd + data[36:] + odd)
    assert audio_io.load(path)[0].shape == (1, 100)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.97])
def test_a_flac_that_was_cut_is_found_out_from_its_end(tmp_path, kept):
    whole, cut = tmp_path / "whole.flac", tmp_path / "cut.flac"
    audio_io.save(whole, torch.rand(2, 50_000, generator=torch.Generator().manual_seed(0)) - 0.5, 16_000)
    data = whole.read_bytes()
    cut.write_bytes(data[: int(kept * len(data))])
    assert audio_io.info(whole).frames == 50_000
    with pytest.raises(AudioFileError, match=r"cannot read .*cut.flac: .*the file was cut or is damaged$"):
        audio_io.info(cut)


@pytest.mark.parametrize("text", ["a text, not a song\n" * 20, "\u00e9t\u00e9 " * 100, "x"])
def test_a_text_that_is_named_mp3_is_refused_in_silence(tmp_path, capfd, text):
    (tmp_path / "text.mp3").write_text(text, "utf-8")
    with pytest.raises(AudioFileError, match=r"text.mp3: there is no MP3 frame in its first \d+ bytes"):
        audio_io.info(tmp_path / "text.mp3")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".ogg", ".aiff", ".mp3"])
def test_any_container_may_be_named_mp3(tmp_path, suffix):
    audio_io.save(tmp_path / f"song{suffix}", torch.zeros(1, 4000), 16_000)
    (tmp_path / f"song{suffix}").rename(tmp_path / "named.mp3")
    assert audio_io.info(tmp_path / "named.mp3").fs == 16_000
