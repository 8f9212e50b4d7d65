"""`torchfx diff`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torchfx.cli.streams import answer, complain, patience, width, write_file
from torchfx.cli.traces import trace_in
from torchfx.errors import ArgumentError, ArgumentTypeError, TraceError
from torchfx.profiler.difference import FORMATS, Difference, diff
from torchfx.profiler.difference.jobs import JobDifference, between_jobs, pace_setter, paired
from torchfx.profiler.loading import load
from torchfx.profiler.pyproject import find_pyproject
from torchfx.profiler.ranks.folder import find_traces
from torchfx.profiler.rules.rule import Rule
from torchfx.profiler.rules.settings import Settings, chosen, settings_from

__all__ = ["Request", "run"]

_FILE: Final = 100
"""Columns of a text that goes to a file."""


@dataclass(frozen=True)
class Request:
    """The options as given."""

    form: str = "text"
    fail_on_slower: float | None = None
    output: Path | None = None
    verbose: bool = False


def run(a: str, b: str, request: Request) -> int:
    """Compare two traces, or two folders of ranks.

    Returns:
        0, 1 when B is too slow, 2 for misuse, 3 for what cannot be read or written.
    """
    if request.form not in FORMATS:
        return complain(f"--format must be one of {', '.join(FORMATS)}, got {request.form!r}", 2)
    percent = request.fail_on_slower
    if percent is not None and not (math.isfinite(percent) and percent >= 0):
        return complain(f"--fail-on-slower must be a percentage from 0 on, got {percent}", 2)
    if a == b == "-":
        return complain("only one of A and B can come from stdin (-)", 2)
    try:
        found = _difference(a, b)
    except (ArgumentError, ArgumentTypeError) as error:
        return complain(error, 2)
    except TraceError as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot read {error.filename or f'{a} or {b}'}: {error.strerror or error}", 3)
    columns = width() if request.output is None else _FILE
    text = FORMATS[request.form](found, verbose=request.verbose, width=columns) + "\n"
    try:
        answer(text) if request.output is None else write_file(request.output, text)
    except OSError as error:
        return complain(f"cannot write {request.output or 'to stdout'}: {error.strerror or error}", 3)
    return 0 if percent is None else _status(found, percent)


def _difference(a: str, b: str) -> Difference | JobDifference:
    settings = settings_from(find_pyproject(Path.cwd()))
    rules, found = chosen(settings), [trace_in(path, "comparing") for path in (a, b)]
    with patience(f"reading {a} and {b}"):
        if found == [None, None]:
            return _jobs(a, b, rules, settings)
        for folder, trace, other in zip((a, b), found, (b, a), strict=True):
            if trace is None:
                one = find_traces(Path(folder)).traces[0]
                raise TraceError(
                    f"{folder} holds several traces and {other} is one; name the one to compare, such as {one}"
                )
        first, second = (load(trace) for trace in found if trace is not None)
        return diff(first, second, rules=rules, thresholds=settings.thresholds)


def _jobs(a: str, b: str, rules: Iterable[Rule], settings: Settings) -> JobDifference:
    from torchfx.profiler.ranks.loading import ALONE, load_job

    before, after = (load_job(folder, thresholds=settings.thresholds) for folder in (a, b))
    pairs = paired(before, after)
    limit = pace_setter(pairs)
    rules = [rule for rule in rules if rule.slug not in ALONE]
    found = diff(load(limit.a.file), load(limit.b.file), rules=rules, thresholds=settings.thresholds)
    return between_jobs(before, after, pairs, found)


def _status(found: Difference | JobDifference, percent: float) -> int:
    slower = found.slower_than(percent / 100)
    if slower is None:
        verdict = (found.difference if isinstance(found, JobDifference) else found).verdict
        return complain(f"--fail-on-slower cannot be judged: {verdict.sentence}", 2)
    return int(slower)
