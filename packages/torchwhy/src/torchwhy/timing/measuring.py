"""`measure`: time a function until its median is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torchwhy.errors import ArgumentError
from torchwhy.timing.contender import Contender
from torchwhy.timing.laziness import nothing_ran
from torchwhy.timing.machine import CpuTimes, load_between, read_cpu_times
from torchwhy.timing.measurement import Measurement
from torchwhy.timing.quantiles import Interval, median_interval, quantile
from torchwhy.timing.timing_warnings import TimingWarning, cautions

__all__ = ["measure", "precise", "require_budget", "warnings_about"]

WARMUP_SHARE = 0.2  # of max_time_s
SHORTEST_S = 0.1  # runs last at least this long together, so that one hiccup is not all of them


def measure(
    fn: Callable[[], Any],
    *,
    name: str | None = None,
    precision: float = 0.01,
    min_runs: int = 10,
    max_runs: int = 2000,
    max_time_s: float = 10.0,
    clock: Callable[[], float] = time.perf_counter,
    cpu_times: Callable[[], CpuTimes | None] = read_cpu_times,
) -> Measurement:
    """Time a function, with warm-up, synchronization, and as many runs as its spread requires.

    `torch.utils.benchmark.Timer` times the calls. Runs continue until the 95% interval of their median (order
    statistics, see `median_interval`) is within `precision` of the median.

    Args:
        fn: a function without arguments; its result is discarded.
        name: name in reports; by default the function's name.
        precision: target for half the interval's width divided by the median, in (0, 1).
        min_runs: minimum number of runs, if `max_time_s` allows.
        max_runs: maximum number of runs.
        max_time_s: maximum time in seconds for warm-up (at most a fifth) and runs, without the first call, which may
            compile. At least one run is taken.
        clock: returns seconds; replaceable for tests.
        cpu_times: returns the processors' counters; replaceable for tests.

    Returns:
        Median, IQR, p95, minimum, all run times, and warnings.

    Raises:
        ArgumentTypeError: `fn` is not a function, or is async.
        ArgumentError: another argument is out of range.

    >>> import itertools
    >>> seconds = itertools.count()  # a clock that advances 1 s a reading
    >>> m = measure(lambda: None, clock=lambda: float(next(seconds)), max_time_s=1e9)
    >>> m.median_s * m.calls_per_run, m.iqr_s, m.n
    (1.0, 0.0, 10)
    """
    require_budget(precision, min_runs, max_runs, max_time_s)
    contender = Contender(name or _name_of(fn), fn, clock)
    before = cpu_times()
    contender.warm_up(max_time_s * WARMUP_SHARE)
    if contender.spent_s >= max_time_s:
        contender.take_warm_up_as_run()
    check_at = min_runs
    while (n := len(contender.times_s)) < max_runs and contender.spent_s < max_time_s:
        contender.run()
        n += 1
        if n >= check_at and contender.calls * sum(contender.times_s) >= SHORTEST_S:
            if precise(median_interval(contender.times_s), quantile(contender.times_s, 0.5), precision):
                break
            check_at = n + 1 + n // 5
    return contender.measurement(warnings_about(contender, before, cpu_times(), max_time_s))


def precise(interval: Interval, centre: float, precision: float) -> bool:
    """Whether an interval is narrow enough and has the confidence requested.

    >>> precise(Interval(0.99, 1.01, 0.96), 1.0, 0.01), precise(Interval(1.0, 1.0, 0.5), 1.0, 0.01)
    (True, False)
    """
    half = (interval.high - interval.low) / 2
    return interval.confidence >= 0.95 and half <= precision * centre * (1 + 1e-9)


def require_budget(precision: float, min_runs: int, max_runs: int, max_time_s: float) -> None:
    """Raise ArgumentError unless the limits of a measurement make sense."""
    if not 0 < precision < 1:
        raise ArgumentError(f"precision must lie in (0, 1), got {precision}")
    if not 1 <= min_runs <= max_runs:
        raise ArgumentError(f"min_runs must lie in [1, max_runs] = [1, {max_runs}], got {min_runs}")
    if not max_time_s > 0:
        raise ArgumentError(f"max_time_s must be > 0, got {max_time_s}")


def warnings_about(
    contender: Contender, before: CpuTimes | None, after: CpuTimes | None, max_time_s: float
) -> tuple[TimingWarning, ...]:
    """Return the warnings a contender's runs deserve, the one that makes them void first."""
    lazy = nothing_ran(contender.fn, contender.promise, quantile(contender.times_s, 0.5))
    load = load_between(before, after)
    others = cautions(contender.times_s, load, contender.on_accelerator, max_time_s, contender.calls)
    return (lazy, *others) if lazy else tuple(others)


def _name_of(fn: object) -> str:
    name = str(getattr(fn, "__name__", "fn"))
    return "fn" if name == "<lambda>" else name
