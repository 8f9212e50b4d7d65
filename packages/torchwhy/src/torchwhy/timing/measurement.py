"""Results of `measure`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torch.utils.benchmark import Measurement as TorchMeasurement
from torch.utils.benchmark.utils.common import TaskSpec

from torchwhy.timing.quantiles import Interval, iqr, median_interval, quantile
from torchwhy.timing.timing_warnings import TimingWarning
from torchwhy.wording import counted, seconds

__all__ = ["Measurement"]


@dataclass(frozen=True, repr=False)
class Measurement:
    """Times of one function, in seconds per call.

    Attributes:
        name: name of the function.
        times_s: one value per run, in order. A run has `calls_per_run` calls, and its value is their mean; with more
            than one call, `p95_s` and `min_s` refer to means.
        calls_per_run: 1, or enough to make the cost of reading the clock negligible.
        first_s: time of the first, cold call, with compilation, allocation and loading.
        warmup_calls: calls before the runs, including the first.
        devices: synchronized accelerators, such as ("cuda:0",); empty on the CPU.
        threads: threads per operator (`torch.get_num_threads`).
        warnings: reasons why the numbers may be misleading.

    >>> m = Measurement("step", (3e-3, 1e-3, 2e-3))
    >>> m.median_s, m.min_s, m.n
    (0.002, 0.001, 3)
    """

    name: str
    times_s: tuple[float, ...]
    calls_per_run: int = 1
    first_s: float | None = None
    warmup_calls: int = 0
    devices: tuple[str, ...] = ()
    threads: int = 1
    warnings: tuple[TimingWarning, ...] = ()

    @property
    def n(self) -> int:
        """Number of runs."""
        return len(self.times_s)

    @property
    def median_s(self) -> float:
        """Median of the runs."""
        return quantile(self.times_s, 0.5)

    @property
    def iqr_s(self) -> float:
        """Interquartile range of the runs."""
        return iqr(self.times_s)

    @property
    def p95_s(self) -> float:
        """95th percentile of the runs."""
        return quantile(self.times_s, 0.95)

    @property
    def min_s(self) -> float:
        """Fastest run."""
        return min(self.times_s)

    @property
    def median_interval_s(self) -> Interval:
        """95% interval of the median, from order statistics."""
        return median_interval(self.times_s)

    def to_torch(self) -> TorchMeasurement:
        """Return the runs as `torch.utils.benchmark.Measurement`, for example for `torch.utils.benchmark.Compare`."""
        task = TaskSpec(stmt="one call", setup="", description=self.name, num_threads=self.threads)
        raw = [time_s * self.calls_per_run for time_s in self.times_s]
        return TorchMeasurement(number_per_run=self.calls_per_run, raw_times=raw, task_spec=task)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: the summary, then everything it was computed from."""
        interval = self.median_interval_s
        return {
            "name": self.name,
            "median_s": self.median_s,
            "iqr_s": self.iqr_s,
            "p95_s": self.p95_s,
            "min_s": self.min_s,
            "n": self.n,
            "median_low_s": interval.low,
            "median_high_s": interval.high,
            "median_confidence": interval.confidence,
            "first_s": self.first_s,
            "warmup_calls": self.warmup_calls,
            "calls_per_run": self.calls_per_run,
            "devices": list(self.devices),
            "threads": self.threads,
            "warnings": [asdict(warning) for warning in self.warnings],
            "times_s": list(self.times_s),
        }

    def __str__(self) -> str:
        """Return the summary, the conditions, and a line for each warning."""
        interval = self.median_interval_s
        lines = [
            f"{self.name}: median {seconds(self.median_s)}, IQR {seconds(self.iqr_s)}, p95 {seconds(self.p95_s)}, "
            f"min {seconds(self.min_s)}, n {self.n}",
            f"  median in {seconds(interval.low)} .. {seconds(interval.high)} ({interval.confidence:.1%} confidence); "
            + self.conditions,
        ]
        return "\n".join(lines + [f"  warning {warning}" for warning in self.warnings])

    __repr__ = __str__

    @property
    def conditions(self) -> str:
        """Devices, threads and how the runs were made, in words."""
        parts = [" + ".join(self.devices) if self.devices else "cpu", counted(self.threads, "thread")]
        if self.calls_per_run > 1:
            parts.append(f"{self.calls_per_run} calls per run")
        if self.first_s is not None:
            warm_up = counted(self.warmup_calls, "call")
            parts.append(f"first call {seconds(self.first_s)}, {warm_up} to warm up")
        return ", ".join(parts)
