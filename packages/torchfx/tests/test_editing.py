"""Files cut and joined hold the same samples, bit for bit."""

import itertools

import numpy as np
import pytest
import soundfile
import torch

import torchfx as fx
from command import run_here
from torchfx import audio_io, editing
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

FS = 8000


def written(path, frames=3 * FS, channels=2, subtype="PCM_16", fs=FS, seed=0):
    ints = np.random.default_rng(seed).integers(-(2**31), 2**31, (frames, channels), np.int32)
    soundfile.write(path, ints, fs, subtype=subtype)
    return path


def samples(path):
    return soundfile.read(path, dtype="int32", always_2d=True)[0]


@pytest.mark.parametrize(("name", "subtype"), [("a.wav", "PCM_16"), ("a.wav", "PCM_32"), ("a.flac", "PCM_24")])
@pytest.mark.parametrize(
    ("start", "end", "frames"),
    [
        (0, None, (0, 3 * FS)),
        (0.5, "1250ms", (4000, 10000)),
        ("100 samples", "101 samples", (100, 101)),
        ("-1", None, (2 * FS, 3 * FS)),
        ("-9", "-0:01", (0, 2 * FS)),
        ("0:01.5", 99, (12000, 3 * FS)),
    ],
)
def test_a_part_is_copied_bit_for_bit(tmp_path, name, subtype, start, end, frames):
    source, target = written(tmp_path / name, subtype=subtype), tmp_path / f"b{name[1:]}"
    assert editing.trim(source, target, start, end) == (frames[1] - frames[0]) / FS
    assert np.array_equal(samples(target), samples(source)[slice(*frames)])
    assert soundfile.info(target).subtype == subtype


def test_a_file_may_be_trimmed_in_place_and_keeps_its_tags(tmp_path):
    path = tmp_path / "a.flac"
    audio_io.save(path, np.zeros((1, FS)), FS, tags={"title": "Rain"})
    editing.trim(path, path, 0.25)
    assert audio_io.info(path).frames == 6000
    assert audio_io.info(path).tags["title"] == "Rain"


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (2, 1, "start must lie before end and before the file's end at 3 s, got 2 s to 1 s"),
        (3, None, "got 3 s to 3 s"),
        ("soon", None, "start must be seconds >= 0, or a text such as"),
        (0, "1:5", "end must be seconds"),
        (-1, None, r"start must lie in \[0, inf\) s, got -1"),
    ],
)
def test_times_are_checked_before_anything_is_written(tmp_path, start, end, message):
    source = written(tmp_path / "a.wav")
    with pytest.raises(ArgumentError, match=message):
        editing.trim(source, tmp_path / "b.wav", start, end)
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]


def test_files_are_joined_with_the_most_bits_among_them(tmp_path):
    parts = [written(tmp_path / "a.wav", 1000), written(tmp_path / "b.wav", 1, subtype="PCM_24", seed=1)]
    assert editing.concat([*parts, parts[0]], tmp_path / "c.wav") == 2001 / FS
    joined = samples(tmp_path / "c.wav")
    assert np.array_equal(joined, np.concatenate([samples(part) for part in (*parts, parts[0])]))
    assert soundfile.info(tmp_path / "c.wav").subtype == "PCM_24"


def test_files_that_differ_are_not_joined(tmp_path):
    first, other = written(tmp_path / "a.wav", 10), written(tmp_path / "b.wav", 10, channels=1)
    with pytest.raises(ArgumentError, match=r"sources must be alike: .*a.wav has 8000 Hz and 2 channels, .*b.wav"):
        editing.concat([first, other], tmp_path / "c.wav")
    with pytest.raises(ArgumentError, match="sources must name at least one file"):
        editing.concat([], tmp_path / "c.wav")
    with pytest.raises(AudioFileError, match="no such file"):
        editing.concat([first, tmp_path / "none.wav"], tmp_path / "c.wav")
    assert not (tmp_path / "c.wav").exists()


def test_a_file_is_cut_into_equal_parts(tmp_path):
    source = written(tmp_path / "a.wav", 10 * 100 + 1)
    parts = editing.split(source, tmp_path / "new" / "parts", every="100 samples")
    assert [part.name for part in parts] == [f"a-{i:02}.wav" for i in range(1, 12)]
    assert np.array_equal(np.concatenate([samples(part) for part in parts]), samples(source))


def tones(spans, frames):
    y = np.zeros((1, frames))
    for first, last in spans:
        y[0, first:last] = 0.5
    return y


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 1000), (5000, 6000)], [(0, 1800), (4200, 6800)]),
        ([(3000, 4000), (4500, 5000)], [(2200, 5800)]),  # a gap shorter than 0.3 s is none
        ([(0, 65_536), (70_000, 70_001)], [(0, 66_336), (69_200, 70_801)]),  # at a block's edge
        ([(65_000, 66_000), (68_400, 80_000)], [(64_200, 66_800), (67_600, 80_000)]),  # exactly 0.3 s apart
        ([(0, 1000), (3400, 4000), (4001, 4002)], [(0, 1800), (2600, 4802)]),
    ],
)
def test_a_file_is_cut_where_it_is_silent(tmp_path, spans, expected):
    audio_io.save(tmp_path / "a.wav", tones(spans, 80_000), FS)
    parts = editing.split(tmp_path / "a.wav", tmp_path, silence_db=-40)
    found = [soundfile.read(part)[0] for part in parts]
    whole = soundfile.read(tmp_path / "a.wav")[0]
    assert [len(part) for part in found] == [last - first for first, last in expected]
    for part, span in zip(found, expected, strict=True):
        assert np.array_equal(part, whole[slice(*span)])


def test_parts_do_not_overlap(tmp_path):
    audio_io.save(tmp_path / "a.wav", tones([(0, 100), (300, 400)], 1000), FS)
    parts = editing.split(tmp_path / "a.wav", tmp_path, silence_db=-40, least="200 samples", keep=10.0)
    assert [audio_io.info(part).frames for part in parts] == [200, 800]


def test_splitting_says_what_it_needs(tmp_path):
    audio_io.save(tmp_path / "a.wav", np.zeros((1, 100)), FS)
    for options in ({}, {"every": 1.0, "silence_db": -40}):
        with pytest.raises(ArgumentError, match="split needs either every or silence_db"):
            editing.split(tmp_path / "a.wav", tmp_path / "parts", **options)
    with pytest.raises(ArgumentError, match=r"silent at -40 dB"):
        editing.split(tmp_path / "a.wav", tmp_path / "parts", silence_db=-40)
    with pytest.raises(ArgumentError, match="every must be at least one sample"):
        editing.split(tmp_path / "a.wav", tmp_path / "parts", every=0.00001)
    with pytest.raises(ArgumentTypeError):
        editing.split(tmp_path / "a.wav", tmp_path / "parts", every=[])
    assert not (tmp_path / "parts").exists()


def test_the_commands(tmp_path):
    written(tmp_path / "a.wav", 1000)
    for words, printed in [
        (("trim", "a.wav", "b.wav", "--end", "-500 samples"), "a.wav -> b.wav (0.06 s)\n"),
        (("concat", "a.wav", "b.wav", "c.flac"), "2 files -> c.flac (0.19 s)\n"),
        (("split", "a.wav", "parts", "--every", "0.1", "--suffix", ".flac"), "parts/a-1.flac\nparts/a-2.flac\n"),
    ]:
        ran = run_here(*words, folder=tmp_path)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, printed, "")
        refused = run_here(*words, folder=tmp_path)
        assert refused.returncode == 2
        assert "exists already; --force overwrites it" in refused.stderr
        assert run_here(*words, "--force", folder=tmp_path).returncode == 0
    assert run_here("trim", "none.wav", "d.wav", folder=tmp_path).returncode == 3
    assert run_here("concat", "a.wav", folder=tmp_path).returncode == 2
    names = sorted(path.name for path in itertools.chain(tmp_path.iterdir(), (tmp_path / "parts").iterdir()))
    assert names == ["a-1.flac", "a-2.flac", "a.wav", "b.wav", "c.flac", "parts"]


# --- tags and chapters ------------------------------------------------------------------------------------------------

TAGS = {"title": "Größe", "composer": "日本", "license": "CC0"}
CHAPTERS = [audio_io.Chapter(0.0, "intro"), audio_io.Chapter(1.0, "talk"), audio_io.Chapter(2.5, "end")]


@pytest.fixture(params=["wav", "mp3", "flac", "ogg", "opus", "aiff"])
def talk(tmp_path, request):
    pytest.importorskip("mutagen")
    path = tmp_path / f"talk.{request.param}"
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, (1, 3 * FS))
    audio_io.save(path, noise, FS, tags=TAGS, chapters=CHAPTERS)
    return path


def chapters(path):
    return [(each.start_s, each.title) for each in audio_io.info(path).chapters]


def test_a_part_has_the_chapters_that_reach_into_it(tmp_path, talk):
    target = tmp_path / f"part{talk.suffix}"
    editing.trim(talk, target, 0.5, 2.5)
    assert chapters(target) == [(0.0, "intro"), (0.5, "talk")]
    assert TAGS.items() <= audio_io.info(target).tags.items()
    editing.trim(talk, target, 1.0, 1.5)
    assert chapters(target) == [(0.0, "talk")]


def test_each_part_of_a_split_has_its_chapters(tmp_path, talk):
    parts = editing.split(talk, tmp_path / "parts", every=2.0)
    assert [chapters(part) for part in parts] == [[(0.0, "intro"), (1.0, "talk")], [(0.0, "talk"), (0.5, "end")]]
    assert all(TAGS.items() <= audio_io.info(part).tags.items() for part in parts)


def test_joined_files_have_the_first_ones_tags_and_the_chapters_of_all(tmp_path, talk):
    second, joined = tmp_path / "second.wav", tmp_path / f"joined{talk.suffix}"
    audio_io.save(second, np.zeros((1, FS)), FS, tags={"title": "no"}, chapters=[audio_io.Chapter(0.25, "second")])
    assert editing.concat([talk, second], joined) >= 4.0
    length = audio_io.info(talk).frames / FS
    *first, (start, title) = chapters(joined)
    assert first == [(each.start_s, each.title) for each in CHAPTERS]
    assert (start, title) == (pytest.approx(length + 0.25, abs=6e-4), "second")
    assert TAGS.items() <= audio_io.info(joined).tags.items()


@pytest.mark.parametrize("words", [["convert"], ["process", "-e", "gain:0.5"], ["process", "-e", "reverse"]])
@pytest.mark.parametrize("suffix", [".flac", ".mp3", ".wav", ".ogg"])
def test_conversions_keep_tags_and_chapters(tmp_path, talk, words, suffix):
    command, *rest = words
    ran = run_here(command, talk.name, f"out{suffix}", *rest, folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert TAGS.items() <= audio_io.info(tmp_path / f"out{suffix}").tags.items()
    assert chapters(tmp_path / f"out{suffix}") == [(each.start_s, each.title) for each in CHAPTERS]


def test_what_is_lost_without_mutagen_is_a_warning_in_one_line(tmp_path, talk, monkeypatch):
    monkeypatch.setattr(audio_io.tags, "has_mutagen", lambda: False)
    monkeypatch.setattr(audio_io.writer, "has_mutagen", lambda: False)
    for words in (["convert", talk.name, "out.flac"], ["trim", talk.name, "part.flac"], ["info", talk.name]):
        audio_io.mutagen_tags.warn_of_loss.cache_clear()
        ran = run_here(*words, folder=tmp_path)
        assert ran.returncode == 0
        assert ran.stderr == "warning: some tags or chapters are lost; pip install mutagen keeps them\n"


def noisy(path, fs, channels, frames, seed):
    x = np.random.default_rng(seed).uniform(-0.3, 0.3, (channels, frames))
    audio_io.save(path, torch.tensor(x, dtype=torch.float32), fs)
    return audio_io.load(path)[0].double().numpy()


def test_files_of_other_lengths_and_channels_add_up_at_their_gains(tmp_path, monkeypatch):
    monkeypatch.setattr(editing, "BLOCK", 777)
    one, two = noisy(tmp_path / "a.wav", 16_000, 1, 3000, 0), noisy(tmp_path / "b.wav", 16_000, 2, 5000, 1)
    assert editing.mix([tmp_path / "a.wav", tmp_path / "b.wav"], tmp_path / "m.wav", ["-6dB", -12]) == 5000 / 16_000
    expected = 10 ** (-12 / 20) * two
    expected[:, :3000] += 10 ** (-6 / 20) * one
    assert np.abs(audio_io.load(tmp_path / "m.wav")[0].numpy() - expected).max() < 1e-7


@pytest.mark.parametrize(("rate", "fs"), [(None, 48_000), (16_000, 16_000), (44_100, 44_100)])
def test_files_of_other_rates_are_resampled(tmp_path, monkeypatch, rate, fs):
    monkeypatch.setattr(editing, "BLOCK", 777)
    noisy(tmp_path / "a.wav", 16_000, 2, 3000, 0)
    noisy(tmp_path / "b.wav", 48_000, 2, 12_000, 1)
    editing.mix([tmp_path / "a.wav", tmp_path / "b.wav"], tmp_path / "m.wav", rate=rate)
    parts = [fx.Wave.from_file(tmp_path / name) | fx.filter.Resample(fs) for name in ("a.wav", "b.wav")]
    total = torch.zeros(2, max(len(part) for part in parts))
    for part in parts:
        total[:, : len(part)] += part.ys
    mixed, found = audio_io.load(tmp_path / "m.wav")
    assert found == fs
    assert mixed.shape == total.shape
    assert float((mixed - total).abs().max()) < 1e-6


def test_a_mix_says_what_it_needs_and_writes_nothing(tmp_path):
    noisy(tmp_path / "a.wav", 16_000, 2, 100, 0)
    noisy(tmp_path / "b.wav", 16_000, 3, 100, 1)
    names = [tmp_path / "a.wav", tmp_path / "b.wav"]
    with pytest.raises(ArgumentError, match=r"sources must have 1 or 3 channels, got 2 in .*a.wav"):
        editing.mix(names, tmp_path / "m.wav")
    with pytest.raises(ArgumentError, match="gains_db must be one for each of 2 sources, got 1"):
        editing.mix(names, tmp_path / "m.wav", [0])
    with pytest.raises(ArgumentError, match="sources must name at least one file"):
        editing.mix([], tmp_path / "m.wav")
    assert not (tmp_path / "m.wav").exists()


def test_the_mix_command(tmp_path):
    noisy(tmp_path / "a.wav", 16_000, 2, 16_000, 0)
    ran = run_here("mix", "a.wav", "a.wav", "m.wav", "--gain", "0", "-g", "-6dB", "--rate", "32kHz", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "2 files -> m.wav (1.00 s)\n")
    assert audio_io.info(tmp_path / "m.wav").fs == 32_000
    ran = run_here("mix", "a.wav", "m.wav", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (2, "error: m.wav exists already; --force overwrites it\n")
