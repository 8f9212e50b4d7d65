"""Impossible times: the clocks of host and device disagree, or the exporter wrote nonsense."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration_ns

__all__ = ["clock_skew"]


@rule("A6", "clock-skew", source="kineto issue 109", mutes=("order",), frees="nothing")
def clock_skew(trace: Trace, *, tolerance_us: float = 5.0, share: float = 0.01) -> Iterator[Finding]:
    """Device work begins before its launch, or has impossible times.

    Sees: kernels, copies and fills that start more than 5 us before the call with their correlation id; and events
    without a time, with a negative or endless duration, or placed at time 0: more than 1% of the work.

    Costs: comparisons between host and device are unreliable: launch latency, queue, the reason of a gap. Times within
    the device are not affected.

    Fix: record again, with a newer PyTorch and driver; on a laptop or a virtual machine keep clocks from being
    adjusted.

    Known problems: graphs replayed by older drivers carry the launch's id on nodes of the replay before; such work
    seems to begin early too.
    """
    if not trace.has_gpu:
        return
    work, launch = trace.links.work, trace.links.launch
    damage = trace.events.damage
    broken = damage.total
    known = launch >= 0
    early = trace.events.ts[launch[known]] - trace.events.ts[work[known]]
    skewed = early > tolerance_us * 1000
    count = int(np.count_nonzero(skewed))
    if count <= share * np.count_nonzero(known) and broken <= share * max(len(work), 1):
        return
    found: tuple[Evidence, ...] = evidence(trace, work[known][skewed], times=early[skewed], limit=3, note="too early")
    if count > share * np.count_nonzero(known):
        title = f"{count:,} pieces of device work begin before their launch, by up to {duration_ns(int(early.max()))}"
    else:
        left = "was left out" if broken == 1 else "were left out"
        title = f"{counted(broken, 'event has', 'events have')} impossible times and {left}"
        kinds = {
            "without a time": damage.without_time,
            "negative duration": damage.negative,
            "longer than a day": damage.absurd,
            "at time 0": damage.zero,
        }
        found = tuple(Evidence(name, number) for name, number in kinds.items() if number)
    yield Finding(
        title=title,
        severity="high",
        confidence="high",
        window=trace.window,
        evidence=found,
        cause="The conversion of the device's clock to the host's went wrong in the exporter.",
        fix="Record again with a newer PyTorch and driver; until then, trust only times within the device.",
        linked=True,
    )
