"""Counters of the devices: values in the window, energy, and the part of the device that is near its peak."""

from __future__ import annotations

import msgspec

from torchwhy.errors import ArgumentError
from torchwhy.trace.derived.device_counters import energy_j, series_of
from torchwhy.trace.meaning.counters import Quantity
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.counters import counters

__all__ = ["CounterTimes", "EnergyUse", "MeasuredActivity", "activity", "counter_times", "energy"]

_JOULES_PER_KWH = 3.6e6


class CounterTimes(msgspec.Struct, frozen=True):
    """A counter of a device in the window; the columns of `trace.counters()`.

    Attributes:
        device: its number.
        counter: its name in the file.
        unit: of the values; "" where the name does not show it.
        samples: values that hold within the window.
        mean: over its time; busy_mean: over the time in which the device worked, None where no value is known of that.
        lowest, highest: of the values.
    """

    device: int
    counter: str
    unit: str
    samples: int
    mean: float | None
    busy_mean: float | None
    lowest: float
    highest: float


class EnergyUse(msgspec.Struct, frozen=True):
    """The energy that a device used in the window, from its power; other programs on it are included.

    Attributes:
        device: its number.
        power_w: on average.
        joules: of the window.
        steps: in the window; 0 without steps.
        joules_per_step: None without steps.
        price_per_step: in the unit in which the price of a kWh was given; None without steps or a price.
    """

    device: int
    power_w: float
    joules: float
    steps: int
    joules_per_step: float | None
    price_per_step: float | None


class MeasuredActivity(msgspec.Struct, frozen=True):
    """How near its peaks a device was while it worked, by its counters, in percent; None where that wasn't counted.

    Attributes:
        device: its number.
        active: multiprocessors that had work.
        compute: the busiest unit of the multiprocessors, of its peak.
        memory: traffic of the memory, of its peak.
    """

    device: int
    active: float | None
    compute: float | None
    memory: float | None


def counter_times(trace: Trace) -> tuple[CounterTimes, ...]:
    """Return the counters of the devices; () where none were recorded."""
    return tuple(CounterTimes(**row) for row in counters(trace))


def energy(trace: Trace, price_per_kwh: float | None = None) -> tuple[EnergyUse, ...]:
    """Return what each device used, where its power is known of nearly all of the window.

    Args:
        trace: what was read.
        price_per_kwh: >= 0, of electricity; None says nothing of money.

    Raises:
        ArgumentError: the price is negative.
    """
    if price_per_kwh is not None and not price_per_kwh >= 0:
        raise ArgumentError(f"the price per kWh must be >= 0, got {price_per_kwh!r}")
    found, steps = [], len(trace.steps_found)
    for gpu in trace.gpus:
        power = series_of(trace, gpu.device, Quantity.POWER)
        joules = energy_j(power, trace.window) if power is not None else None
        if joules is None:
            continue
        each = joules / steps if steps else None
        price = each / _JOULES_PER_KWH * price_per_kwh if each is not None and price_per_kwh is not None else None
        found.append(EnergyUse(gpu.device, joules / trace.window.us * 1e6, joules, steps, each, price))
    return tuple(found)


def activity(trace: Trace) -> tuple[MeasuredActivity, ...]:
    """Return how near its peaks each device was, where compute or memory was counted for nearly all of its work."""
    found, window = [], Intervals.union([trace.window.start], [trace.window.end])
    for gpu in trace.gpus:
        means = [
            series.reliable_mean(gpu.busy & window)
            if (series := series_of(trace, gpu.device, quantity)) is not None
            else None
            for quantity in (Quantity.ACTIVE, Quantity.COMPUTE, Quantity.MEMORY)
        ]
        if means[1] is not None or means[2] is not None:
            found.append(MeasuredActivity(gpu.device, *means))
    return tuple(found)
