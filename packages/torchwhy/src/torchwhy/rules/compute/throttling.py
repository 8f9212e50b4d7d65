"""A GPU whose clock falls while it works."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.device_counters import CounterSeries, series_of
from torchwhy.trace.file.columns import Flags
from torchwhy.trace.meaning.counters import Quantity
from torchwhy.trace.model.device import DeviceWork
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["clock_throttled"]

_WHOLE = 0.5
"""A sample of the clock counts where the device works for this part of it."""

_AT_THE_LIMIT = 0.97
"""Share of the power limit: the regulator of a GPU that is held at it swings by a few percent."""


@rule(
    "D48",
    "clock-throttled",
    source="clock, power and temperature of the GPU over time; NVML's reasons why a clock is limited",
    needs={"gpu"},
    frees="device",
)
def clock_throttled(trace: Trace, *, drop: float = 0.05, share: float = 0.02) -> Iterator[Finding]:
    """The GPU's clock falls while it works.

    Sees: samples of the clock, as `torchwhy profile --power` or CUPTI's `sm__cycles_elapsed.avg.per_second` give them,
    that lie 5% and more below the highest one while the GPU works, if running at the highest would save 2% of the
    window and more.

    Costs: kernels that compute take longer by as much as the clock is lower.

    Fix: `torchwhy profile --power` records what limits the clock. Power: `nvidia-smi -pl` raises the limit, where that
    is allowed. Heat: better cooling. For measurements, `nvidia-smi -lgc` fixes a clock that the GPU can hold.

    Known problems: kernels that wait for memory do not get slower with the clock, so less than the time at stake may be
    saved. Without the reasons, a clock may also fall because work is rare.
    """
    for gpu in trace.gpus:
        clock = series_of(trace, gpu.device, Quantity.CLOCK)
        if clock is not None and len(clock.values) > 1:
            yield from _fallen(trace, gpu, clock, drop, share)


def _fallen(trace: Trace, gpu: DeviceWork, clock: CounterSeries, drop: float, share: float) -> Iterator[Finding]:
    inside = Intervals.union([trace.window.start], [trace.window.end])
    busy = gpu.busy & inside
    worked = busy.overlap(clock.times, clock.until)
    counts = (worked > 0) & (worked >= _WHOLE * (clock.until - clock.times))
    if not counts.any():
        return
    mhz = clock.converted
    top = float(mhz[counts].max())
    low = counts & (mhz < (1 - drop) * top)
    lost = float((worked[low] * (1 - mhz[low] / top)).sum())
    if not low.any() or lost < share * (trace.window.end - trace.window.start):
        return
    slow = Intervals.union(clock.times[low], clock.until[low]) & busy
    why, fix, sure = _reason(trace, gpu.device, clock, low)
    lowest = float(mhz[low].min())
    yield Finding(
        title=f"The clock of GPU {gpu.device} falls to {lowest:.0f} MHz of {top:.0f} while it works",
        confidence="high" if sure else "medium",
        time_us=lost / 1000,
        window=trace.window,
        stretches=slow,
        evidence=(
            Evidence(
                clock.name,
                int(low.sum()),
                note=f"{np.average(mhz[low], weights=worked[low]):.0f} MHz on average in "
                f"{percent(slow.total / busy.total)} of the time it works",
            ),
        ),
        cause=why,
        fix=fix,
        linked=sure,
    )


def _reason(trace: Trace, device: int, clock: CounterSeries, low: Flags) -> tuple[str, str, bool]:
    """Why the clock is low, the fix, and whether that was recorded."""
    when = Intervals.union(clock.times[low], clock.until[low])
    heat = _mean(trace, device, Quantity.HEAT_LIMITS, when)
    capped = _mean(trace, device, Quantity.POWER_LIMITS, when)
    celsius = _mean(trace, device, Quantity.TEMPERATURE, when)
    watts, limit = (_mean(trace, device, one, when) for one in (Quantity.POWER, Quantity.POWER_LIMIT))
    warm = f" at {celsius:.0f} C" if celsius is not None else ""
    drawn = f" It draws {watts:.0f} W of {limit:.0f} W then." if watts is not None and limit else ""
    if heat is not None and heat >= _WHOLE:
        why = f"The driver says that heat limits the clock then{warm}.{drawn}"
        return why, "Cool the device better: air flow, fans, the temperature of the room; or fix a lower clock.", True
    at_limit = watts is not None and bool(limit) and watts >= _AT_THE_LIMIT * (limit or 0)
    if (capped is not None and capped >= _WHOLE) or at_limit:
        says = (
            "The driver says that the power limit holds the clock down then" if capped else "Power is at its limit then"
        )
        fix = f"Raise the limit where that is allowed{_tool(trace, '-pl')}, or accept it and fix the clock to measure."
        return f"{says}{warm}.{drawn}", fix, True
    known = capped is not None or heat is not None
    if known:
        why = f"The driver names neither heat nor power as the reason{warm}.{drawn} The clock may be set by hand."
        return (
            why,
            f"Fix the clock for measurements{_tool(trace, '-lgc')}.",
            False,
        )
    why = f"The reason was not recorded{warm}.{drawn}"
    says = ": torchwhy profile --power records it" if trace.info.vendor == "nvidia" else ""
    return why, f"Find out whether power or heat limits the clock{says}.", False


def _tool(trace: Trace, option: str) -> str:
    return f" (nvidia-smi {option})" if trace.info.vendor == "nvidia" else ""


def _mean(trace: Trace, device: int, quantity: Quantity, when: Intervals) -> float | None:
    series = series_of(trace, device, quantity)
    return series.mean(when) if series is not None else None
