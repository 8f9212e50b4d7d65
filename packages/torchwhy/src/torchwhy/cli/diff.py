"""`torchwhy diff`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from torchwhy.cli.console import answer, complain, patience, write_file
from torchwhy.cli.documents import terminal_style
from torchwhy.cli.traces import trace_in
from torchwhy.difference.difference import Difference
from torchwhy.difference.jobs import JobDifference
from torchwhy.diffing import diff
from torchwhy.errors import ArgumentError, ArgumentTypeError, TraceError
from torchwhy.loading.trace import LoadedTrace, load
from torchwhy.present.comparison import comparison
from torchwhy.present.formats import check_format, render
from torchwhy.present.options import Options
from torchwhy.present.style import IN_A_FILE, Style
from torchwhy.pyproject import find_pyproject
from torchwhy.ranks.folder import find_traces
from torchwhy.rules.settings import Settings, chosen, settings_from
from torchwhy.trace.file.remote import path_of

__all__ = ["Request", "run"]


@dataclass(frozen=True)
class Request:
    """The options as given."""

    form: str = "text"
    fail_on_slower: float | None = None
    output: Path | None = None
    verbose: bool = False
    tokens: int | None = None


def run(a: str, b: str, request: Request) -> int:
    """Compare two traces, or two folders of ranks.

    Returns:
        0, 1 when B is too slow, 2 for misuse, 3 for what cannot be read or written.
    """
    percent = request.fail_on_slower
    if percent is not None and not (math.isfinite(percent) and percent >= 0):
        return complain(f"--fail-on-slower must be a percentage of 0 or more, got {percent}", 2)
    if a == b == "-":
        return complain("only one of A and B can come from stdin (-)", 2)
    try:
        check_format(request.form)
        options = Options(_style(request), request.verbose).within(request.tokens, request.form)
        settings = settings_from(find_pyproject(Path.cwd()))
        found, traces = _difference(a, b, settings)
    except (ArgumentError, ArgumentTypeError) as error:
        return complain(error, 2)
    except TraceError as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot read {error.filename or f'{a} or {b}'}: {error.strerror or error}", 3)
    document = comparison(found, None if percent is None else percent / 100)
    drawn = request.form == "text" and request.output is not None and request.output.suffix == ".html"
    if drawn and traces and isinstance(found, Difference):
        text = _page(found, traces, settings)
    else:
        text = render(document, "html" if drawn else request.form, options)
    try:
        answer(text) if request.output is None else write_file(request.output, text)
    except OSError as error:
        return complain(f"cannot write {request.output or 'to stdout'}: {error.strerror or error}", 3)
    return 0 if percent is None else _status(found, percent)


def _difference(
    a: str, b: str, settings: Settings
) -> tuple[Difference | JobDifference, tuple[LoadedTrace, LoadedTrace] | None]:
    """The difference, and the two traces where it isn't of jobs."""
    rules, paths = chosen(settings), [trace_in(path, "comparing") for path in (a, b)]
    with patience(f"reading {a} and {b}"):
        before, after = paths
        if before is not None and after is not None:
            traces = load(before), load(after)
            return diff(*traces, rules=rules, thresholds=settings.thresholds), traces
        for folder, trace, other in zip((a, b), paths, (b, a), strict=True):
            if trace is None and paths != [None, None]:
                one = find_traces(path_of(folder)).traces[0]
                raise TraceError(
                    f"{folder} holds several traces and {other} is one; name the one to compare, such as {one}"
                )
        return diff(a, b, rules=rules, thresholds=settings.thresholds), None


def _page(found: Difference, traces: tuple[LoadedTrace, LoadedTrace], settings: Settings) -> str:
    from torchwhy.page.report_page import difference_page

    return difference_page(*traces, found, rules=chosen(settings), thresholds=settings.thresholds)


def _style(request: Request) -> Style:
    return terminal_style() if request.output is None else IN_A_FILE


def _status(found: Difference | JobDifference, percent: float) -> int:
    slower = found.slower_than(percent / 100)
    if slower is None:
        verdict = (found.difference if isinstance(found, JobDifference) else found).verdict
        return complain(f"--fail-on-slower cannot be judged: {verdict.sentence}", 2)
    return int(slower)
