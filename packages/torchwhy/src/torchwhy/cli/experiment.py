"""`torchwhy experiment`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torchwhy.cli.console import complain, patience
from torchwhy.cli.documents import show
from torchwhy.errors import ArgumentError
from torchwhy.experiment import CannotRunError, Case, grid, run_cases, sweep
from torchwhy.experiment.devices import default_device, require_device
from torchwhy.experiment.document import peaks_document, study_document, sweep_document
from torchwhy.experiment.peaks import measure_peaks
from torchwhy.experiment.study import sizes_from
from torchwhy.present.document import Document
from torchwhy.present.formats import check_format

__all__ = ["run"]

PEAKS = "peaks"


def run(
    name: str,
    sizes: Sequence[int],
    *,
    dtype: str | None,
    device: str | None,
    batch: int | None,
    warm: bool,
    compiled: bool,
    mode: str | None,
    schedule: tuple[int, int, int],
    every: bool,
    over: str,
    folder: Path,
    force: bool,
    form: str,
) -> int:
    """Run an experiment's cases, sweep it, or measure peaks; return 0, 2 for misuse, 3 when it cannot run.

    `every` asks for the grid, `over` is the sweep's text, `form` the format of the answer.
    """
    try:
        check_format(form)
        with patience(f"measuring {name}"):
            if name == PEAKS:
                answer = _peaks(device, every or bool(over))
            else:
                case = _case(name, sizes[0], dtype, device, batch, warm, compiled, mode, schedule)
                if over:
                    answer = sweep_document(sweep(case, sizes_from(over)))
                else:
                    cases = grid(case, sizes) if every else [replace(case, size=size) for size in sizes]
                    answer = study_document(list(run_cases(cases, folder, force)))
        show(answer, form)
    except ArgumentError as error:
        return complain(error, 2)
    except CannotRunError as error:
        return complain(error, 3)
    return 0


def _case(
    name: str,
    size: int,
    dtype: str | None,
    device: str | None,
    batch: int | None,
    warm: bool,
    compiled: bool,
    mode: str | None,
    schedule: tuple[int, int, int],
) -> Case:
    if mode is not None and not compiled:
        raise ArgumentError(f"mode is for compiled runs: add --compile to --mode {mode}")
    where = str(require_device(device or default_device()))
    dtype = dtype or ("fp32" if where == "cpu" else "bf16")
    return Case(name, size, dtype, where, batch, warm, (mode or "default") if compiled else None, *schedule)


def _peaks(device: str | None, more: bool) -> Document:
    if more:
        raise ArgumentError(f"--grid and --sweep are not for {PEAKS}: it has one case, each device as it is")
    return peaks_document(measure_peaks(device))
