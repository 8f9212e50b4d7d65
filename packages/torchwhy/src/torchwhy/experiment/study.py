"""Run a case under the profiler, several cases apart from each other, or one over many sizes."""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.profiler import ProfilerActivity, record_function

from torchwhy.errors import ArgumentError
from torchwhy.experiment.devices import default_device
from torchwhy.experiment.limits import BOUND, Limits, measure_limits
from torchwhy.experiment.reading import Reading, read
from torchwhy.experiment.workloads import CannotRunError, Case, prepare, require_runnable
from torchwhy.timing.devices import accelerators_in_use, synchronize

__all__ = ["CaseResult", "Point", "crossover", "grid", "run_case", "run_cases", "sizes_from", "sweep"]

WARMUP_CALLS = 10  # before the profiler, for a warm case
ROWS = 15  # of the table
TIMED_S = 1.0  # for each time of a call
ACTIVITIES = {"cuda": [ProfilerActivity.CUDA], "xpu": [ProfilerActivity.XPU]}


@dataclass(frozen=True)
class CaseResult:
    """A case, what its trace shows, what limits a warm call, the Chrome trace, and the profiler's table."""

    case: Case
    reading: Reading
    limits: Limits
    trace: Path
    table: Path

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        files = {"trace": str(self.trace), "table": str(self.table)}
        return {**asdict(self), "regime": self.limits.regime, **files}


@dataclass(frozen=True)
class Point:
    """One size of a sweep."""

    case: Case
    limits: Limits

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        regime, flops_per_s = self.limits.regime, self.case.flops / self.limits.call_s
        return {"size": self.case.size, **asdict(self.limits), "regime": regime, "flops_per_s": flops_per_s}


def run_case(case: Case, folder: Path, force: bool = False) -> CaseResult:
    """Run a case in this process and write `folder`/matmul_add/64_fp32_cold_eager.json and .txt.

    Files that exist are kept, and the new ones numbered, unless `force` is set. A cold case is cold only if the process
    has run nothing of the kind before; `run_cases` sees to that.

    Raises:
        ArgumentError: the device is not here, lacks the dtype, or its memory is too small.
        CannotRunError: it fails when run, or the files cannot be written.
    """
    require_runnable(case)
    call = prepare(case)
    profile = _record(case, call)
    try:
        trace, table = _save(profile, case, folder / case.label, force)
    except OSError as error:
        raise CannotRunError(f"cannot write to {folder / case.label}: {error.strerror or error}") from error
    reading = read(trace, case.label)
    return CaseResult(case, reading, measure_limits(case, call, _device_s(case, reading), TIMED_S), trace, table)


def run_cases(cases: Sequence[Case], folder: Path, force: bool = False) -> Iterator[CaseResult]:
    """Run cases one after the other; several each in a separate process, so that cold means cold.

    Raises:
        ArgumentError: one of the cases cannot run here; then none has run.
        CannotRunError: a case failed.
    """
    for case in cases:
        require_runnable(case)
    if len(cases) == 1:
        yield run_case(cases[0], folder, force)
        return
    for case in cases:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _stdout_to_stderr) as process:
            try:
                yield process.submit(run_case, case, folder, force).result()
            except BrokenProcessPool as error:
                raise CannotRunError(f"the process for {case} ended early") from error


def grid(case: Case, sizes: Sequence[int]) -> list[Case]:
    """Return, for each size, the case cold and warm, eager and compiled.

    >>> [(c.size, c.warm, c.variant) for c in grid(Case("linear", 1), [64])]
    [(64, False, 'eager'), (64, False, 'compiled'), (64, True, 'eager'), (64, True, 'compiled')]
    """
    modes = (None, case.mode or "default")
    return [replace(case, size=n, warm=warm, mode=mode) for n, warm, mode in product(sizes, (False, True), modes)]


def sweep(case: Case, sizes: Sequence[int], max_time_s: float = TIMED_S) -> list[Point]:
    """Measure what limits a case at each size, warm, with `max_time_s` at most for each time that takes.

    Raises:
        ArgumentError, CannotRunError: as `run_case`; sizes are checked before any runs.
    """
    cases = [replace(case, size=size, warm=True) for size in sizes]
    for each in cases:
        require_runnable(each)
    points = []
    for each in cases:
        call = prepare(each)
        with TemporaryDirectory() as scratch:
            on_cpu = torch.device(each.device).type == "cpu"
            reading = None if on_cpu else read(_save(_record(each, call), each, Path(scratch), True)[0], each.label)
        device_s = None if reading is None else _device_s(each, reading)
        points.append(Point(each, measure_limits(each, call, device_s, max_time_s)))
    return points


def crossover(shares: Sequence[tuple[int, float]]) -> float | None:
    """Return the size from which on less than half of the time is overhead, or None if the sizes do not enclose it.

    Between two sizes the ratio of overhead to the rest is taken as a power of the size.

    Args:
        shares: sizes, ascending, and the share of overhead at each.

    >>> crossover([(64, 0.8), (256, 0.2)])
    128.0
    """
    for (size, share), (next_size, next_share) in reversed(list(pairwise(shares))):
        if share >= BOUND > next_share:
            high, low = _log_odds(share), _log_odds(next_share)
            return round(math.exp(math.log(size) + math.log(next_size / size) * high / (high - low)), 6)
    return None


def sizes_from(text: str) -> list[int]:
    """Return the sizes that a sweep's text asks for: a range in doublings, or a list.

    >>> sizes_from("size=64..512"), sizes_from("size=64,100,1000"), sizes_from("size=100..300")
    ([64, 128, 256, 512], [64, 100, 1000], [100, 200, 300])
    """
    if match := re.fullmatch(r"size=(\d+)\.\.(\d+)", text):
        low, high = int(match[1]), int(match[2])
        if 1 <= low < high:
            return sorted({*(low << i for i in range((high // low).bit_length())), high})
    elif re.fullmatch(r"size=\d+(,\d+)+", text):
        sizes = sorted({int(part) for part in text.removeprefix("size=").split(",")})
        if sizes[0] >= 1 and len(sizes) > 1:
            return sizes
    raise ArgumentError(f"sweep must be size=LOW..HIGH with 1 <= LOW < HIGH, or size=A,B,..., got {text!r}")


def _record(case: Case, call: Callable[[], object]) -> torch.profiler.profile:
    """Run a prepared case under the profiler; steps carry the workload's name."""
    if case.warm:
        for _ in range(WARMUP_CALLS):
            call()
        synchronize(accelerators_in_use())
    with warnings.catch_warnings():  # --profiler-warmup 0 requests a first step that the profiler skews
        warnings.filterwarnings("ignore", message="Profiler won't be using warmup")
        schedule = torch.profiler.schedule(wait=case.wait, warmup=case.warmup, active=case.active, repeat=1)
    activities = [ProfilerActivity.CPU, *ACTIVITIES.get(torch.device(case.device).type, [])]
    profile = torch.profiler.profile(activities=activities, schedule=schedule, record_shapes=True)
    with profile:
        for _ in range(case.wait + case.warmup + case.active):
            with record_function(case.label):
                call()
            profile.step()
    return profile


def _save(profile: torch.profiler.profile, case: Case, folder: Path, force: bool) -> tuple[Path, Path]:
    """Write trace and table, which appear whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = name = case.stem(default_device())
    number = 1
    while not force and any((folder / f"{name}{suffix}").exists() for suffix in (".json", ".txt")):
        number += 1
        name = f"{stem}_{number}"
    by = "self_cpu_time_total" if case.device == "cpu" else "self_device_time_total"
    table = profile.key_averages().table(sort_by=by, row_limit=ROWS)
    with TemporaryDirectory(dir=folder) as scratch:
        profile.export_chrome_trace(str(Path(scratch, "trace.json")))
        Path(scratch, "table.txt").write_text(f"{case}\n\n{table}", "utf-8")
        written = Path(scratch, "trace.json"), Path(scratch, "table.txt")
        return written[0].replace(folder / f"{name}.json"), written[1].replace(folder / f"{name}.txt")


def _device_s(case: Case, reading: Reading) -> float | None:
    return None if torch.device(case.device).type == "cpu" else reading.device_us * 1e-6


def _stdout_to_stderr() -> None:
    """Keep what libraries print in a new process out of the command's answer."""
    os.dup2(2, 1)


def _log_odds(share: float) -> float:
    share = min(max(share, 1e-3), 1 - 1e-3)  # finite also for shares of 0 and 1
    return math.log(share / (1 - share))
