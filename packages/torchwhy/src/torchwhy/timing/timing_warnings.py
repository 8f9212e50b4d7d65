"""Warnings about unreliable run times, with a code for programs and advice for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchwhy.timing.machine import Load
from torchwhy.timing.quantiles import iqr, quantile
from torchwhy.timing.trend import mann_kendall, relative_drift
from torchwhy.wording import counted, percent, seconds

__all__ = ["TimingWarning", "cautions"]

WIDE = 0.10  # IQR over median; PyTorch's own benchmark calls this "suspect" at 10% or more
DRIFT = 0.05  # first third against last third
TREND = 3.0  # standard deviations
FEWEST = 6  # fewer runs have no 95% interval


@dataclass(frozen=True)
class TimingWarning:
    """Why a measurement may be misleading, and what to do.

    `code` is one of `nothing-ran`, `wide-spread`, `still-falling`, `still-rising`, `few-runs`, `busy-machine`.

    >>> print(TimingWarning("few-runs", "only 3 runs fitted into 10 s", "raise max_time_s"))
    few-runs: only 3 runs fitted into 10 s; raise max_time_s
    """

    code: str
    message: str
    advice: str

    def __str__(self) -> str:
        """Return code, message and advice in one line."""
        return f"{self.code}: {self.message}; {self.advice}"


def cautions(
    times_s: Sequence[float], load: Load | None, on_accelerator: bool, max_time_s: float, calls_per_run: int = 1
) -> Iterator[TimingWarning]:
    """Yield warnings about times per call in s, with advice that suits how they were measured.

    >>> [w.code for w in cautions([1.0, 1.0, 1.0, 2.0, 2.0, 2.0], None, False, max_time_s=10)]
    ['wide-spread']
    """
    busy = load is not None and load.busy
    if len(times_s) < FEWEST:
        runs = counted(len(times_s), "run")
        took = f"{runs} took {seconds(calls_per_run * sum(times_s))}, and max_time_s is {max_time_s:g}"
        message = f"{took}: too few to separate chance from change"
        yield TimingWarning("few-runs", message, "raise max_time_s, or time a smaller piece of work")
    yield from _spread(times_s, busy, on_accelerator)
    yield from _drift(times_s, on_accelerator)
    if load is not None and busy:
        message = f"other processes used {load.others:.1f} of {load.cpus} processors"
        yield TimingWarning("busy-machine", message, "repeat it on an idle machine")


def _spread(times_s: Sequence[float], busy: bool, on_accelerator: bool) -> Iterator[TimingWarning]:
    median_s, width_s = quantile(times_s, 0.5), iqr(times_s)
    if width_s <= WIDE * median_s:
        return
    if busy:
        advice = "other processes are the likely cause; repeat it on an idle machine"
    elif on_accelerator:
        advice = "lock the device's clocks, and check that no other program uses it"
    else:
        advice = "check that fn does the same work in every call, and try fewer threads (torch.set_num_threads)"
    spread = f"{seconds(width_s)}, {percent(width_s / median_s)} of the median"
    message = f"the middle half of the runs spreads over {spread}"
    yield TimingWarning("wide-spread", message, advice)


def _drift(times_s: Sequence[float], on_accelerator: bool) -> Iterator[TimingWarning]:
    if len(times_s) < FEWEST:
        return
    change, trend = relative_drift(times_s), mann_kendall(times_s)
    if change < -DRIFT and trend < -TREND:
        message = f"times were still falling: the last third is {percent(-change)} below the first"
        yield TimingWarning("still-falling", message, "call fn some more before measuring, or raise max_time_s")
    elif change > DRIFT and trend > TREND:
        message = f"times were rising: the last third is {percent(change)} above the first"
        advice = "look for heat or power limits" if on_accelerator else "look for state that grows with every call"
        yield TimingWarning("still-rising", message, advice)
