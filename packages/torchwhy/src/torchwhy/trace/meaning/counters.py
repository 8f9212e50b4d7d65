"""The quantities that the counters of a GPU measure, by their names.

Kineto writes those of CUPTI's PM sampling under the names that CUPTI has for them: unit, two underscores, counter,
roll-up and what that is a part of (`libkineto/src/CuptiPMSamplingProfiler.cpp` and `output_json.cpp`, August 2026;
NVIDIA's "Metrics Structure"). Intel's have their unit after two colons (`XpuptiScopeProfilerHandlers.cpp`). Power and
temperature are in neither; `torchwhy profile --power` adds them.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

__all__ = [
    "CLOCK",
    "HEAT_LIMITS",
    "MEMORY_CLOCK",
    "POWER",
    "POWER_LIMIT",
    "POWER_LIMITS",
    "TEMPERATURE",
    "CounterMeaning",
    "Quantity",
    "counter_meaning",
    "device_of_counters",
]


class Quantity(Enum):
    """The quantity that a counter measures, in the unit that its values are converted to."""

    CLOCK = "MHz"
    MEMORY_CLOCK = "MHz of memory"
    POWER = "W"
    POWER_LIMIT = "W at most"
    TEMPERATURE = "C"
    POWER_LIMITS = "limited by power"
    HEAT_LIMITS = "limited by heat"
    ACTIVE = "% of multiprocessors active"
    COMPUTE = "% of the multiprocessors' peak"
    MEMORY = "% of the memory's peak"


class CounterMeaning(NamedTuple):
    """The measured quantity (None if unknown), the unit of the values, and the factor to that of `Quantity`."""

    quantity: Quantity | None
    unit: str
    factor: float = 1.0


CLOCK: Final = "clock (MHz)"
MEMORY_CLOCK: Final = "memory clock (MHz)"
POWER: Final = "power (W)"
POWER_LIMIT: Final = "power limit (W)"
TEMPERATURE: Final = "temperature (C)"
POWER_LIMITS: Final = "clock limited by power"
HEAT_LIMITS: Final = "clock limited by heat"
"""Names that `torchwhy profile --power` gives its counters; the last two are 0 or 1."""

_OURS: Final = {
    CLOCK: CounterMeaning(Quantity.CLOCK, "MHz"),
    MEMORY_CLOCK: CounterMeaning(Quantity.MEMORY_CLOCK, "MHz"),
    POWER: CounterMeaning(Quantity.POWER, "W"),
    POWER_LIMIT: CounterMeaning(Quantity.POWER_LIMIT, "W"),
    TEMPERATURE: CounterMeaning(Quantity.TEMPERATURE, "C"),
    POWER_LIMITS: CounterMeaning(Quantity.POWER_LIMITS, ""),
    HEAT_LIMITS: CounterMeaning(Quantity.HEAT_LIMITS, ""),
}

_PEAK: Final = r"\.avg\.pct_of_peak_sustained_(elapsed|active)$"
_KNOWN: Final = tuple(
    (re.compile(pattern), quantity, factor)
    for pattern, quantity, factor in (
        (r"(gpc|sm|smsp)__cycles_elapsed\.(avg|max)\.per_second$", Quantity.CLOCK, 1e-6),
        (r"dram__cycles_elapsed\.(avg|max)\.per_second$", Quantity.MEMORY_CLOCK, 1e-6),
        (r"sm__cycles_active" + _PEAK, Quantity.ACTIVE, 1.0),
        (r"(sm__throughput|sm__(inst_executed_)?pipe_tensor\w*)" + _PEAK, Quantity.COMPUTE, 1.0),
        (r"dram__throughput" + _PEAK, Quantity.MEMORY, 1.0),
        (r"(Avg)?(Gpu)?CoreFrequencyMHz(::MHz)?$", Quantity.CLOCK, 1.0),
    )
)

_DEVICE: Final = re.compile(r"GPU (\d+) Counters")


def device_of_counters(process: str) -> int | None:
    """Return the device whose counters an event's `pid` says it has: 2 for Kineto's "GPU 2 Counters"."""
    found = _DEVICE.fullmatch(process)
    return int(found[1]) if found else None


def counter_meaning(name: str) -> CounterMeaning:
    """Return what a counter measures and in which unit.

    >>> counter_meaning("sm__cycles_elapsed.avg.per_second")
    CounterMeaning(quantity=<Quantity.CLOCK: 'MHz'>, unit='1/s', factor=1e-06)
    >>> counter_meaning("dram__bytes_read.sum")
    CounterMeaning(quantity=None, unit='B', factor=1.0)
    """
    if name in _OURS:
        return _OURS[name]
    known = next(((quantity, factor) for pattern, quantity, factor in _KNOWN if pattern.match(name)), (None, 1.0))
    return CounterMeaning(known[0], _unit(name), known[1])


def _unit(name: str) -> str:
    """The unit of CUPTI's and Intel's counters; "" where their names do not show it."""
    if ".pct" in name:
        return "%"
    if "::" in name:
        return name.rpartition("::")[2]
    if "__" not in name:
        return ""
    base = "B" if "__bytes" in name or "_bytes" in name else ""
    if name.endswith(".per_second"):
        return f"{base or 1}/s"
    return base
