"""Run a case under `torch.profiler` and keep the trace and the table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.profiler import ProfilerActivity, record_function

from torchwhy.experiment.artefacts import free_stem, write_whole
from torchwhy.experiment.case import Case, default_device
from torchwhy.experiment.reading import Reading, read
from torchwhy.experiment.workload import Workload
from torchwhy.timing.devices import accelerators_in_use, synchronize

__all__ = ["Recording", "read_once", "record", "save"]

WARMUP_CALLS = 10  # before the profiler, for a warm case
ROWS = 15  # of the table


@dataclass(frozen=True)
class Recording:
    """The files of one case."""

    trace: Path
    table: Path


def record(workload: Workload, case: Case, call: Callable[[], object]) -> torch.profiler.profile:
    """Run `call`, the workload prepared for the case, under the profiler; steps carry the workload's name.

    A cold case is cold only if the process has run nothing of the kind before; `run_cases` sees to that.
    """
    if case.warm:
        for _ in range(WARMUP_CALLS):
            call()
        synchronize(accelerators_in_use())
    with warnings.catch_warnings():  # no warm-up step was asked for; that it skews the first one is what to look at
        warnings.filterwarnings("ignore", message="Profiler won't be using warmup")
        schedule = torch.profiler.schedule(**asdict(case.schedule), repeat=1)
    activities = [ProfilerActivity.CPU, *_device_activity(case)]
    profile = torch.profiler.profile(activities=activities, schedule=schedule, record_shapes=True)
    with profile:
        for _ in range(case.schedule.steps):
            with record_function(workload.label):
                call()
            profile.step()
    return profile


def save(profile: torch.profiler.profile, workload: Workload, case: Case, folder: Path, force: bool) -> Recording:
    """Write `folder/matmul_add/64_bf16_cold_eager.json` and `.txt`, numbered where such files exist."""
    folder = folder / workload.label
    stem = free_stem(folder, case.stem(default_device()), [".json", ".txt"], force)
    by = "self_cpu_time_total" if case.device == "cpu" else "self_device_time_total"
    table = profile.key_averages().table(sort_by=by, row_limit=ROWS)
    trace_path = write_whole(folder / f"{stem}.json", lambda path: profile.export_chrome_trace(str(path)))
    table_path = write_whole(folder / f"{stem}.txt", lambda path: path.write_text(f"{case}\n\n{table}", "utf-8"))
    return Recording(trace_path, table_path)


def read_once(workload: Workload, case: Case, call: Callable[[], object]) -> Reading:
    """Record a case, read it, and keep no file."""
    with TemporaryDirectory() as scratch:
        recording = save(record(workload, case, call), workload, case, Path(scratch), force=True)
        return read(recording.trace, workload.label)


def _device_activity(case: Case) -> list[ProfilerActivity]:
    """The activity that records the case's device; none for the CPU and for devices without one (mps)."""
    kind = torch.device(case.device).type
    return {"cuda": [ProfilerActivity.CUDA], "xpu": [ProfilerActivity.XPU]}.get(kind, [])
