"""`torchwhy history`."""

from __future__ import annotations

import math
import time
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from torchwhy.cli.console import complain, patience, tell, write_file
from torchwhy.cli.documents import show
from torchwhy.errors import ArgumentError, TraceError
from torchwhy.history.changes import Series, series_of
from torchwhy.history.check import check_series
from torchwhy.history.document import added_document, check_document
from torchwhy.history.git import commit_of
from torchwhy.history.page import history_page
from torchwhy.history.runs import read_runs
from torchwhy.history.store import HistoryError, StoredRun, add_runs, stored_runs
from torchwhy.present.formats import check_format
from torchwhy.wording import size_text

__all__ = ["ACTIONS", "STORE", "Request", "run"]

ACTIONS: Final = ("add", "check", "page")
STORE: Final = "torchwhy-history.sqlite"


@dataclass(frozen=True)
class Request:
    """The options as given."""

    store: Path = Path(STORE)
    name: str | None = None
    metric: str | None = None
    machine: str | None = None
    configuration: str | None = None
    commit: str | None = None
    slower: float = 1.0
    since: str = ""
    output: Path = Path("history.html")
    show: bool = False
    form: str = "text"


def run(action: str, runs: Sequence[str], request: Request) -> int:
    """Add runs, check the newest, or write the page.

    Returns:
        0, 1 where `check` found a slowdown, 2 for misuse, 3 for what cannot be read or written.
    """
    try:
        check_format(request.form)
        if action not in ACTIONS:
            raise ArgumentError(f"ACTION must be one of {', '.join(ACTIONS)}, got {action!r}")  # noqa: TRY301
        if (action == "add") != bool(runs):
            wanted = "needs the runs to add" if action == "add" else f"takes no RUN, got {' '.join(runs)}"
            raise ArgumentError(f"torchwhy history {action} {wanted}")  # noqa: TRY301
        if request.name == "":
            raise ArgumentError("--name must not be empty")  # noqa: TRY301
        if not (math.isfinite(request.slower) and request.slower >= 0):
            raise ArgumentError(f"--fail-on-slower must be a percentage of 0 or more, got {request.slower}")  # noqa: TRY301
        return _add(runs, request) if action == "add" else _check(request) if action == "check" else _page(request)
    except ArgumentError as error:
        return complain(error, 2)
    except (HistoryError, TraceError) as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot read or write {error.filename or request.store}: {error.strerror or error}", 3)


def _add(paths: Sequence[str], request: Request) -> int:
    commit = commit_of(Path.cwd(), request.commit)
    wanted = {name: value for name in ("name", "machine") if (value := getattr(request, name)) is not None}
    with patience(f"reading {' and '.join(paths)}"):
        runs = [
            StoredRun(replace(one, **wanted), request.configuration or "", commit, time.time())
            for path in paths
            for one in read_runs(Path(path), request.metric or "step")
        ]
    new = add_runs(request.store, runs)
    show(added_document(request.store, runs, new), request.form)
    return 0


def _check(request: Request) -> int:
    checks = check_series(_series(request), allowed=request.slower / 100, since=request.since)
    show(check_document(request.store, checks), request.form)
    return 0 if all(check.passed for check in checks) else 1


def _page(request: Request) -> int:
    text = history_page(request.store, _series(request))
    write_file(request.output, text)
    tell(f"wrote {request.output}, {size_text(len(text.encode()))}")
    if request.show:
        webbrowser.open(request.output.resolve().as_uri())
    return 0


def _series(request: Request) -> tuple[Series, ...]:
    """Those that the options choose.

    Raises:
        ArgumentError: none is.
    """
    wanted = (request.name, request.metric, request.machine, request.configuration)
    found = tuple(
        series
        for series in series_of(stored_runs(request.store))
        if all(want in (None, has) for want, has in zip(wanted, series.runs[0].series, strict=True))
    )
    if not found:
        options = ("--name", "--metric", "--machine", "--config")
        asked = " ".join(f"{name} {value}" for name, value in zip(options, wanted, strict=True) if value is not None)
        raise ArgumentError(f"{request.store} has no run{f' of {asked}' if asked else ''}")
    return found
