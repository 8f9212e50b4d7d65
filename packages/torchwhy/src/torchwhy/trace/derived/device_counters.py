"""The counters of the devices over time: hardware counters that Kineto writes, and clock, power and temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.trace.file.columns import Floats, Int64
from torchwhy.trace.meaning.counters import CounterMeaning, Quantity, counter_meaning, device_of_counters
from torchwhy.trace.model.intervals import Intervals, Window
from torchwhy.trace.model.trace import Trace

__all__ = ["CounterSeries", "device_counters", "energy_j", "series_of"]

_COUNTER: Final = ord("C")
_HELD: Final = 10
"""A value is valid for at most this many times the usual distance of samples. After a longer time the sampler was
delayed, or had stopped."""

_POSSIBLE: Final = {
    Quantity.POWER: (0.0, 10_000.0),  # NVIDIA's and AMD's largest GPUs have limits of some 1,500 W
    **dict.fromkeys((Quantity.ACTIVE, Quantity.COMPUTE, Quantity.MEMORY), (-1.0, 110.0)),  # percent, with an error
}
"""Values of a GPU are between these."""

_COVERED: Final = 0.9
"""Share of a time: if the samples cover less, nothing is concluded about it."""


@dataclass(frozen=True)
class CounterSeries:
    """One counter of one device. A value holds from its time until the next one, unless that is far away.

    Attributes:
        device: its number.
        name: as the file has it.
        meaning: what is measured.
        times, until: when each value begins and ends to hold, nanoseconds, ascending; the last one holds for as long as
            most do.
        values: in the unit of `meaning.unit`.
    """

    device: int
    name: str
    meaning: CounterMeaning
    times: Int64
    until: Int64
    values: Floats

    @property
    def converted(self) -> Floats:
        """The values in the unit of `Quantity`."""
        found: Floats = self.values * self.meaning.factor
        return found

    def mean(self, when: Intervals) -> float | None:
        """The mean over stretches of time; None where no value is known of them."""
        held = when.overlap(self.times, self.until)
        return float(np.average(self.values, weights=held)) if held.any() else None

    def reliable_mean(self, when: Intervals) -> float | None:
        """The mean in the unit of `Quantity`; None where possible values are not known of nearly all of the time."""
        values = self.converted
        low, high = _POSSIBLE.get(self.meaning.quantity, (-np.inf, np.inf)) if self.meaning.quantity else (0.0, 0.0)
        held = when.overlap(self.times, self.until) * ((values > low) & (values < high))
        if not when.total or held.sum() < _COVERED * when.total:
            return None
        return float(np.average(values, weights=held))

    def within(self, window: Window) -> Floats:
        """The values that hold at some moment of a window."""
        found: Floats = self.values[(self.until > window.start) & (self.times < window.end)]
        return found


def device_counters(trace: Trace) -> tuple[CounterSeries, ...]:
    """Return the counters of all devices, by device and in order of their first values."""
    events = trace.events
    rows = np.flatnonzero(events.phase[: events.recorded] == _COUNTER)
    values = events.floats("", rows)
    known = np.isfinite(values)
    rows, values = rows[known], values[known]
    devices = np.array([_device(lane.pid) for lane in events.lanes] + [-1], np.int64)[events.lane[rows]]
    result = []
    for device in np.unique(devices[devices >= 0]).tolist():
        here = devices == device
        for name in dict.fromkeys(events.name[rows[here]].tolist()):
            chosen = here & (events.name[rows] == name)
            order = np.argsort(events.ts[rows[chosen]], kind="stable")
            times = events.ts[rows[chosen]][order]
            step = int(np.quantile(np.diff(times), 0.5, method="lower")) if len(times) > 1 else 0
            text = events.texts[name]
            until = np.append(np.minimum(times[1:], times[:-1] + _HELD * step), times[-1] + step)
            result.append(CounterSeries(device, text, counter_meaning(text), times, until, values[chosen][order]))
    return tuple(result)


def _device(process: str) -> int:
    found = device_of_counters(process)
    return -1 if found is None else found


def series_of(trace: Trace, device: int, quantity: Quantity) -> CounterSeries | None:
    """Return the first counter of a device that measures something; None without one."""
    found = (one for one in trace.derived(device_counters) if one.device == device and one.meaning.quantity is quantity)
    return next(found, None)


def energy_j(power: CounterSeries, window: Window) -> float | None:
    """Return the joules of a window; None where the power is not known of nearly all of it.

    Values that no GPU can have are not known.
    """
    watts = power.reliable_mean(Intervals.union([window.start], [window.end]))
    return None if watts is None else watts * (window.end - window.start) / 1e9
