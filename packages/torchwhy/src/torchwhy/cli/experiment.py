"""`torchwhy experiment`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchwhy.cli.console import complain, patience, say
from torchwhy.cli.documents import show
from torchwhy.errors import ArgumentError
from torchwhy.experiment import (
    CannotRunError,
    Case,
    Schedule,
    Sweep,
    Workload,
    grid,
    run_cases,
    sweep,
    workload_named,
)
from torchwhy.experiment.artefacts import free_stem, write_whole
from torchwhy.experiment.case import default_device
from torchwhy.experiment.cases import sizes_from
from torchwhy.experiment.checks import require_device
from torchwhy.experiment.document import peaks_document, study_document, sweep_document
from torchwhy.experiment.peaks import measure_peaks
from torchwhy.experiment.picture import paint
from torchwhy.present.formats import check_format, render

__all__ = ["Request", "Target", "run"]

PEAKS = "peaks"


@dataclass(frozen=True)
class Request:
    """How to run the workload, as given on the command line."""

    dtype: str
    device: str | None
    batch: int | None
    warm: bool
    compiled: bool
    mode: str | None
    schedule: tuple[int, int, int]

    def case(self, size: int) -> Case:
        """Return the case it asks for; ArgumentError if there is none like it."""
        if self.mode is not None and not self.compiled:
            raise ArgumentError(f"mode is for compiled runs: add --compile to --mode {self.mode}")
        mode = (self.mode or "default") if self.compiled else None
        device = str(require_device(self.device or default_device()))
        return Case(size, self.dtype, device, self.batch, self.warm, mode, Schedule(*self.schedule))


@dataclass(frozen=True)
class Target:
    """Where the answer goes."""

    folder: Path
    force: bool
    form: str = "text"


def run(name: str, sizes: Sequence[int], request: Request, every: bool, over: str, target: Target) -> int:
    """Run an experiment's cases, sweep it, or measure peaks; return 0, 2 for misuse, 3 when it cannot run."""
    try:
        check_format(target.form)
        if name == PEAKS:
            return _peaks(request, every or bool(over), target)
        workload = workload_named(name)
        if over:
            return _sweep(workload, request.case(1), sizes_from(over), target)
        cases = [request.case(size) for size in sizes]
        return _study(workload, grid(cases[0], sizes) if every else cases, target)
    except ArgumentError as error:
        return complain(error, 2)
    except CannotRunError as error:
        return complain(error, 3)


def _peaks(request: Request, more: bool, target: Target) -> int:
    if more:
        raise ArgumentError(f"--grid and --sweep are not for {PEAKS}: it has one case, each device as it is")
    with patience("measuring peaks"):
        found = measure_peaks(request.device)
    show(peaks_document(found), target.form)
    return 0


def _study(workload: Workload, cases: Sequence[Case], target: Target) -> int:
    with patience(f"running {workload.name}"):
        results = list(run_cases(workload, cases, target.folder, target.force))
    show(study_document(results), target.form)
    return 0


def _sweep(workload: Workload, case: Case, sizes: list[int], target: Target) -> int:
    with patience(f"sweeping {workload.name}"):
        found = sweep(workload, case, sizes)
    show(sweep_document(found, _keep(found, target.folder / workload.label, target.force)), target.form)
    return 0


def _keep(found: Sweep, folder: Path, force: bool) -> list[Path]:
    """Write the numbers and the picture; without matplotlib the numbers alone."""
    case, sizes = found.case, [point.size for point in found.points]
    stem = case.stem(default_device()).removeprefix(f"{case.size}_")
    stem = free_stem(folder, f"sweep_{sizes[0]}-{sizes[-1]}_{stem}", [".json", ".png"], force)
    text = render(sweep_document(found), "json")
    files = [write_whole(folder / f"{stem}.json", lambda path: path.write_text(text, "utf-8"))]
    try:
        files.append(write_whole(folder / f"{stem}.png", lambda path: paint(found, path)))
    except CannotRunError as error:
        say(f"warning: {error}")
    return files
