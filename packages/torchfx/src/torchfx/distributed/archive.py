"""An archive through a chain: planned, run, reported."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchfx.audio_io import temporary
from torchfx.audio_io.messages import file_errors, shown
from torchfx.checks import whole_number
from torchfx.distributed.engines import ENGINES, Work, cores
from torchfx.distributed.files import Outcome, is_taken, metered_job
from torchfx.distributed.manifest import NAME, Manifest
from torchfx.distributed.recipe import Recipe
from torchfx.distributed.sources import STREAM, Job, Source, collisions, find, format_of, is_url, plan_outputs, without
from torchfx.errors import ArgumentError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Plan", "Report", "album_recipe", "plan", "process"]


@dataclass(frozen=True)
class Plan:
    """The files to process, and how.

    Attributes:
        jobs: the files to read and to write.
        skipped: those whose outputs are there, and why they are left alone.
        recipe: what becomes of each file.
        overwrite: targets that may be replaced.
        manifest: where it is noted, or None.
        refused: files whose outputs collide with others, and why.
    """

    jobs: tuple[Job, ...]
    skipped: tuple[tuple[Job, str], ...]
    recipe: Recipe
    overwrite: frozenset[str]
    manifest: Manifest | None = None
    refused: tuple[Outcome, ...] = ()

    @property
    def total(self) -> int:
        """How many files there are in all."""
        return len(self.jobs) + len(self.skipped) + len(self.refused)

    def will_fail(self, job: Job) -> bool:
        """Whether a job's output exists and may not be replaced."""
        return job.target not in self.overwrite and is_taken(job.target)

    def run(self, engine: str = "threads", workers: int | None = None) -> Iterator[Outcome]:
        """Do the jobs and yield what becomes of each; see `process` for the arguments."""
        if engine not in ENGINES:
            raise ArgumentError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
        count = cores() if workers is None else whole_number("workers", workers, 1)
        return self._run(engine, count)

    def _run(self, engine: str, workers: int) -> Iterator[Outcome]:
        yield from self.refused
        if self.jobs:
            with self.manifest or nullcontext():
                yield from ENGINES[engine](Work(self.jobs, self.recipe, self.overwrite, self.manifest), workers)


def plan(
    sources: Sequence[str | os.PathLike[str] | Source],
    output: str | os.PathLike[str],
    recipe: Recipe,
    *,
    recursive: bool = False,
    overwrite: bool = False,
    resume: bool = False,
    manifest: str | os.PathLike[str] | None = None,
) -> Plan:
    """Say what is to be done; nothing is written. See `process` for the arguments; a `Source` keeps its name.

    Without `resume` existing outputs are no reason to leave a file out: its job fails, unless `overwrite` is set.
    """
    found: list[Source] = []
    several = len(sources) > 1
    for where in sources:
        listed = [where] if isinstance(where, Source) else find(where, recursive)
        several = several or isinstance(where, Source) or [source.path for source in listed] != [os.fspath(where)]
        found += without(listed, os.fspath(output)) or listed
    planned = list(dict.fromkeys(plan_outputs(found, output, recipe.suffix, several)))
    _check_format(planned, recipe)
    reasons = collisions(planned)
    refused = tuple(Outcome(job, error) for job, error in reasons.items())
    jobs = [job for job in planned if job not in reasons]
    if not resume and manifest is None:
        return Plan(tuple(jobs), (), recipe, frozenset(job.target for job in jobs if overwrite), None, refused)
    if manifest is None:
        if is_url(os.fspath(output)):
            raise ArgumentError(f"manifest must name a local file where the output is a URL, got {os.fspath(output)}")
        folder = Path(output) if several or Path(output).is_dir() else Path(output).parent
        manifest = folder / NAME
    kept = Manifest(os.fspath(manifest), str(recipe))
    todo, skipped = [], []
    for job in jobs:
        if overwrite or not is_taken(job.target):
            todo.append(job)
        elif kept.is_done(job):
            skipped.append((job, "done"))
        elif kept.knows(job):
            todo.append(job)
        else:
            skipped.append((job, "exists"))
    known = frozenset(job.target for job in todo if overwrite or kept.knows(job))
    return Plan(tuple(todo), tuple(skipped), recipe, known, kept, refused)


def album_recipe(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    recipe: Recipe,
    *,
    recursive: bool = False,
    workers: int | None = None,
) -> Recipe:
    """Replace the loudness of each file by one gain for all, so that the files keep their differences.

    The files are measured as one programme after the effects (`torchfx.loudness.measure_album`); with the gain they
    have the recipe's loudness together. A limiter (`true_peak`) makes loud files a little quieter than that.

    Args:
        source: all files of the album: a folder, a glob, a table, a file, or several of them.
        recipe: a recipe with a loudness.
        recursive: whether the folders in a folder are included.
        workers: how many files are measured at the same time, >= 1; by default the number of processors.

    Returns:
        The recipe, with a gain as the last effect and without a loudness.

    Raises:
        ArgumentError: the recipe has no loudness; there are no files, or all are silent or shorter than 0.4 s.
        AudioFileError: a file cannot be read.

    Examples:
        >>> import pathlib, tempfile, torch, torchfx as fx
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> tone = torch.sin(2 * torch.pi * 1000 / 48_000 * torch.arange(48_000))
        >>> for name, level in ("a.wav", 0.1), ("b.wav", 0.05):
        ...     fx.Wave(level * tone, 48_000).save(folder / name)
        >>> album_recipe(folder, Recipe(loudness=-14, true_peak=-1)).effects
        ('gain:11.04dB',)
    """
    from concurrent.futures import ThreadPoolExecutor

    if recipe.loudness is None:
        raise ArgumentError("loudness must be a number of LUFS for an album, got None")
    paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    files = list(dict.fromkeys(each.path for path in paths for each in find(path, recursive)))
    if STREAM in files:
        raise ArgumentError("the inputs of an album are read twice: they must be files, got - (stdin)")
    each = replace(recipe, loudness=None, true_peak=None)
    count = cores() if workers is None else whole_number("workers", workers, 1)
    with ThreadPoolExecutor(count) as pool:
        meters = list(pool.map(lambda path: metered_job(path, each), files))
    from torchfx.loudness import album_of

    found = album_of(meters).integrated_lufs
    if found is None or found == -math.inf:
        raise ArgumentError("an album must have a file of 0.4 s or more above -70 LUFS, to be measured, got none")
    return replace(recipe, effects=(*recipe.effects, f"gain:{recipe.loudness - found:.2f}dB"), loudness=None)


def _check_format(jobs: list[Job], recipe: Recipe) -> None:
    """Raise where the recipe's format is not the one that an output's name says."""
    for job in jobs:
        named = format_of(job.target)
        if recipe.format is not None and named not in {None, recipe.format.lower()}:
            name = os.path.splitext(job.target)[0] + str(recipe.suffix)  # noqa: PTH122
            raise ArgumentError(
                f"format must be {named}, as the output {job.target} is named, got {recipe.format}; name the output "
                f"{name}, or leave out the format"
            )


@dataclass
class Report:
    """The result of processing an archive.

    Attributes:
        done: files written.
        skipped: files whose outputs were there.
        failures: what could not be done, with the error.
        audio_s: length of what was written, seconds.
        wall_s: time it took, seconds.
    """

    done: int = 0
    skipped: int = 0
    failures: list[Outcome] = field(default_factory=list)
    audio_s: float = 0.0
    wall_s: float = 0.0
    _start: float = field(default_factory=time.perf_counter, repr=False)

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        if outcome.error is None:
            self.done += 1
            self.audio_s += outcome.duration_s
        else:
            self.failures.append(outcome)
        self.wall_s = time.perf_counter() - self._start

    def __str__(self) -> str:
        """Return it in a line, with files per second, and how many times faster than it plays that was."""
        text = f"{self.done} done, {len(self.failures)} failed, {self.skipped} skipped"
        return f"{text} in {self.wall_s:.1f} s: {self.speed}" if self.wall_s else text

    @property
    def speed(self) -> str:
        """The throughput in words."""
        files, wall = self.done + len(self.failures), max(self.wall_s, 1e-9)
        return f"{files / wall:.0f} files/s, {self.audio_s / wall:.0f} x real time"

    def save_failures(self, path: str | os.PathLike[str]) -> None:
        """Write a table of the failures: source, target, error; JSON where the name ends so, CSV otherwise.

        The table appears whole or not at all.

        Raises:
            AudioFileError: it cannot be written.
        """
        rows = [
            {"source": each.job.source, "target": each.job.target, "error": str(each.error)} for each in self.failures
        ]
        text = io.StringIO()
        if Path(path).suffix.lower() == ".json":
            json.dump(rows, text, indent=1)
        else:
            table = csv.DictWriter(text, ("source", "target", "error"), lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
        with file_errors("write", shown(path)):
            begun = temporary.create(os.fspath(Path(path).parent), ".part", 0o666)
            try:
                Path(begun).write_text(text.getvalue(), encoding="utf-8", errors="surrogateescape")
                Path(begun).replace(path)
            finally:
                temporary.remove(begun)


def process(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    recipe: Recipe | nn.Module | str,
    *,
    engine: str = "threads",
    workers: int | None = None,
    recursive: bool = True,
    overwrite: bool = False,
    resume: bool = True,
    manifest: str | os.PathLike[str] | None = None,
    progress: Callable[[Report, int], object] | None = None,
) -> Report:
    """Run an archive through a chain. No failure stops the rest, and a run that was stopped continues where it was.

    Outputs appear when they are whole, below `output` as the sources are below theirs. Sources that would have one
    output, or whose output would replace another source, are reported as failures.

    Args:
        source: a folder, a glob, a table (.csv or .parquet with a column "path"), a file, or several of them; local
            paths, or URLs where fsspec is installed.
        output: the folder for the results, a local path or a URL.
        recipe: a `Recipe`, or a filter, effect or chain, as a module or as a text.
        engine: "threads" of this process; "processes", forks of it with one thread each, which work on short files at
            once where threads wait for each other (Linux; modules on the CPU); or "ray" (extra `ray`): on the Ray
            cluster this program is connected to, or a local one.
        workers: how many files are under way at once, >= 1; by default as many as there are processors.
        recursive: whether the folders in a folder count, too.
        overwrite: whether to do everything again.
        resume: whether to keep a manifest and skip what it says is done, unless the source's size or time of change, or
            the recipe, is another. Outputs it does not know are left alone.
        manifest: where it is, instead of "torchfx-manifest.jsonl" in `output`; for a URL it must be named.
        progress: called after each file with the report so far and the number of all files.

    Returns:
        How many were done, skipped and failed, with the errors and the throughput.

    Raises:
        ArgumentError: no audio files, an unknown engine; a package that is missing.
        AudioFileError: the manifest cannot be read or written.

    Examples:
        >>> import pathlib, tempfile, torch, torchfx as fx
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for name in "ab":
        ...     fx.Wave(torch.rand(1, 1000) - 0.5, 8000).save(folder / f"{name}.wav")
        >>> report = process(folder, folder / "clean", "hibutterworth:80")
        >>> report.done, report.failures
        (2, [])
        >>> process(folder, folder / "clean", "hibutterworth:80").skipped
        2
    """
    if not isinstance(recipe, Recipe):
        recipe = Recipe((recipe,))
    paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    planned = plan(paths, output, recipe, recursive=recursive, overwrite=overwrite, resume=resume, manifest=manifest)
    report = Report(skipped=len(planned.skipped))
    for outcome in planned.run(engine, workers):
        report.add(outcome)
        if progress is not None:
            progress(report, planned.total)
    return report
