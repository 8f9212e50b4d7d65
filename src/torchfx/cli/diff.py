"""`torchfx diff`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from torchfx.cli.streams import answer, complain, patience, write_file
from torchfx.errors import ArgumentError, ArgumentTypeError, TraceError
from torchfx.profiler.difference import FORMATS, Difference, diff
from torchfx.profiler.loading import load
from torchfx.profiler.pyproject import find_pyproject
from torchfx.profiler.rules.settings import chosen, settings_from

__all__ = ["Request", "run"]


@dataclass(frozen=True)
class Request:
    """The options as given."""

    form: str = "text"
    fail_on_slower: float | None = None
    output: Path | None = None
    verbose: bool = False


def run(a: str, b: str, request: Request) -> int:
    """Compare two traces; return 0, 1 when B is too slow, 2 for misuse, 3 for what cannot be read or written."""
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
    text = FORMATS[request.form](found, verbose=request.verbose) + "\n"
    try:
        answer(text) if request.output is None else write_file(request.output, text)
    except OSError as error:
        return complain(f"cannot write {request.output or 'to stdout'}: {error.strerror or error}", 3)
    return 0 if percent is None else _status(found, percent)


def _difference(a: str, b: str) -> Difference:
    settings = settings_from(find_pyproject(Path.cwd()))
    rules, paths = chosen(settings), [_trace_in(path) for path in (a, b)]
    with patience(f"reading {paths[0]} and {paths[1]}"):
        first, second = (load(path) for path in paths)
        return diff(first, second, rules=rules, thresholds=settings.thresholds)


def _status(found: Difference, percent: float) -> int:
    slower = found.slower_than(percent / 100)
    if slower is None:
        return complain(f"--fail-on-slower cannot be judged: {found.verdict.sentence}", 2)
    return int(slower)


def _trace_in(path: str) -> str:
    """The file meant by a path: itself, or the trace in the folder of a run.

    Raises:
        TraceError: the folder holds no trace, or several.
    """
    folder = Path(path)
    if path == "-" or not folder.is_dir():
        return path
    for name in ("trace.json.gz", "trace.json"):
        if (folder / name).is_file():
            return str(folder / name)
    found = sorted(file.name for pattern in ("*.json.gz", "*.json") for file in folder.glob(pattern))
    if len(found) == 1:
        return str(folder / found[0])
    ranks = sorted(child.name for child in folder.glob("rank*") if child.is_dir())
    if ranks:
        raise TraceError(f"{path} holds several ranks; name the one to compare, such as {folder / ranks[0]}")
    raise TraceError(f"{path} is a folder with {'several traces; name one' if found else 'no trace in it'}")
