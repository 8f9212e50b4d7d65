"""Run a case, record it, and read what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from torchwhy.experiment.case import Case
from torchwhy.experiment.checks import require_runnable
from torchwhy.experiment.reading import Reading, read
from torchwhy.experiment.recording import record, save
from torchwhy.experiment.regime import UNDECIDED, busy, regime, share_of_device, share_over_floor
from torchwhy.experiment.workload import Workload, prepare, smallest
from torchwhy.timing import Measurement, measure
from torchwhy.wording import percent

__all__ = ["CaseResult", "run_case"]

TIMED_S = 1.0  # for the fastest call


@dataclass(frozen=True, repr=False)
class CaseResult:
    """What one case showed.

    Attributes:
        experiment: the workload's name.
        case: how it was run.
        reading: steps, kernels and operators.
        work_share: share of a step that is work, not overhead, in [0, 1]; see `regime`.
        fastest_s: on the CPU, what a call takes at its fastest, without the profiler; None on other devices.
        floor_s: the same for the smallest input.
        trace: the Chrome trace, for Perfetto.
        table: the profiler's table.
        disturbed: whether other processes took the processors meanwhile.
    """

    experiment: str
    case: Case
    reading: Reading
    work_share: float
    fastest_s: float | None
    floor_s: float | None
    trace: Path
    table: Path
    disturbed: bool = False

    @property
    def regime(self) -> str:
        """`overhead-bound`, `mixed` or `compute-bound`; `undecided` on a busy machine."""
        return UNDECIDED if self.disturbed else regime(self.work_share)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        data = asdict(self)
        return {**data, "regime": self.regime, "trace": str(self.trace), "table": str(self.table)}

    def __str__(self) -> str:
        """Return case, verdict and files in one line; `document.study_document` tells the rest."""
        return f"{self.experiment} {self.case}: {self.regime}, {percent(self.work_share)} work ({self.trace})"

    __repr__ = __str__


def run_case(workload: Workload, case: Case, folder: Path, force: bool = False) -> CaseResult:
    """Run a case in this process and write its trace and table into `folder`/<workload>/.

    Raises:
        ArgumentError: the device is not here, lacks the dtype, or its memory is too small.
        CannotRunError: it fails when run, or the files cannot be written.
    """
    require_runnable(workload, case)
    call = prepare(workload, case)
    recording = save(record(workload, case, call), workload, case, folder, force)
    reading = read(recording.trace, workload.label)
    files = (recording.trace, recording.table)
    if torch.device(case.device).type != "cpu":
        share = share_of_device(reading.host_us, reading.device_us)
        return CaseResult(workload.name, case, reading, share, None, None, *files)
    timed, floor = _timed(call), _timed(prepare(workload, smallest(case)))
    share = share_over_floor(timed.min_s, floor.min_s)
    return CaseResult(
        workload.name, case, reading, share, timed.min_s, floor.min_s, *files, disturbed=busy(timed, floor)
    )


def _timed(call: Callable[[], object]) -> Measurement:
    return measure(call, max_time_s=TIMED_S)
