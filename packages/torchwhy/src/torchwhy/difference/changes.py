"""Which names came, went, became slower or faster, per step: only what is more than a trifle and beyond the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.difference.costs import Costs
from torchwhy.difference.noise import Spread, differs

__all__ = ["STATES", "Change", "Changes", "changes_between"]

STATES: Final = ("added", "gone", "slower", "faster")


@dataclass(frozen=True)
class Change:
    """One name on both sides, per step.

    Attributes:
        name: of the operator, annotation, kernel, call or kind of copy.
        state: one of `STATES`.
        calls: how often on A and on B.
        host_us: time on the host without what is called inside, on A and on B.
        device_us: time on the device, on A and on B.
        size: bytes, on A and on B; 0 where that means nothing.
    """

    name: str
    state: str
    calls: tuple[float, float]
    host_us: tuple[float, float]
    device_us: tuple[float, float]
    size: tuple[float, float]

    @property
    def change_us(self) -> float:
        """Time gained or lost per step: on the host or on the device, whichever is more."""
        return max((b - a for a, b in (self.host_us, self.device_us)), key=abs)


@dataclass(frozen=True)
class Changes:
    """The changes of one kind of thing.

    Attributes:
        shown: those that matter, the most time per step first.
        trifles: how many names came or went that take too little time to be shown.
        same: how many names didn't change beyond threshold and noise.
    """

    shown: tuple[Change, ...]
    trifles: int
    same: int

    def __getitem__(self, state: str) -> tuple[Change, ...]:
        return tuple(change for change in self.shown if change.state == state)


def changes_between(a: Costs, b: Costs, threshold_us: float) -> Changes:
    """Compare two sides by name.

    Args:
        a, b: the sides.
        threshold_us: a change of less time per step is a trifle.
    """
    names = tuple(dict.fromkeys((*a.names, *b.names)))
    sides = [_aligned(costs, names) for costs in (a, b)]
    first, second = sides
    beyond = differs(first.host_ns, second.host_ns) | differs(first.device_ns, second.device_ns)
    columns = [[side.counts, side.host_ns.mean, side.device_ns.mean, side.size] for side in sides]
    pairs = [np.stack(pair, 1).tolist() for pair in zip(*columns, strict=True)]
    shown, trifles, same = [], 0, 0
    for i, name in enumerate(names):
        calls, host, device, size = ((pair[i][0], pair[i][1]) for pair in pairs)
        host, device = (host[0] / 1000, host[1] / 1000), (device[0] / 1000, device[1] / 1000)
        change = Change(name, "", calls, host, device, size)
        one_sided = not (calls[0] or device[0]) or not (calls[1] or device[1])
        small = abs(change.change_us) < threshold_us or not change.change_us
        if small or not (one_sided or beyond[i]):
            trifles, same = trifles + one_sided, same + (not one_sided)
            continue
        if one_sided:
            state = "gone" if calls[0] or device[0] else "added"
        else:
            state = "slower" if change.change_us > 0 else "faster"
        shown.append(Change(name, state, calls, host, device, size))
    return Changes(tuple(sorted(shown, key=lambda change: (-abs(change.change_us), change.name))), trifles, same)


def _aligned(costs: Costs, names: Sequence[str]) -> Costs:
    """The same for each of these names, also for those it doesn't have."""
    rows = np.array([costs.place.get(name, -1) for name in names], np.int64)
    if not costs.names:
        nothing, steps = np.zeros(len(names)), costs.host_ns.steps
        return Costs(tuple(names), nothing, Spread(nothing, nothing, steps), Spread(nothing, nothing, steps), nothing)
    counts, size = (np.where(rows >= 0, values[rows], 0.0) for values in (costs.counts, costs.size))
    return Costs(tuple(names), counts, costs.host_ns.take(rows), costs.device_ns.take(rows), size)
