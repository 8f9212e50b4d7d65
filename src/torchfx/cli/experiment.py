"""`torchfx experiment`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from torchfx.cli.console import err, fail, out
from torchfx.errors import ArgumentError
from torchfx.profiler.experiment import (
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
from torchfx.profiler.experiment.artefacts import free_stem, write_whole
from torchfx.profiler.experiment.case import default_device
from torchfx.profiler.experiment.checks import require_device
from torchfx.profiler.experiment.drawing import draw
from torchfx.profiler.experiment.picture import paint
from torchfx.profiler.experiment.sizes import sizes_from

__all__ = ["Request", "Target", "run"]


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
    as_json: bool


def run(name: str, sizes: Sequence[int], request: Request, every: bool, over: str, target: Target) -> int:
    """Run an experiment's cases, or sweep it; return 0, 2 for misuse, 3 when it cannot run."""
    try:
        workload = workload_named(name)
        if over:
            return _sweep(workload, request.case(1), sizes_from(over), target)
        cases = [request.case(size) for size in sizes]
        return _study(workload, grid(cases[0], sizes) if every else cases, target)
    except ArgumentError as error:
        return fail(error, 2)
    except CannotRunError as error:
        return fail(error, 3)


def _study(workload: Workload, cases: Sequence[Case], target: Target) -> int:
    results = []
    with err.status(f"running {workload.name} {cases[0]}") as status:
        following = [*cases[1:], None]
        for case, result in zip(following, run_cases(workload, cases, target.folder, target.force), strict=True):
            status.update(f"running {workload.name} {case}")
            results.append(result.to_dict())
            if not target.as_json:
                out.out(f"{result}\n", highlight=False)
    if target.as_json:
        out.out(_json("experiment", {"experiment": workload.name, "cases": results}), highlight=False)
    return 0


def _sweep(workload: Workload, case: Case, sizes: list[int], target: Target) -> int:
    with err.status(f"sweeping {workload.name}") as status:
        found = sweep(workload, case, sizes, progress=lambda size: status.update(f"{workload.name} at size {size}"))
    text = _json("sweep", found.to_dict())
    out.out(text if target.as_json else draw(found), highlight=False)
    files = _keep(found, text, target.folder / workload.label, target.force)
    if not target.as_json:
        out.out(f"files: {', '.join(map(str, files))}", highlight=False)
    return 0


def _keep(found: Sweep, text: str, folder: Path, force: bool) -> list[Path]:
    """Write the numbers and the picture; without matplotlib the numbers alone."""
    case, sizes = found.case, [point.size for point in found.points]
    stem = case.stem(default_device()).removeprefix(f"{case.size}_")
    stem = free_stem(folder, f"sweep_{sizes[0]}-{sizes[-1]}_{stem}", [".json", ".png"], force)
    files = [write_whole(folder / f"{stem}.json", lambda path: path.write_text(text, "utf-8"))]
    try:
        files.append(write_whole(folder / f"{stem}.png", lambda path: paint(found, path)))
    except CannotRunError as error:
        err.print(f"warning: {error}", markup=False)
    return files


def _json(kind: str, data: dict[str, Any]) -> str:
    encoded = msgspec.json.encode({"schema": 1, "kind": kind, **data})
    return msgspec.json.format(encoded, indent=2).decode()
