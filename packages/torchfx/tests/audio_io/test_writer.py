"""Writer: blocks make the file that `save` makes, and it appears whole or not at all."""

import io
import os
import stat
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import soundfile
import torch

from torchfx import audio_io
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

FS = 48_000

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions and links")


def noise(channels, frames, seed=0):
    return torch.rand(channels, frames, generator=torch.Generator().manual_seed(seed)) - 0.5


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# --- blocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "encoding"),
    [
        ("wav", "PCM_U8"), ("wav", "PCM_16"), ("wav", "PCM_24"), ("wav", "PCM_32"), ("wav", "FLOAT"), ("wav", "DOUBLE"),
        ("wav", "ULAW"), ("wav", "IMA_ADPCM"), ("flac", "PCM_S8"), ("flac", "PCM_16"), ("flac", "PCM_24"),
        ("aiff", "PCM_S8"), ("aiff", "PCM_16"), ("aiff", "PCM_24"), ("aiff", "DOUBLE"), ("mp3", "MPEG_LAYER_III"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_make_the_same_bytes_as_save(tmp_path, suffix, encoding, dtype):
    ys = noise(2, 9000).to(dtype)
    audio_io.save(tmp_path / f"whole.{suffix}", ys, FS, encoding=encoding)
    with audio_io.Writer(tmp_path / f"blocks.{suffix}", FS, 2, encoding=encoding) as writer:
        for block in ys.split([1, 0, 7, 1024, 4096, 3872], dim=1):
            writer.write(block)
        assert writer.frames == 9000
    assert contents(tmp_path / f"blocks.{suffix}") == contents(tmp_path / f"whole.{suffix}")


def contents(path):
    """The file's bytes, without the time of writing, which libsndfile puts into the PEAK chunk of float WAVE files."""
    data = bytearray(path.read_bytes())
    peak = data.find(b"PEAK", 0, 128)
    if peak >= 0:
        time_at = peak + 12  # after the chunk's name, size and version
        data[time_at : time_at + 4] = bytes(4)
    return bytes(data)


def test_samples_may_have_any_layout(tmp_path):
    """Transposed, negated and sliced tensors are views whose memory is laid out differently."""
    ys = noise(2, 500)
    for i, view in enumerate((ys.T.contiguous().T, torch._neg_view(-ys), ys.repeat(1, 2)[:, :500])):
        audio_io.save(tmp_path / f"{i}.wav", view, FS)
        assert torch.equal(audio_io.load(tmp_path / f"{i}.wav")[0], ys)


def test_samples_with_a_gradient_are_written(tmp_path):
    ys = noise(1, 10).requires_grad_()
    audio_io.save(tmp_path / "a.wav", ys, FS)
    assert torch.equal(audio_io.load(tmp_path / "a.wav")[0], ys.detach())


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_integers_are_rounded_half_to_even(bits):
    """The oracle is NumPy's rint of exact products in float64."""
    ys = noise(1, 2000).double() * 2
    ys[0, :8] = torch.tensor([0.5, 1.5, -0.5, -1.5, 2.5, -2.5, 3.5, 0.0]) / 2 ** (bits - 1)
    ys[0, 8:10] = torch.tensor([1.0, -1.0])
    file = io.BytesIO()
    audio_io.save(file, ys, FS, format="wav", bits_per_sample=bits)
    file.seek(0)
    expected = np.clip(np.rint(ys.numpy() * 2.0 ** (bits - 1)), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    written = soundfile.read(file, dtype="int32", always_2d=True)[0].T.astype(np.int64) >> (32 - bits)
    assert np.array_equal(written, expected)


def test_a_writer_writes_inside_its_block_only(tmp_path):
    writer = audio_io.Writer(tmp_path / "a.wav", FS, 1)
    for _ in range(2):  # before and after
        with pytest.raises(AudioFileError, match=r"cannot write .*a\.wav: it is open only inside its with block"):
            writer.write(noise(1, 10))
        with writer:
            writer.write(noise(1, 10))
    assert audio_io.info(tmp_path / "a.wav").frames == 10


def test_a_file_of_no_samples_raises(tmp_path):
    with pytest.raises(AudioFileError, match=r"cannot write .*a\.wav: no samples were given"):  # noqa: SIM117
        with audio_io.Writer(tmp_path / "a.wav", FS, 1) as writer:
            writer.write(torch.zeros(1, 0))
    with pytest.raises(ArgumentError, match=r"hold samples, got \(1, 0\)"):
        audio_io.save(tmp_path / "a.wav", torch.zeros(1, 0), FS)
    assert names(tmp_path) == []


# --- whole or not at all ----------------------------------------------------------------------------------------------


def fail_under_way(writer, error):
    writer.write(noise(1, 5000))
    raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "mp3"])
def test_an_exception_leaves_nothing_behind_and_the_old_file_as_it_was(tmp_path, suffix, error):
    path = tmp_path / f"a.{suffix}"
    audio_io.save(path, noise(1, 1000), FS)
    before = path.read_bytes()
    for target in (path, tmp_path / f"new.{suffix}"):
        writer = audio_io.Writer(target, FS, 1)
        with pytest.raises(error), writer:
            fail_under_way(writer, error)
    assert path.read_bytes() == before
    assert names(tmp_path) == [path.name]


def test_nothing_appears_before_the_block_ends(tmp_path):
    with audio_io.Writer(tmp_path / "a.wav", FS, 1) as writer:
        writer.write(noise(1, 100))
        assert not (tmp_path / "a.wav").exists()
    assert names(tmp_path) == ["a.wav"]


def test_a_stream_gets_nothing_after_an_exception():
    file = io.BytesIO()
    writer = audio_io.Writer(file, FS, 1, format="wav")
    with pytest.raises(RuntimeError), writer:
        fail_under_way(writer, RuntimeError)
    assert file.getvalue() == b""


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_raises_at_its_write_and_the_file_may_go_on(tmp_path, bad):
    good, wrong = noise(2, 100), noise(2, 50)
    wrong[1, 7:9] = bad
    with audio_io.Writer(tmp_path / "a.wav", FS, 2, bits_per_sample=24) as writer:
        writer.write(good)
        with pytest.raises(ArgumentError, match="got 2 NaN or infinite samples, the first in frame 107"):
            writer.write(wrong)
        writer.write(good)
    assert audio_io.info(tmp_path / "a.wav").frames == 200


def test_floats_keep_what_is_not_finite(tmp_path):
    ys = torch.tensor([[0.0, float("nan"), float("inf"), -float("inf"), 5.0]])
    audio_io.save(tmp_path / "a.wav", ys, FS)
    assert torch.equal(audio_io.load(tmp_path / "a.wav")[0].nan_to_num(nan=7.0), ys.nan_to_num(nan=7.0))


# --- checks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("a.xyz", FS, 1), ArgumentError, "path must end in one of .wav, .flac"),
        (
            ("a.wav", FS, 1, "mp4"),
            ArgumentError,
            "format must be one of WAV, FLAC, .*RAW, got 'mp4'",
        ),
        (("a.flac", FS, 1, None, "FLOAT"), ArgumentError, "FLAC files hold PCM_16, PCM_24, PCM_S8; got"),
        (("a.wav", FS, 1, None, "PCM_16", 24), ArgumentError, "WAV files hold"),
        (("a.wav", 0, 1), ArgumentError, r"fs must lie in \(0, inf\) Hz, got 0"),
        (("a.aiff", 2**31 - 1, 1), ArgumentError, r"fs must lie in \(0, 1073741823\] Hz in AIFF files, got 2147483647"),
        (("a.wav", FS, 0), ArgumentError, "channels must be a whole number >= 1, got 0"),
        (("a.mp3", FS, 3), ArgumentError, "1 to 2 channels in MP3 files, got 3"),
        (("a.wav", FS, 1.0), ArgumentTypeError, r"channels must be a whole number >= 1, got 1.0 \(float\)"),
        (("nowhere/a.wav", FS, 1), AudioFileError, "cannot write .*: No such file or directory"),
        (("", FS, 1), AudioFileError, "that names no file"),
        ((".", FS, 1, "wav"), AudioFileError, "it is a folder"),
    ],
)
def test_arguments_are_checked_at_construction(tmp_path, monkeypatch, arguments, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message) as caught:
        audio_io.Writer(*arguments)
    assert caught.value.__cause__ is not caught.value
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("ys", "error", "message"),
    [
        ([[0.0]], ArgumentTypeError, "ys must be a tensor or array of float32 or float64, got list"),
        (
            np.zeros((2, 5), np.int16),
            ArgumentTypeError,
            "ys must be a tensor or array of float32 or float64, got int16",
        ),
        (torch.zeros(2, 5).half(), ArgumentTypeError, "got torch.float16"),
        (torch.zeros(2, 5, dtype=torch.int16), ArgumentTypeError, "got torch.int16"),
        (torch.zeros(2, 5, dtype=torch.complex64), ArgumentTypeError, "got torch.complex64"),
        (torch.zeros(5), ArgumentError, r"ys must have the shape \(channels, frames\) and hold samples, got \(5,\)"),
    ],
)
def test_samples_are_checked(tmp_path, ys, error, message):
    with pytest.raises(error, match=message):
        audio_io.save(tmp_path / "a.wav", ys, FS)
    with audio_io.Writer(tmp_path / "b.wav", FS, 2) as writer:
        with pytest.raises(error, match=message):
            writer.write(ys)
        writer.write(torch.zeros(2, 5))
    assert names(tmp_path) == ["b.wav"]


def test_blocks_have_the_channels_announced(tmp_path):
    with audio_io.Writer(tmp_path / "a.wav", FS, 2) as writer:
        with pytest.raises(ArgumentError, match=r"ys must have the shape \(2, frames\), got \(1, 10\)"):
            writer.write(torch.zeros(1, 10))
        writer.write(torch.zeros(2, 10))


# --- beyond full scale ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "encoding", "verb"),
    [
        ("wav", "PCM_16", "were clipped"), ("wav", "ULAW", "were clipped"), ("flac", "PCM_24", "were clipped"),
        ("ogg", "VORBIS", "clip where they are decoded"), ("mp3", "MPEG_LAYER_III", "clip where they are decoded"),
    ],
)  # fmt: skip
def test_samples_beyond_full_scale_are_counted_once_for_all_blocks(tmp_path, suffix, encoding, verb):
    loud = torch.tensor([[0.5, 1.0, -1.0, 1.5, -2.0]])
    path = tmp_path / f"a.{suffix}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with audio_io.Writer(path, FS, 1, encoding=encoding) as writer:
            for _ in range(300):
                writer.write(loud)
    [warning] = caught
    assert warning.category is audio_io.ClippingWarning
    assert f"a.{suffix}: 600 of 1500 samples lie beyond full scale and {verb}" in str(warning.message)
    assert warning.filename == __file__


def test_vorbis_keeps_what_lies_beyond_full_scale(tmp_path):
    tone = 3 * torch.sin(torch.arange(20_000) * 0.05)[None]
    with pytest.warns(audio_io.ClippingWarning):
        audio_io.save(tmp_path / "a.ogg", tone, FS)
    assert float(audio_io.load(tmp_path / "a.ogg")[0].abs().max()) > 2.5


def test_floats_beyond_full_scale_raise_no_warning(tmp_path, recwarn):
    audio_io.save(tmp_path / "a.wav", torch.full((1, 10), 2.0), FS)
    assert not recwarn.list


# --- long files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_a_wav_that_grows_too_long_for_its_header_becomes_rf64(tmp_path, monkeypatch, encoding):
    """Sizes in a WAV's header have 32 bits; the limit is lowered here. What was written before is copied."""
    ys = noise(2, 5000)
    audio_io.save(tmp_path / "short.wav", ys, FS, encoding=encoding)
    monkeypatch.setattr(audio_io.formats, "COUNTABLE", 7000)
    with audio_io.Writer(tmp_path / "a.wav", FS, 2, encoding=encoding, tags={"title": "long"}) as writer:
        for block in ys.split(300, dim=1):
            writer.write(block)
        assert len(names(tmp_path)) == 2
    assert (tmp_path / "a.wav").read_bytes()[:4] == b"RF64"
    assert audio_io.info(tmp_path / "a.wav") == audio_io.AudioInfo(FS, 2, 5000, "WAV", encoding, {"title": "long"})
    assert torch.equal(audio_io.load(tmp_path / "a.wav")[0], audio_io.load(tmp_path / "short.wav")[0])


def test_an_aiff_that_grows_too_long_raises_before_it_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(audio_io.formats, "COUNTABLE", 7000)
    with audio_io.Writer(tmp_path / "a.aiff", FS, 1, bits_per_sample=16) as writer:
        writer.write(noise(1, 3000))
        with pytest.raises(ArgumentError, match="shorter than 4 GiB in AIFF files of PCM_16, got 8000 bytes"):
            writer.write(noise(1, 1000))
    assert audio_io.load(tmp_path / "a.aiff")[0].shape == (1, 3000)


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "mp3", "aiff"])
def test_a_file_object_gets_the_file_at_its_position(suffix):
    file = io.BytesIO(b"head")
    file.seek(4)
    audio_io.save(file, noise(1, 2000), FS, format=suffix)
    assert file.getvalue()[:4] == b"head"
    assert audio_io.info(io.BytesIO(file.getvalue()[4:])).frames == 2000


def test_an_open_files_name_decides_its_format(tmp_path):
    with (tmp_path / "a.flac").open("wb") as file:
        audio_io.save(file, noise(1, 100), FS)
        assert not file.closed
    assert audio_io.info(tmp_path / "a.flac").format == "FLAC"


class Slow(io.RawIOBase):
    """An unbuffered file that takes at most 1000 bytes at a time."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, data):
        self.data += bytes(data[:1000])
        return min(len(data), 1000)


def test_an_unbuffered_stream_gets_every_byte():
    stream, file = Slow(), io.BytesIO()
    for target in (stream, file):
        audio_io.save(target, noise(1, 5000), FS, format="wav")
    assert stream.data == file.getvalue()


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (io.StringIO(), ArgumentTypeError, "the target must be a path or a binary file object, got <_io.StringIO"),
        (3, ArgumentTypeError, r"the target must be a path or a binary file object, got 3 \(int\)"),
        (io.BufferedReader(io.BytesIO()), AudioFileError, "it was opened for reading only"),
    ],
)
def test_targets_that_cannot_be_written_raise(target, error, message):
    with pytest.raises(error, match=message):
        audio_io.save(target, noise(1, 10), FS, format="wav")


@posix
def test_a_pipe_as_target_is_written_into(tmp_path):
    os.mkfifo(tmp_path / "a.wav")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "a.wav").read_bytes()))
    reader.start()
    audio_io.save(tmp_path / "a.wav", noise(1, 100), FS)
    reader.join()
    assert audio_io.info(io.BytesIO(received[0])).frames == 100
    assert stat.S_ISFIFO((tmp_path / "a.wav").stat().st_mode)
    assert names(tmp_path) == ["a.wav"]


# --- permissions, links -----------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "a.wav"
    audio_io.save(path, noise(1, 100), FS)
    path.chmod(mode)
    with audio_io.Writer(path, FS, 1) as writer:
        writer.write(noise(1, 200))
        [temporary] = tmp_path.glob(".torchfx-*")
        assert stat.S_IMODE(temporary.stat().st_mode) & ~0o600 == 0  # others cannot look inside meanwhile
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert audio_io.info(path).frames == 200


@posix
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        audio_io.save(tmp_path / "a.wav", noise(1, 100), FS)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.wav").stat().st_mode) == 0o640


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_stays_one_and_what_it_points_to_is_replaced(tmp_path, exists):
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "real.wav", tmp_path / "link.wav"
    if exists:
        audio_io.save(real, noise(1, 100), FS)
    link.symlink_to(os.path.join("there", "real.wav"))  # noqa: PTH118
    audio_io.save(link, noise(1, 200), FS)
    assert link.is_symlink()
    assert audio_io.info(real).frames == 200
    assert names(tmp_path / "there") == ["real.wav"]


@posix
def test_a_link_that_leads_to_itself_raises(tmp_path):
    (tmp_path / "a.wav").symlink_to("a.wav")
    with pytest.raises(AudioFileError, match=r"cannot write .*a\.wav: .*symbolic links"):
        audio_io.save(tmp_path / "a.wav", noise(1, 10), FS)


# --- temporary files of other processes -------------------------------------------------------------------------------


@posix
def test_temporary_files_of_dead_processes_are_removed_and_all_others_kept(tmp_path, monkeypatch):
    with audio_io.Writer(tmp_path / "own.wav", FS, 1) as writer:
        writer.write(noise(1, 10))
        [own] = tmp_path.glob(".torchfx-*")
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        _, _, host, _ = own.name.removeprefix(".").split("-")
        dead, living, elsewhere, alike = (
            tmp_path / name
            for name in (
                f".torchfx-{ended.pid}-{host}-0123abcd.wav",
                f".torchfx-{os.getppid()}-{host}-0123abcd.wav",
                f".torchfx-{ended.pid}-00000000-0123abcd.wav",  # on another host, or before a restart
                f".torchfx-{ended.pid}-{host}-notes.txt",
            )
        )
        for path in (dead, living, elsewhere, alike):
            path.write_bytes(b"")
        monkeypatch.setattr(audio_io.temporary, "_swept", set())
        audio_io.save(tmp_path / "new.wav", noise(1, 10), FS)
        assert names(tmp_path) == sorted([own.name, living.name, elsewhere.name, alike.name, "new.wav"])
    assert (tmp_path / "own.wav").exists()
