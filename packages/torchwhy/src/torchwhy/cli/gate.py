"""`torchwhy gate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchwhy.cli.console import complain, say
from torchwhy.cli.documents import show
from torchwhy.counters.counts import Counts
from torchwhy.counters.counts_file import CountsFileError
from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.gate import (
    Baseline,
    Budget,
    EnvironmentMismatch,
    budgets_from,
    gate,
    gate_document,
)
from torchwhy.present.formats import check_format
from torchwhy.pyproject import SettingsFileError, find_pyproject

__all__ = ["Request", "run"]

KEPT = "torchwhy-baseline.json"  # beside pyproject.toml, unless --baseline names another


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
    if request.force and not request.update:
        return complain("--force only serves --update", 2)
    try:
        check_format(request.form)
        counts = Counts.load(path)
        baseline = _baseline(counts, request)
        report = gate(str(path), counts, _budgets(request), baseline)
    except (ArgumentError, ArgumentTypeError, EnvironmentMismatch) as error:
        return complain(error, 2)
    except (CountsFileError, SettingsFileError) as error:
        return complain(error, 3)
    show(gate_document(report), request.form)
    return 0 if report.passed else 1


def _budgets(request: Request) -> tuple[Budget, ...]:
    source = request.pyproject or find_pyproject(Path.cwd())
    if source is None and request.name is not None:
        raise ArgumentError(f"--name {request.name} needs a pyproject.toml in this folder or one of its parents")
    return budgets_from(source, request.name) if source else ()


def _baseline(counts: Counts, request: Request) -> Baseline | None:
    source = request.pyproject or find_pyproject(Path.cwd())
    path = request.baseline or (source.parent if source else Path()) / KEPT
    if request.update:
        kept = Baseline.update(path, counts, force=request.force)
        say(f"baseline kept in {kept.path}")
        return kept
    return Baseline.load(path) if request.baseline or path.exists() else None
