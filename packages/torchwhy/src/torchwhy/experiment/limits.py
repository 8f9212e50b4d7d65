"""The limit of a call: its overhead, the memory, or the arithmetic; each measured on this machine.

Of a call's fastest run, overhead is the part that the same call takes on the smallest input (on an accelerator: during
which the device does not work), memory the time of copying as many bytes, and arithmetic the time of as many
floating-point operations in a large matrix product of the same type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import torch

from torchwhy.experiment.workloads import DTYPES, Case, prepare, smallest
from torchwhy.timing import Measurement, measure

__all__ = ["BOUND", "Limits", "busy", "measure_copy", "measure_limits"]

BOUND = 0.5  # share of the time from which on something is the limit
ROWS_CPU, ROWS = 512, 4096  # of a matrix product that is fast for its type


@dataclass(frozen=True)
class Limits:
    """Seconds of one call.

    Attributes:
        call_s: the fastest run; median_s, iqr_s: of all runs.
        overhead_s, memory_s, compute_s: the parts, see the module.
        disturbed: whether other processes took the processors meanwhile.

    >>> Limits(10e-6, 10e-6, 0, overhead_s=4e-6, memory_s=1e-6, compute_s=6e-6).regime
    'compute-bound'
    >>> Limits(10e-3, 10e-3, 0, overhead_s=4e-6, memory_s=1e-6, compute_s=6e-6).regime
    'undecided'
    """

    call_s: float
    median_s: float
    iqr_s: float
    overhead_s: float
    memory_s: float
    compute_s: float
    disturbed: bool = False

    @property
    def shares(self) -> dict[str, float]:
        """The parts' shares of the fastest run, in [0, 1]."""
        parts = {"overhead": self.overhead_s, "memory": self.memory_s, "compute": self.compute_s}
        return {name: min(1.0, max(0.0, part) / self.call_s) for name, part in parts.items()}

    @property
    def regime(self) -> str:
        """`overhead-bound`, `compute-bound` or `memory-bound` if that is half the time or more; otherwise `mixed`.

        `undecided` where other processes took the processors, since threads then wait for each other in any of the
        measurements, or where all three together don't explain half of the time: something else is in it.
        """
        shares = self.shares
        if self.disturbed or sum(shares.values()) < BOUND:
            return "undecided"
        largest = "overhead" if shares["overhead"] >= BOUND else max(shares, key=lambda name: shares[name])
        return f"{largest}-bound" if shares[largest] >= BOUND else "mixed"


def measure_limits(case: Case, call: Callable[[], object], device_s: float | None, max_time_s: float) -> Limits:
    """Measure a call, prepared for the case; `device_s` is its device time, None on the CPU."""
    timed = measure(call, max_time_s=max_time_s)
    floor = measure(prepare(smallest(case)), max_time_s=max_time_s) if device_s is None else None
    copies = [measure_copy(case.device, max(1, used // 2), max_time_s / 4) for used in (case.bytes_used, 2)]
    product_s_per_flop, product = _product(case.device, case.dtype)
    return Limits(
        timed.min_s,
        timed.median_s,
        timed.iqr_s,
        overhead_s=floor.min_s if floor is not None else timed.min_s - (device_s or 0),
        memory_s=copies[0].min_s - copies[1].min_s,
        compute_s=case.flops * product_s_per_flop,
        disturbed=busy(timed, *copies, product, *([floor] if floor is not None else [])),
    )


def busy(*measurements: Measurement) -> bool:
    """Return whether others kept the processors from one of the measurements; its times then are theirs, too.

    >>> busy(Measurement("f", (1.0,)))
    False
    """
    return any(warning.code == "busy-machine" for m in measurements for warning in m.warnings)


def measure_copy(device: str, size: int, max_time_s: float) -> Measurement:
    """Time a copy of this number of bytes, which reads and writes them."""
    source = torch.ones(size, dtype=torch.uint8, device=device)
    return measure(partial(torch.empty_like(source).copy_, source), max_time_s=max_time_s)


@cache
def _product(device: str, dtype: str) -> tuple[float, Measurement]:
    """Time a large product; return the seconds of each of its floating-point operations, too."""
    rows = ROWS_CPU if torch.device(device).type == "cpu" else ROWS
    a, b = (torch.randn(rows, rows, device=device, dtype=DTYPES[dtype]) for _ in range(2))
    timed = measure(partial(torch.mm, a, b, out=torch.empty_like(a)), max_time_s=1.0)
    return timed.min_s / (2 * rows**3), timed
