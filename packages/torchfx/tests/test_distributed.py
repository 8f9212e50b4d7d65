"""Files and archives through a chain."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

import torchfx as fx
from torchfx import audio_io, distributed
from torchfx.distributed import Arrivals, Job, Recipe, Report, Source, files, find, plan, process
from torchfx.distributed.levels import LimitedLoudness
from torchfx.distributed.manifest import NAME
from torchfx.distributed.sources import collisions, plan_outputs
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError, TorchFXError

MANY = os.environ.get("TORCHFX_CASES") == "many"


@pytest.fixture
def talk(tmp_path):
    path = tmp_path / "talk.wav"
    noise = torch.rand(2, 8000, generator=torch.Generator().manual_seed(0)) - 0.5
    audio_io.save(path, noise, 16000, bits_per_sample=16)
    return path


def process_files(jobs, module, overwrite=False):
    """Run each (source, target) through a module."""
    pairs = [Job(str(source), str(target)) for source, target in jobs]
    targets = frozenset(job.target for job in pairs if overwrite)
    return list(distributed.Plan(tuple(pairs), (), Recipe((module,)), targets).run(workers=1))


# --- one file ---------------------------------------------------------------------------------------------------------


def test_files_are_filtered_and_keep_their_encoding(tmp_path, talk):
    module = fx.filter.LoButterworth(1000, order=4)
    [outcome] = process_files([(talk, tmp_path / "out" / "talk.wav")], module)
    assert outcome.error is None
    assert (outcome.duration_s, outcome.not_finite) == (0.5, False)
    assert audio_io.info(outcome.job.target).encoding == "PCM_16"
    expected = (fx.Wave.from_file(talk) | module).ys
    assert torch.allclose(audio_io.load(outcome.job.target)[0], expected, atol=2**-16)
    [outcome] = process_files([(talk, tmp_path / "talk.flac")], module)
    assert audio_io.info(outcome.job.target).format == "FLAC"


def test_many_channels_keep_their_encoding(tmp_path):
    source = tmp_path / "multi.wav"
    soundfile.write(source, np.zeros((100, 17)), 48000, format="WAVEX", subtype="PCM_24")
    [outcome] = process_files([(source, tmp_path / "out.wav")], fx.effect.Gain(0.5))
    assert (audio_io.info(outcome.job.target).channels, audio_io.info(outcome.job.target).encoding) == (17, "PCM_24")


def test_folders_are_made(tmp_path, talk):
    for target in (tmp_path / "new" / "talk.wav", tmp_path / "a" / "whole" / "tree" / "talk.wav"):
        [outcome] = process_files([(talk, target)], fx.effect.Gain(0.5))
        assert outcome.error is None
        assert audio_io.info(target).frames == 8000
    for target in (talk / "talk.wav", talk / "deeper" / "talk.wav"):
        [outcome] = process_files([(talk, target)], fx.effect.Gain(0.5))
        assert isinstance(outcome.error, AudioFileError)
        assert str(outcome.error).startswith(f"cannot write {target}: ")


def test_no_folder_is_left_after_a_failure(tmp_path, talk):
    (tmp_path / "there").mkdir()
    jobs = [
        (talk, tmp_path / "a" / "b" / "talk.wav"),
        (talk, tmp_path / "there" / "c" / "talk.wav"),
        (tmp_path / "missing.wav", tmp_path / "d" / "talk.wav"),
    ]
    outcomes = list(process_files(jobs, fx.filter.LoButterworth(9000)))
    assert [type(outcome.error) for outcome in outcomes] == [ArgumentError, ArgumentError, AudioFileError]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["talk.wav", "there"]


class Reverse(fx.Processor):
    def forward(self, x):
        return x.flip(-1)


@pytest.mark.parametrize("module", [Reverse(), fx.effect.Gain(0.5) | Reverse(), fx.effect.Gain(0.5) + Reverse()])
def test_what_needs_the_whole_signal_gets_it(tmp_path, module):
    tags = {"title": "A title"}
    audio_io.save(tmp_path / "a.flac", torch.linspace(-0.5, 0.5, 1000)[None], 16000, bits_per_sample=16, tags=tags)
    [outcome] = process_files([(tmp_path / "a.flac", tmp_path / "b.flac")], module)
    assert outcome.duration_s == 1000 / 16000
    expected = (fx.Wave.from_file(tmp_path / "a.flac") | module).ys
    assert torch.allclose(audio_io.load(tmp_path / "b.flac")[0], expected, rtol=0, atol=2**-16)
    assert audio_io.info(tmp_path / "b.flac") == audio_io.AudioInfo(16000, 1, 1000, "FLAC", "PCM_16", tags)


@pytest.mark.parametrize("module", [fx.effect.Gain(0.5), Reverse()])
def test_samples_that_are_not_finite_are_counted(tmp_path, module):
    x = torch.zeros(2, 100)
    x[0, 40], x[1, 59] = float("nan"), float("inf")
    audio_io.save(tmp_path / "a.wav", x, 16000)
    [outcome] = process_files([(tmp_path / "a.wav", tmp_path / "b.wav")], module)
    assert outcome.not_finite
    assert (outcome.not_finite_in, outcome.not_finite_out) == ((2, 40), (2, 40))
    [outcome] = process_files([(tmp_path / "a.wav", tmp_path / "b.flac")], module)
    assert str(outcome.error) == (
        "ys must be finite in a PCM_24 file, got 2 NaN or infinite samples, the first in frame 40"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.wav", "b.wav"]


def test_one_failure_stops_nothing(tmp_path, talk):
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"RIFF")
    jobs = [(bad, tmp_path / "1.wav"), (talk, tmp_path / "2.wav"), (talk, talk)]
    first, second, third = process_files(jobs, fx.effect.Gain(0.5))
    assert "cannot read" in str(first.error)
    assert second.error is None
    assert "exists already; --force" in str(third.error)
    assert not (tmp_path / "1.wav").exists()
    assert (tmp_path / "2.wav").exists()


def test_overwriting_on_request_may_replace_the_source(tmp_path, talk):
    before = audio_io.load(talk)[0]
    [outcome] = process_files([(talk, talk)], fx.effect.Gain(0.5), overwrite=True)
    assert outcome.error is None
    assert torch.allclose(audio_io.load(talk)[0], before / 2, atol=2**-16)


def test_clipping_is_passed_on(tmp_path, talk):
    [outcome] = process_files([(talk, tmp_path / "loud.wav")], fx.effect.Gain(10.0))
    assert "were clipped" in outcome.warnings[0]


def test_samples_are_copied_exactly_without_pytorch(tmp_path):
    code = """
import sys
from torchfx.distributed import Recipe, process
report = process("deep.wav", "out/", Recipe(format="aiff"))
print(report.done, "torch" in sys.modules)
"""
    deep = np.random.default_rng(0).integers(-(2**31), 2**31, (500, 2), dtype=np.int64).astype(np.int32)
    soundfile.write(tmp_path / "deep.wav", deep, 48_000, subtype="PCM_32")
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1", "False"]
    assert np.array_equal(soundfile.read(tmp_path / "out" / "deep.aiff", dtype="int32")[0], deep)


# --- which files, and where to ----------------------------------------------------------------------------------------


def test_outputs_are_planned(tmp_path):
    def planned(sources, output):
        return [job.target for job in plan_outputs([Source(str(each), each.name) for each in sources], output)]

    a, b = tmp_path / "a.wav", tmp_path / "b.wav"
    assert planned([a], tmp_path / "c.flac") == [str(tmp_path / "c.flac")]
    assert planned([a], f"{tmp_path}/new.wav/") == [f"{tmp_path}/new.wav/a.wav"]
    assert planned([a], "new") == ["new/a.wav"]
    assert planned([a, b], "takes.2024") == ["takes.2024/a.wav", "takes.2024/b.wav"]
    (tmp_path / "file").write_text("")
    for output, message in [
        (tmp_path / "file", r"OUT must be a folder for 2 inputs"),
        (tmp_path / "new.wav", r"OUT must be a folder for 2 inputs, got the file .*new.wav"),
        ("-", r"OUT must be a folder for 2 inputs, got - \(stdout\)"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            planned([a, b], output)
    with pytest.raises(AudioFileError, match="File name too long"):
        planned([a], tmp_path / ("x" * 300 + ".wav"))


@pytest.fixture
def tree(tmp_path, talk):
    """An archive: in/a.wav, in/b.flac, in/deep/a.wav, and what is no audio."""
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    wave = fx.Wave.from_file(talk)
    for name in ("a.wav", "b.flac", "deep/a.wav"):
        wave.save(folder / name, bits_per_sample=16)
    (folder / "notes.txt").write_text("no audio")
    return folder


def test_folders_globs_and_tables_are_searched(tmp_path, tree):
    def names(where, recursive=False):
        return [source.name for source in find(where, recursive)]

    assert names(tree) == ["a.wav", "b.flac"]
    assert names(tree, recursive=True) == ["a.wav", "b.flac", "deep/a.wav"]
    assert names(f"{tree}/*.wav") == ["a.wav"]
    assert names(f"{tree}/**/a.wav") == ["a.wav", "deep/a.wav"]
    assert names(tree / "b.flac") == ["b.flac"]
    (tree / "list.csv").write_text("speaker,path\n1,deep/a.wav\n2,b.flac\n")
    assert names(tree / "list.csv") == ["b.flac", "deep/a.wav"]
    (tmp_path / "outside.csv").write_text(f"path\n{tree}/deep/a.wav\n{tree}/b.flac\n")
    assert names(tmp_path / "outside.csv") == ["in/b.flac", "in/deep/a.wav"]
    (tree / "wrong.csv").write_text("file\na.wav\n")
    with pytest.raises(ArgumentError, match='must have a column "path", got file'):
        find(tree / "wrong.csv")
    with pytest.raises(ArgumentError, match="has no audio files; --recursive"):
        find(f"{tree}/*.mp3")


def test_a_parquet_table_is_read(tree):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"path": ["deep/a.wav", "b.flac"]}), tree / "list.parquet")
    assert [source.name for source in find(tree / "list.parquet")] == ["b.flac", "deep/a.wav"]


def test_what_needs_a_long_signal_in_memory_is_refused_early(tmp_path, monkeypatch):
    fx.Wave(torch.zeros(2, 100_000), 16_000).save(tmp_path / "long.wav")
    fx.Wave(torch.zeros(2, 1000), 16_000).save(tmp_path / "short.wav")
    monkeypatch.setattr(files, "WHOLE_LIMIT", 150_000)
    names = [tmp_path / "long.wav", tmp_path / "short.wav"]
    report = process(names, tmp_path / "out", "pitchshift:3,wsola")
    assert report.done == 1
    [failure] = report.failures
    assert re.search(
        r"long.wav: .*needs the whole signal.* 150000 samples over all channels, got 200000", str(failure.error)
    )
    assert (
        process(names, tmp_path / "out", Recipe(("reverse", "noisereduction")), resume=False, overwrite=True).done == 2
    )


FS = 16_000


def programme(kind, seconds=3):
    """A mono or stereo signal of one kind of programme."""
    generator, time = torch.Generator().manual_seed(3), torch.arange(seconds * FS) / FS
    noise = torch.randn(2, len(time), generator=generator)
    syllables = torch.sin(2 * torch.pi * 3 * time).clamp(min=0) * torch.sin(2 * torch.pi * 0.4 * time).clamp(min=0)
    tones = torch.stack([torch.sin(2 * torch.pi * each * time) for each in (150, 450, 1200)])
    kinds = {
        "speech": 0.1 * syllables * (tones.sum(0) ** 3 / 9 + 0.2 * noise[0]),
        "bursts": noise[0] ** 3 / 60,
        "noise": 0.05 * noise,
        "clicks": torch.where(torch.arange(len(time)) % 4000 == 0, 0.9, 0.0),
        "tone": 0.3 * tones[:1],
    }
    return torch.atleast_2d(kinds[kind]).float()


@pytest.mark.parametrize("kind", ["speech", "bursts", "noise", "clicks", "tone"])
def test_a_loudness_under_a_ceiling_is_reached_or_the_outcome_gives_the_loudness(tmp_path, kind):
    fx.Wave(programme(kind), FS).save(tmp_path / "in.wav")
    for lufs, ceiling in ((-23.0, -1.0), (-14.0, -3.0)):
        target = tmp_path / f"{lufs}.wav"
        [outcome] = plan([tmp_path / "in.wav"], target, Recipe(loudness=lufs, true_peak=ceiling)).run(workers=1)
        found = fx.loudness.measure_file(target)
        assert found.true_peak_dbtp < ceiling + 0.1
        warned = " ".join(outcome.warnings)
        assert abs(found.integrated_lufs - lufs) < 0.12 or f"is {found.integrated_lufs:.1f} instead of" in warned
        assert bool(warned) == (abs(found.integrated_lufs - lufs) > 0.12)


def test_silence_under_a_ceiling_stays_silent_and_the_outcome_says_so(tmp_path):
    fx.Wave(torch.zeros(1, FS), FS).save(tmp_path / "in.wav")
    job = plan([tmp_path / "in.wav"], tmp_path / "out.wav", Recipe(loudness=-16.0, true_peak=-1.0))
    [outcome] = job.run(workers=1)
    assert not fx.Wave.from_file(tmp_path / "out.wav").ys.any()
    assert "silent" in " ".join(outcome.warnings)


@pytest.mark.parametrize("kind", ["speech", "noise"])
def test_the_loudness_under_a_ceiling_is_the_same_in_pieces(kind, monkeypatch):
    x, level = programme(kind, 2), LimitedLoudness(-23.0, -6.0, fs=FS)
    whole = level(x)
    monkeypatch.setattr("torchfx.distributed.levels.PIECE", 1000)
    torch.testing.assert_close(level(x), whole, rtol=0, atol=1e-6)
    assert whole.shape == x.shape


@pytest.mark.parametrize("resume", [True, False])
def test_files_that_collide_are_reported_and_the_others_are_done(tmp_path, talk, resume):
    wave = fx.Wave.from_file(talk)
    (tmp_path / "in").mkdir()
    for name in ("a.wav", "a.flac", "b.wav"):
        wave.save(tmp_path / "in" / name)
    for _ in range(2):
        report = process(tmp_path / "in", tmp_path / "out", Recipe(format="ogg"), resume=resume, overwrite=not resume)
        assert report.done + report.skipped == 1
        assert [path.name for path in (tmp_path / "out").glob("*.ogg")] == ["b.ogg"]
        assert sorted(Path(each.job.source).name for each in report.failures) == ["a.flac", "a.wav"]
        assert all("a.ogg would be that of" in str(each.error) for each in report.failures)


def test_an_output_that_would_replace_another_input_is_reported():
    nested = [Source("out/deep/a.wav", "b.wav"), Source("in/deep/a.wav", "deep/a.wav"), Source("in/c.wav", "c.wav")]
    jobs = plan_outputs(nested, "out/")
    found = collisions(jobs)
    assert list(found) == [jobs[1]]
    assert "in/deep/a.wav: its output out/deep/a.wav would replace another input" in str(found[jobs[1]])


def test_a_file_that_is_named_twice_is_done_once(tmp_path, talk):
    report = process([talk, talk], tmp_path / "out", Recipe())
    assert (report.done, report.failures) == (1, [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "doc"}, "format must be one of wav, flac"),
        ({"effects": ("gian:1",)}, "did you mean 'gain'"),
        ({"loudness": 12.0}, r"lufs must lie in \[-70, 0\]"),
    ],
)
def test_a_wrong_recipe_is_refused(change, message):
    with pytest.raises(ArgumentError, match=message):
        Recipe(**change)
    with pytest.raises(ArgumentTypeError, match="effects must be texts or modules, got 3"):
        Recipe((3,))


def test_engines_and_workers_are_checked(tmp_path, talk):
    with pytest.raises(ArgumentError, match="engine must be one of threads, processes, ray, got 'spark'"):
        process(talk, tmp_path / "out", "gain:1", engine="spark")
    with pytest.raises(ArgumentError, match="workers must be"):
        process(talk, tmp_path / "out", "gain:1", workers=0)


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
LOCAL = ["threads", pytest.param("processes", marks=forks)]


def test_processes_need_a_system_that_forks(tmp_path, tree, monkeypatch):
    monkeypatch.delattr(os, "fork", raising=False)
    with pytest.raises(ArgumentError, match='engine must be "threads" where the system cannot fork'):
        process(tree, tmp_path / "out", "gain:1", engine="processes")


# --- archives ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path):
    """Short files, a hundredth of them corrupt, in ten folders."""
    count = 2000 if MANY else 200
    folder = tmp_path / "in"
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, (count, 1000))
    for i, samples in enumerate(noise):
        path = folder / str(i % 10) / f"{i:05}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, samples, 16_000, subtype="PCM_16")
        if i % 100 == 50:
            path.write_bytes(path.read_bytes()[:500])
    return folder


def written(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*.wav")}


def lines(folder):
    return [json.loads(line) for line in (folder / NAME).read_text().splitlines()]


def check_archive(archive, out, report, factor=0.5):
    sources = written(archive)
    corrupt = {name for name, path in sources.items() if path.stat().st_size == 500}
    assert len(corrupt) == len(sources) // 100
    assert written(out).keys() == sources.keys() - corrupt
    assert list(out.rglob(".torchfx-*")) == []
    assert {os.path.relpath(each.job.source, archive) for each in report.failures} == corrupt
    assert all("truncated" in str(each.error) for each in report.failures)
    last = {line["target"]: line["state"] for line in lines(out)}
    assert last == {name: "failed" if name in corrupt else "done" for name in sources}
    sample = next(iter(written(out)))
    expected = fx.Wave.from_file(sources[sample]).ys * factor
    assert torch.allclose(audio_io.load(out / sample)[0], expected, rtol=0, atol=2**-15)


@pytest.mark.parametrize("engine", LOCAL)
def test_an_archive_is_complete_and_corrupt_files_are_reported(tmp_path, archive, engine):
    seen = []
    report = process(
        archive, tmp_path / "out", "gain:0.5", engine=engine, workers=3, progress=lambda *state: seen.append(state[1])
    )
    check_archive(archive, tmp_path / "out", report)
    assert report.done + len(report.failures) == len(seen) == seen[0]
    assert report.audio_s == pytest.approx(report.done / 16)
    report.save_failures(tmp_path / "failures.csv")
    report.save_failures(tmp_path / "failures.json")
    with (tmp_path / "failures.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert table == json.loads((tmp_path / "failures.json").read_text())
    assert [row["source"] for row in table] == [each.job.source for each in report.failures]


def test_what_is_done_is_skipped_and_what_has_changed_is_done_again(tmp_path, tree):
    out = tmp_path / "out"

    def done(recipe="gain:0.5"):
        before = {name: path.stat().st_mtime_ns for name, path in written(out).items()}
        report = process(tree, out, recipe)
        after = {name: path.stat().st_mtime_ns for name, path in written(out).items()}
        changed = sum(after[name] != before.get(name) for name in after)
        return report.done, report.skipped, changed

    assert done() == (3, 0, 2)  # one is a FLAC
    assert done() == (0, 3, 0)
    fx.Wave(torch.zeros(1, 500), 8000).save(tree / "deep" / "a.wav")
    assert done() == (1, 2, 1)
    assert audio_io.info(out / "deep" / "a.wav").frames == 500
    assert done("gain:0.25") == (3, 0, 2)
    (out / "a.wav").unlink()
    assert done("gain:0.25") == (1, 2, 1)
    weights = fx.filter.FIR(torch.tensor([1.0, 0.5], dtype=torch.float64))
    assert done(weights) == (3, 0, 2)
    weights = fx.filter.FIR(torch.tensor([1.0, 0.25], dtype=torch.float64))
    assert done(weights) == (3, 0, 2)


def test_outputs_that_the_manifest_does_not_know_are_left_alone(tmp_path, tree):
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.wav").write_bytes(b"somebody's")
    made = plan([tree], out, Recipe(), recursive=True, resume=True)
    assert [(job.target, reason) for job, reason in made.skipped] == [(str(out / "a.wav"), "exists")]
    report = process(tree, out, Recipe())
    assert (report.done, report.skipped) == (2, 1)
    assert (out / "a.wav").read_bytes() == b"somebody's"
    report = process(tree, out, Recipe(), overwrite=True)
    assert (report.done, report.skipped) == (3, 0)


def test_a_line_that_was_cut_is_left_out(tmp_path, tree):
    out = tmp_path / "out"
    process(tree, out, Recipe())
    text = (out / NAME).read_bytes()
    (out / NAME).write_bytes(text[:-20])
    report = process(tree, out, Recipe())
    assert (report.done, report.skipped) == (1, 2)
    assert process(tree, out, Recipe()).skipped == 3


KILLED = """
import os, signal, sys
from torchfx.distributed import Recipe, process
def kill(report, total):
    if report.done == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
process(sys.argv[1], sys.argv[2], Recipe(bits=24), engine=sys.argv[4], workers=3, progress=kill)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows kills otherwise")
@pytest.mark.parametrize("engine", LOCAL)
def test_a_run_that_is_killed_goes_on(tmp_path, archive, engine):
    out = tmp_path / "out"
    words = [sys.executable, "-c", KILLED, archive, out, "70", engine]
    ran = subprocess.run(words, check=False, stdout=subprocess.PIPE)  # which forks hold open until they end, too
    assert ran.returncode == -signal.SIGKILL
    finished = {line["target"] for line in lines(out) if line["state"] == "done"}
    before = {name: path.stat().st_mtime_ns for name, path in written(out).items()}
    assert 70 <= len(finished) <= len(before)
    for path in written(out).values():
        if not path.name.startswith("."):
            assert audio_io.info(path).frames == 1000
    report = process(archive, out, Recipe(bits=24), workers=3)
    assert report.skipped == len(finished)
    assert {name: (out / name).stat().st_mtime_ns for name in finished} == {name: before[name] for name in finished}
    check_archive(archive, out, report, factor=1.0)


HELD = """
import os, signal, sys, threading, torch
from torchfx.distributed import Recipe, process
class Endless(torch.nn.Module):
    def forward(self, x):
        print(os.getpid(), flush=True)
        threading.Event().wait()
process(sys.argv[1], sys.argv[2], Recipe((Endless(),)), engine="processes", workers=2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_forks_end_with_a_killed_parent_in_the_middle_of_a_file(tmp_path, archive):
    words = [sys.executable, "-c", HELD, archive, tmp_path / "out"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert len({ran.stdout.readline() for _ in range(2)}) == 2  # both forks are in a call that never returns
        ran.kill()
        assert ran.stdout.read() == ""  # forks hold it open until they end


@pytest.mark.parametrize("engine", LOCAL)
def test_who_leaves_early_leaves_no_half_files(tmp_path, archive, engine):
    outcomes = plan([archive], tmp_path / "out", Recipe(("gain:0.5",)), recursive=True).run(engine, workers=3)
    assert next(outcomes).error is None
    outcomes.close()
    assert 1 <= len(written(tmp_path / "out")) < len(written(archive)) - 2
    assert list((tmp_path / "out").rglob(".torchfx-*")) == []


def test_threads_are_shared_out(tmp_path, tree):
    before = torch.get_num_threads()
    seen = []

    class Asks(fx.Processor):
        """Notes how many threads a worker has."""

        def forward(self, x):
            seen.append(torch.get_num_threads())
            return x

    torch.set_num_threads(4)
    try:
        process(tree, tmp_path / "out", Asks(), workers=2)
        assert seen == [2, 2, 2]
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


@forks
def test_a_fork_has_one_thread(tmp_path, tree):
    class Asks(fx.Processor):
        """Multiplies by the number of threads."""

        def forward(self, x):
            return x * torch.get_num_threads()

    assert process(tree, tmp_path / "out", Asks(), engine="processes", workers=2).done == 3
    for path in written(tree):
        assert audio_io.load(tmp_path / "out" / path)[0].equal(audio_io.load(tree / path)[0])


@forks
def test_a_fork_that_dies_ends_the_run(tmp_path, tree):
    class Dies(fx.Processor):
        """Ends its process."""

        def forward(self, x):
            os._exit(7)

    with pytest.raises(TorchFXError, match="a fork died, exit status 7"):
        process(tree, tmp_path / "out", Dies(), engine="processes", workers=2)


@pytest.mark.parametrize("engine", LOCAL)
def test_outcomes_come_in_the_jobs_order(tmp_path, archive, engine):
    made = plan([archive], tmp_path / "out", Recipe(("gain:0.5",)), recursive=True)
    assert [each.job for each in made.run(engine, workers=3)] == list(made.jobs)


def test_what_is_noted_as_done_is_on_the_disk(tmp_path, tree, monkeypatch):
    """A line must not outlive its output when the power fails."""
    order = []
    sync, write = os.fsync, os.write
    monkeypatch.setattr(os, "fsync", lambda file: (order.append("sync"), sync(file)))
    monkeypatch.setattr(os, "write", lambda file, data: (order.append(json.loads(data)["state"]), write(file, data))[1])
    process(tree, tmp_path / "out", "gain:0.5", workers=1)
    assert order == ["begun", "sync", "done"] * 3


@pytest.mark.parametrize("engine", LOCAL)
def test_warnings_stay_with_their_file(tmp_path, tree, engine):
    fx.Wave(torch.ones(1, 500), 8000).save(tree / "loud.wav", bits_per_sample=16)
    made = plan([tree], tmp_path / "out", Recipe(("gain:1.9",)), recursive=True)
    warned = [Path(each.job.source).name for each in made.run(engine, workers=2) if each.warnings]
    assert warned == ["loud.wav"]


def test_urls_are_read_and_written(tree):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.rm("/", recursive=True) if memory.exists("/in") else None
    memory.put(str(tree), "/in", recursive=True)
    out = tree.parent / "out"
    assert process("memory://in", out, "gain:0.5").done == 3
    assert process("memory://in", out, "gain:0.5").skipped == 3
    with pytest.raises(ArgumentError, match="manifest must name a local file where the output is a URL"):
        process("memory://in", "memory://out", "gain:0.5")
    report = process("memory://in/**/*.wav", "memory://out", "gain:0.5", manifest=tree.parent / "done.jsonl")
    assert (report.done, report.failures) == (2, [])
    assert sorted(memory.find("/out")) == ["/out/a.wav", "/out/deep/a.wav"]
    assert audio_io.load(memory.open("/out/deep/a.wav"))[0].equal(audio_io.load(out / "deep" / "a.wav")[0])


@pytest.mark.many  # starting Ray takes 15 s
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::ResourceWarning")
def test_ray_does_the_same(tmp_path, archive):
    pytest.importorskip("ray")
    report = process(archive, tmp_path / "out", "gain:0.5", engine="ray", workers=2)
    check_archive(archive, tmp_path / "out", report)


def test_without_ray_the_engine_says_what_to_install(tmp_path, talk, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ArgumentError, match=r'needs the package ray: pip install "ray\[data\]"'):
        process(talk, tmp_path / "out", "gain:1", engine="ray")


# --- what arrives -----------------------------------------------------------------------------------------------------


def test_a_file_has_arrived_when_it_stands_still(tmp_path):
    arrivals = Arrivals(str(tmp_path), besides=str(tmp_path / "out"))
    assert arrivals.look() == []
    path = tmp_path / "a.wav"
    path.write_bytes(b"begun")
    assert arrivals.look() == []
    path.write_bytes(b"begun, and going on")
    assert arrivals.look() == []
    assert [source.name for source in arrivals.look()] == ["a.wav"]
    assert arrivals.look() == []
    path.write_bytes(b"another")
    assert [arrivals.look(), [source.name for source in arrivals.look()]] == [[], ["a.wav"]]
    path.unlink()
    assert arrivals.look() == []
    with pytest.raises(ArgumentError, match="folder must exist"):
        Arrivals(str(tmp_path / "none"))


def test_a_table_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    def full(path, *_, **__):
        path.write_bytes(b"source,")
        raise OSError(28, "No space left on device")

    table = tmp_path / "failures.csv"
    table.write_text("before")
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(AudioFileError, match=r"cannot write .*failures\.csv: No space left on device"):
        Report().save_failures(table)
    assert table.read_bytes() == b"before"
    assert [each.name for each in tmp_path.iterdir()] == ["failures.csv"]
