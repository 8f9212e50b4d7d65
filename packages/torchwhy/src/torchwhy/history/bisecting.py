"""`git bisect` by measured times: which commit made the program slower."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from torchwhy.difference.noise import FEWEST, Shift, shift_of
from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.history.check import short
from torchwhy.history.git import Repository
from torchwhy.history.runs import STEP, read_runs
from torchwhy.wording import counted, percent

__all__ = ["OUT", "Bisection", "CommandFailedError", "Tried", "bisect", "measure_of"]

OUT: Final = "{out}"
"""The text in a command that stands for the path of its run."""

CONFIDENCE: Final = 0.99
"""Confidence of a verdict on a commit. It is looked for up to `MOST` times, so that it holds with 95% at least."""

MOST: Final = 4
"""A commit is skipped if it cannot be judged after this many times the requested runs."""

_FIRST: Final = re.compile(r"^# first bad commit: \[([0-9a-f]+)\]", re.M)
_POSSIBLE: Final = re.compile(r"^# possible first bad commit: \[([0-9a-f]+)\]", re.M)


class CommandFailedError(TorchWhyError):
    """The command to measure ended with an error, or left nothing to measure."""


@dataclass(frozen=True)
class Tried:
    """A commit that was measured.

    Attributes:
        commit: its name.
        verdict: "good", "bad" or "skipped".
        shift: how its times relate to those of the good commit; not judged for that commit itself.
        runs: of the command.
    """

    commit: str
    verdict: str
    shift: Shift
    runs: int


@dataclass(frozen=True)
class Bisection:
    """The result of the search.

    Attributes:
        command: what was measured.
        kind: "found", "not confirmed", "no difference" or "only skipped".
        sentence: the same for people.
        commits: the first slow commit; several where those between cannot be judged; empty if no commit is slower.
        shift: how its times relate to those of the commit before; None where that was not measured.
        tried: all commits measured, the good and the bad one first.
    """

    command: str
    kind: str
    sentence: str
    commits: tuple[str, ...]
    shift: Shift | None
    tried: tuple[Tried, ...]


@dataclass
class _Search:
    """A repository whose commits are measured."""

    repository: Repository
    measure: Callable[[], float]
    runs: int
    say: Callable[[str], None]
    tried: list[Tried] = field(default_factory=list)

    def in_turns(self, one: str, other: str) -> tuple[list[float], list[float]]:
        """Measure two commits alternately, so that a machine that slows down meanwhile favours neither."""
        times: tuple[list[float], list[float]] = ([], [])
        while len(times[0]) < MOST * self.runs:
            for _ in range(self.runs):
                for commit, values in zip((one, other), times, strict=True):
                    self.repository.ask("checkout", "--quiet", "--detach", commit)
                    values.append(self.measure())
            shift = shift_of(*times, CONFIDENCE)
            if shift.beyond_noise and shift.low > math.sqrt(shift.ratio):  # the others are compared with the middle
                break
        return times

    def judged(self, good: Sequence[float], bad: Sequence[float]) -> tuple[str, Shift, int]:
        """Measure what is checked out until it is on one side of the middle between good and bad times."""
        middle = math.sqrt(shift_of(good, bad).ratio)
        values: list[float] = []
        shift = Shift(1.0, 1.0, 1.0, judged=False)
        while len(values) < MOST * self.runs:
            try:
                values += [self.measure() for _ in range(self.runs)]
            except CommandFailedError as error:
                self.say(f"skipped: {error}")
                return "skipped", shift, len(values)
            shift, left = shift_of(good, values, CONFIDENCE), shift_of(values, bad, CONFIDENCE)
            for verdict, way in (("bad", shift), ("good", left)):
                if way.judged and not way.low <= middle <= way.high:
                    other = {"bad": "good", "good": "bad"}[verdict]
                    return (verdict if way.low > middle else other), shift, len(values)
        return "skipped", shift, len(values)


def bisect(
    repository: Repository,
    measure: Callable[[], float],
    *,
    good: str,
    bad: str = "HEAD",
    runs: int = 5,
    command: str = "",
    say: Callable[[str], None] = lambda text: None,
) -> Bisection:
    """Find the first commit after `good` from which on `measure` returns more.

    The good and the bad commit are measured alternately first: without a difference beyond the noise between them there
    is nothing to find. A commit in between is on the side of the one it is nearer to, with 99% confidence; it gets up
    to four times as many runs for that, and is skipped after that. The first bad commit is then measured alternately
    with the one before. Whatever happens, the branch that was checked out is checked out again.

    Args:
        repository: whose tracked files are as committed, and which no other bisection is using.
        measure: returns a positive time, or another number that is larger where the program is worse, of the commit
            that is checked out.
        good, bad: names of commits; `good` is an ancestor of `bad`.
        runs: of `measure` for a commit, 3 at least.
        command: what `measure` runs, for the answer.
        say: gets a line of progress.

    Raises:
        ArgumentError: a commit is unknown, or `good` is no ancestor; files differ from what is committed; a bisection
            is under way; too few runs.
        CommandFailedError: the good or the bad commit cannot be measured.
        GitError: git refuses.
    """
    first, last = _checked(repository, good, bad, runs)
    here = repository.ask("rev-parse", "HEAD")
    back = repository.ask("symbolic-ref", "--short", "HEAD") if repository.knows("symbolic-ref", "-q", "HEAD") else here
    search = _Search(repository, measure, runs, say)
    try:
        return _found(search, first, last, command)
    finally:
        if _under_way(repository):
            repository.ask("bisect", "reset", here)
        repository.ask("checkout", "--quiet", back)


def measure_of(words: Sequence[str], metric: str, folder: Path) -> Callable[[], float]:
    """Return a function that runs a command and returns what it measured.

    Where a word has `{out}` in it, that is a path at which the command leaves a run, and the median of the run's metric
    counts; else with a metric the median of the numbers that the command prints after its name and ":" or "="; else the
    command's own time, in microseconds.

    Args:
        words: the command.
        metric: `STEP` or another name.
        folder: in which it runs.
    """
    text = " ".join(words)

    def measure() -> float:
        room = Path(tempfile.mkdtemp(prefix="torchwhy-bisect-"))
        try:
            out = room / "run"
            begun = time.perf_counter()
            ran = _run([word.replace(OUT, str(out)) for word in words], folder)
            spent_us = (time.perf_counter() - begun) * 1e6
            if OUT in text:
                try:
                    return read_runs(out, metric)[0].value
                except (TorchWhyError, OSError) as error:
                    raise CommandFailedError(f"`{text}` left no run at {OUT}: {error}") from error
            return spent_us if metric == STEP else _printed(ran, metric, text)
        finally:
            shutil.rmtree(room, ignore_errors=True)

    return measure


def _run(words: list[str], folder: Path) -> str:
    try:
        # Python takes compiled files for fresh by second and size, and files of two commits may agree in both.
        around = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, check=False, errors="replace", env=around
        )
    except OSError as error:
        raise CommandFailedError(f"`{words[0]}` cannot be run: {error.strerror or error}") from error
    if ran.returncode:
        last = (ran.stderr.strip() or ran.stdout.strip()).rpartition("\n")[2]
        raise CommandFailedError(f"`{' '.join(words)}` ended with exit status {ran.returncode}: {last}")
    return ran.stdout


def _printed(text: str, metric: str, command: str) -> float:
    number = r"([-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    found = [float(value) for value in re.findall(rf"(?<![\w.]){re.escape(metric)}\s*[:=]\s*{number}", text)]
    if not found or min(found) <= 0:
        raise CommandFailedError(f"`{command}` printed no line such as {metric}: 12.3, with a positive number")
    return float(np.median(found))


def _checked(repository: Repository, good: str, bad: str, runs: int) -> tuple[str, str]:
    if runs < FEWEST:
        raise ArgumentError(f"--runs must be {FEWEST} at least, got {runs}")
    repository.ask("rev-parse", "--git-dir")  # or there is no repository
    names = []
    for option, name in (("--good", good), ("--bad", bad)):
        if not repository.knows("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
            raise ArgumentError(f"{option} must be a commit, got {name!r}")
        names.append(repository.ask("rev-parse", f"{name}^{{commit}}"))
    if names[0] == names[1] or not repository.knows("merge-base", "--is-ancestor", *names):
        raise ArgumentError(f"--good must be an ancestor of --bad, got {good!r} and {bad!r}")
    if not repository.is_clean:
        raise ArgumentError(
            "the working tree has uncommitted changes: commit or stash them, since bisect checks out commits"
        )
    if _under_way(repository):
        raise ArgumentError("a bisection is under way: end it by `git bisect reset`")
    return names[0], names[1]


def _under_way(repository: Repository) -> bool:
    return repository.knows("bisect", "log")


def _found(search: _Search, good: str, bad: str, command: str) -> Bisection:
    search.say(f"measuring {short(good)} and {short(bad)} alternately")
    times = search.in_turns(good, bad)
    apart = shift_of(*times, CONFIDENCE)
    alone = Shift(1.0, 1.0, 1.0, judged=False)
    search.tried += [Tried(good, "good", alone, len(times[0])), Tried(bad, "bad", apart, len(times[1]))]
    said = f"{_change(apart)}, {_interval(apart)}"
    if not (apart.beyond_noise and apart.ratio > 1):
        text = f"{short(bad)} is not slower than {short(good)} beyond the noise ({said}): there is nothing to find."
        return Bisection(command, "no difference", text, (), apart, tuple(search.tried))
    search.say(f"{short(bad)} takes {said}")
    commits = _narrowed(search, times, good, bad)
    if len(commits) != 1:
        text = f"The first slow commit is one of {counted(len(commits), 'commit')}: the others could not be judged."
        return Bisection(command, "only skipped", text, commits, None, tuple(search.tried))
    return _confirmed(search, commits[0], command)


def _narrowed(search: _Search, times: tuple[list[float], list[float]], good: str, bad: str) -> tuple[str, ...]:
    """Let git choose commits until one is left, or only such as were skipped."""
    repository = search.repository
    repository.ask("bisect", "start", bad, good)
    while True:
        log = repository.ask("bisect", "log")
        if found := _FIRST.findall(log):
            return (found[-1],)
        if possible := _POSSIBLE.findall(log):
            return tuple(dict.fromkeys(possible))
        commit = repository.ask("rev-parse", "HEAD")
        verdict, shift, runs = search.judged(*times)
        search.tried.append(Tried(commit, verdict, shift, runs))
        ratio = f"{shift.ratio:.3f} of the good commit's time, " if runs else ""
        search.say(f"{short(commit)} is {verdict} ({ratio}{counted(runs, 'run')})")
        word = "skip" if verdict == "skipped" else verdict
        repository.knows("bisect", word)  # it ends with an error where only skipped commits are left


def _confirmed(search: _Search, first: str, command: str) -> Bisection:
    search.say(f"measuring {short(first)} and the commit before alternately")
    shift = shift_of(*search.in_turns(f"{first}^", first), CONFIDENCE)
    subject = search.repository.ask("show", "-s", "--format=%s", first)
    sure = shift.beyond_noise and shift.ratio > 1
    text = f'{short(first)} "{subject}" takes {_change(shift)} than the commit before ({_interval(shift)})'
    text += "." if sure else ", which is not beyond the noise: repeat with more --runs."
    return Bisection(command, "found" if sure else "not confirmed", text, (first,), shift, tuple(search.tried))


def _change(shift: Shift) -> str:
    return f"{percent(abs(shift.ratio - 1))} {'more' if shift.ratio > 1 else 'less'}"


def _interval(shift: Shift) -> str:
    return f"ratio {shift.low:.3f} to {shift.high:.3f} with {CONFIDENCE:.0%} confidence"
