"""Folded stacks: one line per call path with its time, as flame graph tools read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from torchfx.profiler.capture.frames import call_path
from torchfx.profiler.capture.operators import kind_of

__all__ = ["fold"]


def fold(events: Iterable[Any], metric: str) -> list[str]:
    """Lines `outermost;...;innermost;operator microseconds`, the costliest first.

    Args:
        events: `FunctionEvent`s recorded with stacks.
        metric: "self_cpu_time_total" or "self_device_time_total".
    """
    totals: Counter[str] = Counter()
    for event in events:
        if not event.stack or kind_of(event) != "operator":
            continue
        totals[";".join(_clean(frame) for frame in (*call_path(event.stack), event.name))] += getattr(event, metric)
    return [f"{path} {round(time)}" for path, time in totals.most_common() if round(time) > 0]


def _clean(frame: str) -> str:
    """Semicolons separate frames and the last space the number, so neither may stand in a name."""
    return frame.replace(";", ",").replace(" ", "_").replace("\t", "_").replace("\n", "_")
