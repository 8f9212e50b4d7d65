"""Audio files: formats, depths, parts, errors, and nothing lost."""

import io
import os
import sys
from functools import partial

import numpy as np
import pytest
import soundfile
import torch

import torchfx as fx
from torchfx import audio_io
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

FS = 44100


@pytest.fixture
def tone():
    t = np.arange(FS // 2) / FS
    return torch.from_numpy(np.stack([0.5 * np.sin(2 * np.pi * 440 * t), 0.3 * np.sin(2 * np.pi * 660 * t)])).float()


@pytest.mark.parametrize(
    ("name", "bits", "step"),
    [
        ("a.wav", 8, 2**-7), ("a.wav", 16, 2**-15), ("a.wav", 24, 2**-23), ("a.wav", 32, 2**-24),
        ("a.flac", 16, 2**-15), ("a.flac", 24, 2**-23), ("a.aiff", 8, 2**-7), ("a.aiff", 16, 2**-15),
        ("a.aif", 24, 2**-23), ("a.AIFF", 32, 2**-24),
    ],
)  # fmt: skip
def test_integers_round_to_their_step_and_come_back_bit_by_bit(tmp_path, tone, name, bits, step):
    first, second = tmp_path / name, tmp_path / ("again-" + name)
    audio_io.save(first, tone, FS, bits_per_sample=bits)
    ys, fs = audio_io.load(first)
    assert fs == FS
    assert float((ys - tone).abs().max()) <= step / 2 + 2**-25
    audio_io.save(second, ys, FS, bits_per_sample=bits)
    assert first.read_bytes()[44:] == second.read_bytes()[44:]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("a.wav", {}), ("a.wav", {"encoding": "PCM_F"}), ("a.aiff", {"encoding": "PCM_F", "bits_per_sample": 32})],
)
def test_floats_are_kept(tmp_path, tone, name, arguments):
    loud = tone * 3
    audio_io.save(tmp_path / name, loud, FS, **arguments)
    assert torch.equal(audio_io.load(tmp_path / name)[0], loud)


def test_doubles_are_kept(tmp_path, tone):
    exact = tone.double() / 3
    audio_io.save(tmp_path / "a.wav", exact, FS)
    assert audio_io.info(tmp_path / "a.wav").encoding == "DOUBLE"
    assert torch.equal(audio_io.load(tmp_path / "a.wav")[0], exact)


@pytest.mark.parametrize("name", ["a.ogg", "a.mp3"])
def test_lossy_formats_sound_the_same(tmp_path, tone, name):
    audio_io.save(tmp_path / name, tone, FS)
    ys, fs = audio_io.load(tmp_path / name)
    assert fs == FS
    middle = slice(FS // 8, FS // 4)
    spectrum = np.abs(np.fft.rfft(ys[:, middle].numpy()))
    peaks = spectrum.argmax(1) * FS / (FS // 4 - FS // 8)
    assert peaks == pytest.approx([440, 660], abs=8)


def test_suffix_decides_and_format_names_what_no_suffix_does(tmp_path, tone):
    audio_io.save(tmp_path / "a.flac", tone, FS)
    assert audio_io.info(tmp_path / "a.flac") == audio_io.AudioInfo(FS, 2, FS // 2, "FLAC", "PCM_24")
    audio_io.save(tmp_path / "a.bin", tone, FS, format="flac", bits_per_sample=16)
    assert audio_io.info(tmp_path / "a.bin").encoding == "PCM_16"


@pytest.mark.parametrize("suffix", audio_io.FORMATS)
def test_a_format_that_contradicts_the_suffix_is_refused(tmp_path, tone, suffix):
    path, own = tmp_path / f"a{suffix.upper()}", audio_io.FORMATS[suffix]
    source = audio_io.AudioInfo(FS, 2, 100, "WAV", "PCM_16")
    named = io.BytesIO()
    named.name = f"a{suffix}"
    for form in sorted({*audio_io.FORMATS.values()} - {own}):
        calls = [partial(fx.Wave(tone, FS).save, target, form) for target in (path, named)]
        calls += [partial(audio_io.save, target, tone, FS, form) for target in (path, named)]
        calls += [
            partial(audio_io.kept_encoding, path, source, form),
            partial(audio_io.kept_tags, path, {}, form),
            partial(audio_io.kept_bitrate, path, source, FS, 2, form),
        ]
        for call in calls:
            with pytest.raises(ArgumentError, match=rf"(?i)format must be {own}, .* suffix {suffix} of .*, got {form}"):
                call()
    assert not path.exists()
    assert not named.getvalue()
    assert audio_io.kept_encoding(path, source, own.lower())


def test_parts_of_a_file(tmp_path, tone):
    audio_io.save(tmp_path / "a.wav", tone, FS)
    part, _ = audio_io.load(tmp_path / "a.wav", frame_offset=100, num_frames=50)
    assert torch.equal(part, tone[:, 100:150])
    rest, _ = audio_io.load(tmp_path / "a.wav", frame_offset=22000, num_frames=1000)
    assert torch.equal(rest, tone[:, 22000:])
    assert len(fx.Wave.from_file(tmp_path / "a.wav", 10)) == FS // 2 - 10


def test_long_files_are_read_and_written_in_blocks(tmp_path, monkeypatch, tone):
    monkeypatch.setattr(audio_io.samples, "BLOCK", 1000)
    audio_io.save(tmp_path / "a.wav", tone, FS)
    assert torch.equal(audio_io.load(tmp_path / "a.wav")[0], tone)


def test_clipping_is_reported_with_its_number(tmp_path):
    ys = torch.tensor([[0.5, 1.0, -1.0, 1.5, -2.0]])
    with pytest.warns(audio_io.ClippingWarning, match=r"a\.wav: 2 of 5 samples lie beyond full scale and were clipped"):
        audio_io.save(tmp_path / "a.wav", ys, FS, bits_per_sample=16)
    back = soundfile.read(tmp_path / "a.wav", dtype="int16")[0]
    assert back.tolist() == [16384, 32767, -32768, 32767, -32768]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.wav", None, "no such file"),
        ("empty.wav", b"", "the file is empty"),
        ("noise.wav", bytes(range(256)) * 20, "cannot read"),
        ("text.flac", b"no audio at all", "cannot read"),
        ("text.xyz", b"no audio at all", "cannot read"),
    ],
)
def test_unreadable_files_raise_in_one_line(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(AudioFileError, match=message) as caught:
        audio_io.load(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.aiff"])
def test_truncated_files_raise(tmp_path, name):
    noise = torch.rand(2, FS, generator=torch.Generator().manual_seed(0)) - 0.5
    audio_io.save(tmp_path / name, noise, FS)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AudioFileError, match=r"truncated|cannot read"):
        audio_io.load(tmp_path / name)


def test_a_name_the_system_refuses_raises_in_one_line(tmp_path):
    with pytest.raises(AudioFileError, match=r"^cannot read .*: File name too long$"):
        audio_io.load(tmp_path / ("x" * 300 + ".wav"))


def test_raw_samples_have_no_header(tmp_path):
    (tmp_path / "a.raw").write_bytes(bytes(100))
    with pytest.raises(AudioFileError, match=r"cannot read .*a.raw: raw samples don't say their rate"):
        audio_io.load(tmp_path / "a.raw")


def test_encodings_that_cannot_be_sought_in_are_read(tmp_path, tone):
    audio_io.save(tmp_path / "a.wav", tone[:1], 8000, encoding="GSM610")
    assert audio_io.load(tmp_path / "a.wav")[0].shape[1] >= tone.shape[1]


def test_names_may_be_as_long_as_the_system_allows(tmp_path, tone):
    name = "x" * 251 + ".wav"
    audio_io.save(tmp_path / name, tone, FS)
    assert torch.equal(audio_io.load(tmp_path / name)[0], tone)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_not_utf_8(tmp_path, tone):
    name = os.fsdecode(b"caf\xe9.wav")
    audio_io.save(tmp_path / name, tone, FS)
    assert torch.equal(audio_io.load(tmp_path / name)[0], tone)


def test_a_wav_too_long_for_its_header_is_rf64(tmp_path, tone, monkeypatch):
    """Beyond 4 GiB the header's 32 bits overflow, and what lies beyond would be lost; the limit is lowered here."""
    monkeypatch.setattr(audio_io.formats, "COUNTABLE", tone.numel() * 4)
    audio_io.save(tmp_path / "a.wav", tone, FS)
    assert (tmp_path / "a.wav").read_bytes()[:4] == b"RF64"
    assert audio_io.info(tmp_path / "a.wav") == audio_io.AudioInfo(FS, 2, FS // 2, "WAV", "FLOAT")
    assert torch.equal(audio_io.load(tmp_path / "a.wav")[0], tone)
    audio_io.save(tmp_path / "b.wav", tone, FS, bits_per_sample=16)
    assert (tmp_path / "b.wav").read_bytes()[:4] == b"RIFF"
    with pytest.raises(ArgumentError, match="shorter than 4 GiB in AIFF files of FLOAT"):
        audio_io.save(tmp_path / "c.aiff", tone, FS, encoding="FLOAT")


@pytest.mark.parametrize(
    ("name", "channels", "fs", "message"),
    [
        ("a.mp3", 3, FS, "ys must have 1 to 2 channels in MP3 files, got 3"),
        ("a.flac", 9, FS, "1 to 8 channels in FLAC files, got 9"),
        ("a.ogg", 256, FS, "1 to 255 channels in OGG files, got 256"),  # libsndfile crashes
        ("a.wav", 1025, FS, "1 to 1024 channels"),
        ("a.ogg", 1, 200_001, r"fs must lie in \(0, 200000\] Hz in OGG files, got 200001"),  # libsndfile crashes
        ("a.wav", 1, 5_000_000_000, r"fs must lie in \(0, 2147483647\] Hz"),
    ],
)
def test_what_a_format_has_no_room_for_raises(tmp_path, name, channels, fs, message):
    with pytest.raises(ArgumentError, match=message):
        audio_io.save(tmp_path / name, torch.zeros(channels, 100), fs)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def full_disk():
    """Files of this process cannot grow beyond 20 kB."""
    resource = pytest.importorskip("resource", reason="needs a limit on files' sizes")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg", "a.mp3", "a.aiff", "a.m4a", "a.aac"])
def test_a_full_disk_raises_and_leaves_no_file(tmp_path, generator, full_disk, name):
    """Vorbis reports no failed write: half a recording looked like success."""
    if name in {"a.m4a", "a.aac"}:
        pytest.importorskip("av")
    with pytest.raises(AudioFileError, match=rf"^cannot write .*{name}: (File too large|.*is the disk full\?)$"):
        audio_io.save(tmp_path / name, torch.rand(1, 200_000, generator=generator) - 0.5, FS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg", "a.mp3", "a.aiff"])
@pytest.mark.parametrize("frames", [1, 2, 575, 576, 577, 1151, 1153, 4095, 4097])
def test_recordings_of_any_length_are_written(tmp_path, name, frames):
    audio_io.save(tmp_path / name, torch.full((1, frames), 0.25), FS)
    assert audio_io.load(tmp_path / name)[0].shape[1] >= frames


def test_a_header_that_promises_more_than_memory_holds(tmp_path, tone):
    audio_io.save(tmp_path / "a.flac", tone, FS)
    content = bytearray((tmp_path / "a.flac").read_bytes())
    content[21] |= 0x0F  # the number of frames: 36 bits from the middle of this byte on
    content[22:26] = b"\xff\xff\xff\xff"
    (tmp_path / "a.flac").write_bytes(content)
    with pytest.raises(AudioFileError, match=r"do not fit into memory|truncated"):
        audio_io.load(tmp_path / "a.flac")


def test_a_rate_the_encoder_refuses_is_said_once(tmp_path, tone):
    with pytest.raises(AudioFileError, match=r"^cannot write [^:]*: [^:]*only supports sample rates[^:]*$"):
        audio_io.save(tmp_path / "a.mp3", tone, 7999)


def test_streamed_headers_without_a_size_are_read(tmp_path, tone):
    """Programs that write a WAV to a pipe leave the sizes at their maximum."""
    audio_io.save(tmp_path / "a.wav", tone, FS, bits_per_sample=16)
    content = bytearray((tmp_path / "a.wav").read_bytes())
    at = content.index(b"data")
    content[4:8] = content[at + 4 : at + 8] = b"\xff\xff\xff\xff"
    (tmp_path / "a.wav").write_bytes(content)
    assert audio_io.load(tmp_path / "a.wav")[0].shape == tone.shape


def test_headers_without_samples_raise(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros((0, 2)), FS)
    with pytest.raises(AudioFileError, match=r"it holds no samples"):
        audio_io.load(tmp_path / "a.wav")
    with pytest.raises(AudioFileError, match=r"it is a folder"):
        audio_io.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("a.xyz", {}, r"path must end in one of .wav, .flac, .ogg, .oga, .mp3, .aiff, .aif"),
        ("a", {}, "path must end in one of"),
        ("a.wav", {"format": "xyz"}, "format must be one of WAV, FLAC, OGG, MP3, AIFF, OPUS, M4A, AAC, RAW, got 'xyz'"),
        (
            "a.flac",
            {"bits_per_sample": 32},
            "FLAC files hold PCM_16, PCM_24, PCM_S8; got encoding=None, bits_per_sample=32",
        ),
        ("a.flac", {"encoding": "PCM_F"}, "FLAC files hold"),
        ("a.wav", {"bits_per_sample": 12}, "WAV files hold"),
        ("a.wav", {"encoding": "MU_LAW"}, "WAV files hold"),
        ("a.wav", {"fs": 44100.5}, "fs must be a whole number of Hz in an audio file, got 44100.5"),
        ("a.wav", {"ys": torch.zeros(5)}, r"shape \(channels, frames\)"),
        (
            "a.wav",
            {"ys": torch.tensor([[0.0, float("nan")]]), "bits_per_sample": 16},
            "ys must be finite in a PCM_16 file, got 1 NaN",
        ),
    ],
)
def test_bad_arguments_raise_and_leave_no_file(tmp_path, tone, name, change, message):
    arguments = {"ys": tone, "fs": FS, **change}
    with pytest.raises(ArgumentError, match=message):
        audio_io.save(tmp_path / name, arguments.pop("ys"), arguments.pop("fs"), **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "frame_offset must be a whole number >= 0, got -1"),
        ((1.5,), r"frame_offset must be a whole number >= 0, got 1.5 \(float\)"),
        ((22050,), r"frame_offset must lie in \[0, 22050\) for .*, got 22050"),
        ((0, 0), r"num_frames \(-1 for all\) must be a whole number >= 1, got 0"),
        ((0, "all"), "got 'all'"),
        ((0, -2), "got -2"),
    ],
)
def test_bad_parts_raise(tmp_path, tone, arguments, message):
    audio_io.save(tmp_path / "a.wav", tone, FS)
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        audio_io.load(tmp_path / "a.wav", *arguments)


def test_a_failed_write_keeps_the_old_file_and_no_temporary(tmp_path, tone, monkeypatch):
    audio_io.save(tmp_path / "a.wav", tone, FS)
    before = (tmp_path / "a.wav").read_bytes()

    def full(self, data):
        raise soundfile.LibsndfileError(1, prefix="disk full: ")

    monkeypatch.setattr(soundfile.SoundFile, "write", full)
    with pytest.raises(AudioFileError, match=r"cannot write"):
        audio_io.save(tmp_path / "a.wav", tone * 0.5, FS)
    assert (tmp_path / "a.wav").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]


def test_a_missing_folder_raises(tmp_path, tone):
    with pytest.raises(AudioFileError, match=r"cannot write .*: No such file or directory"):
        audio_io.save(tmp_path / "nowhere" / "a.wav", tone, FS)


def test_rates_a_format_cannot_hold_raise(tmp_path, tone):
    with pytest.raises(AudioFileError, match=r"cannot write .*a\.mp3"):
        audio_io.save(tmp_path / "a.mp3", tone, 192_001)
    assert list(tmp_path.iterdir()) == []
