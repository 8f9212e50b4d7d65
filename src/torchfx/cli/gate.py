"""`torchfx gate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchfx.cli.console import err, fail, out
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.profiler.counters.counts import Counts
from torchfx.profiler.counters.counts_file import CountsFileError
from torchfx.profiler.gate import (
    FORMATS,
    Baseline,
    Budget,
    EnvironmentMismatch,
    budgets_from,
    gate,
    render,
)
from torchfx.profiler.pyproject import SettingsFileError, find_pyproject
from torchfx.profiler.spelling import did_you_mean

__all__ = ["Request", "run"]

KEPT = "torchfx-baseline.json"  # beside pyproject.toml, unless --baseline names another


@dataclass(frozen=True)
class Request:
    """The options as given."""

    name: str | None = None
    pyproject: Path | None = None
    baseline: Path | None = None
    update: bool = False
    force: bool = False
    form: str = "text"


def run(path: Path, request: Request) -> int:
    """Check a run; return 0, 1 when a limit was not kept, 2 for misuse, 3 when something cannot be read."""
    if request.form not in FORMATS:
        return fail(f"unknown format {request.form!r}{did_you_mean(request.form, FORMATS)}", 2)
    if request.force and not request.update:
        return fail("--force only serves --update", 2)
    try:
        counts = Counts.load(path)
        baseline = _baseline(counts, request)
        report = gate(str(path), counts, _budgets(request), baseline)
    except (ArgumentError, ArgumentTypeError, EnvironmentMismatch) as error:
        return fail(error, 2)
    except (CountsFileError, SettingsFileError) as error:
        return fail(error, 3)
    out.print(render(report, request.form), markup=False)
    return 0 if report.passed else 1


def _budgets(request: Request) -> tuple[Budget, ...]:
    source = request.pyproject or find_pyproject(Path.cwd())
    if source is None and request.name is not None:
        raise ArgumentError(f"--name {request.name} needs a pyproject.toml, and there is none here or above")
    return budgets_from(source, request.name) if source else ()


def _baseline(counts: Counts, request: Request) -> Baseline | None:
    source = request.pyproject or find_pyproject(Path.cwd())
    path = request.baseline or (source.parent if source else Path()) / KEPT
    if request.update:
        kept = Baseline.update(path, counts, force=request.force)
        err.print(f"baseline kept in {kept.path}", markup=False)
        return kept
    return Baseline.load(path) if request.baseline or path.exists() else None
