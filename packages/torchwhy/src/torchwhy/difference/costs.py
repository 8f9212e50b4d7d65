"""What each operator, kernel and copy costs in each step of a recording: counts and times by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from torchwhy.difference.noise import Spread
from torchwhy.difference.steps import Rounds
from torchwhy.trace.derived.idle import closing_wait
from torchwhy.trace.derived.ownership import operators_of_work
from torchwhy.trace.file.columns import ABSENT, Floats, Int32, Int64
from torchwhy.trace.meaning.copies import copy_label
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.programs import stable_name
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.trace import Trace

__all__ = ["Costs", "Side", "copied_bytes", "side_of", "stable_ids"]

UNKNOWN: Final = "(unknown operator)"


@dataclass(frozen=True)
class Costs:
    """By name, per step; all else has one entry per name.

    Attributes:
        names: distinct.
        counts: how often.
        host_ns: time on the host, without what is called inside.
        device_ns: time on the device; of an operator, that of the work it launched itself.
        size: bytes, of copies.
    """

    names: tuple[str, ...]
    counts: Floats
    host_ns: Spread
    device_ns: Spread
    size: Floats

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each name stands."""
        return {name: i for i, name in enumerate(self.names)}

    @property
    def per_step(self) -> dict[str, float]:
        """How often each name comes in a step, on average."""
        return dict(zip(self.names, self.counts.tolist(), strict=True))


@dataclass(frozen=True)
class Side:
    """One of the two recordings, cut into the steps that are compared.

    Attributes:
        trace, rounds: the recording and its steps.
        host: rows of operators, annotations and runtime calls in the steps; `host_round` the step of each.
        work: rows of device work launched in the steps; `work_round` the step of each, `operator` who launched it.
        calls: operators and annotations by name. runtime: calls of the driver. kernels, copies: device work.
        by_operator: kernels by the name of the operator that launched them, then by name: calls and time per step.
    """

    trace: Trace
    rounds: Rounds
    host: Int32
    host_round: Int32
    work: Int32
    work_round: Int32
    operator: Int32
    calls: Costs
    runtime: Costs
    kernels: Costs
    copies: Costs
    by_operator: dict[str, dict[str, tuple[float, float]]]


def side_of(trace: Trace, rounds: Rounds) -> Side:
    """Count and add up what a recording did in its steps."""
    host, host_round = _host(trace, rounds)
    work, work_round, operator = _work(trace, rounds)
    kind, ids, names = trace.events.kind, *stable_ids(trace)
    called = kind[host] != Kind.RUNTIME
    is_kernel, is_copy = kind[work] == Kind.KERNEL, kind[work] == Kind.MEMCPY
    tally = _Tally(trace, ids, names, len(rounds))
    return Side(
        trace, rounds, host, host_round, work, work_round, operator,
        calls=tally.host(host[called], host_round[called], work, work_round, operator),
        runtime=tally.host(host[~called], host_round[~called], work[:0], work_round[:0], operator[:0]),
        kernels=tally.device(work[is_kernel], work_round[is_kernel]),
        copies=tally.copies(work[is_copy], work_round[is_copy]),
        by_operator=_by_operator(trace, work[is_kernel], operator[is_kernel], ids, names, len(rounds)),
    )  # fmt: skip


def stable_ids(trace: Trace) -> tuple[Int32, list[str]]:
    """Return for each text of the trace (and, last, for none) an index into distinct names that are the same in
    every recording."""
    return trace.derived(_stable_ids)


def copied_bytes(events: Events, rows: Int32) -> Int64:
    """How much each row of device work copied; 0 where it is no copy or doesn't show it."""
    size = events.integers("bytes", rows)
    found: Int64 = np.where((size == ABSENT) | (events.kind[rows] != Kind.MEMCPY), 0, size)
    return found


def _stable_ids(trace: Trace) -> tuple[Int32, list[str]]:
    events = trace.events
    ids = np.full(len(events.texts) + 1, -1, np.int32)
    known: dict[str, int] = {}
    for i in np.unique(events.name[events.kind != Kind.OTHER]).tolist():
        name = stable_name(events.texts[i]) if i >= 0 else ""
        ids[i] = known.setdefault(name, len(known))
    return ids, list(known)


def _host(trace: Trace, rounds: Rounds) -> tuple[Int32, Int32]:
    rows = trace.calls.rows
    rows = rows[~np.isin(rows, [*rounds.rows, trace.derived(closing_wait)])]
    inside = rounds.of(trace.events.ts[rows])
    return rows[inside >= 0], inside[inside >= 0]


def _work(trace: Trace, rounds: Rounds) -> tuple[Int32, Int32, Int32]:
    """Device work, the step that launched it (by its own time where the launch isn't known), the operator that did."""
    work, launch, ts = trace.links.work, trace.links.launch, trace.events.ts
    inside = rounds.of(np.where(launch >= 0, ts[launch], ts[work]))
    kept = inside >= 0
    return work[kept], inside[kept], trace.derived(operators_of_work)[kept]


class _Tally:
    """Adds up by stable name and step."""

    def __init__(self, trace: Trace, ids: Int32, names: list[str], rounds: int) -> None:
        self._events, self._self_time = trace.events, trace.calls.self_time
        self._ids, self._names, self._rounds = ids, names, rounds

    def host(self, rows: Int32, inside: Int32, work: Int32, work_inside: Int32, operator: Int32) -> Costs:
        known = operator >= 0
        launched = self._spread(operator[known], work_inside[known], self._events.dur[work[known]])
        return self._costs(rows, self._spread(rows, inside, self._self_time[rows]), launched)

    def device(self, rows: Int32, inside: Int32) -> Costs:
        return self._costs(rows, self._nothing(), self._spread(rows, inside, self._events.dur[rows]))

    def copies(self, rows: Int32, inside: Int32) -> Costs:
        found = self.device(rows, inside)
        kinds = tuple(copy_label(name) or "of unknown kind" for name in found.names)
        return replace(found, names=kinds)

    def _spread(self, rows: Int32, inside: Int32, amounts: Int64) -> Spread:
        """Amounts by the name of their rows."""
        name, amount = self._ids[self._events.name[rows]].astype(np.int64), amounts.astype(np.float64)
        return Spread.of_parts(name, inside.astype(np.int64), amount, len(self._names), self._rounds)

    def _nothing(self) -> Spread:
        return Spread(np.zeros(len(self._names)), np.zeros(len(self._names)), self._rounds)

    def _costs(self, rows: Int32, host: Spread, device: Spread) -> Costs:
        name, n = self._ids[self._events.name[rows]], len(self._names)
        counts = np.bincount(name, minlength=n) / self._rounds
        size = np.bincount(name, copied_bytes(self._events, rows), n) / self._rounds
        there = np.flatnonzero((counts > 0) | (device.mean > 0))
        names = tuple(self._names[i] for i in there.tolist())
        return Costs(names, counts[there], host.take(there), device.take(there), size[there])


def _by_operator(
    trace: Trace, kernels: Int32, operator: Int32, ids: Int32, names: list[str], rounds: int
) -> dict[str, dict[str, tuple[float, float]]]:
    by = np.where(operator >= 0, ids[trace.events.name[operator]], -1)
    pairs = by.astype(np.int64) << 32 | ids[trace.events.name[kernels]]
    distinct, which, count = np.unique(pairs, return_inverse=True, return_counts=True)
    time = np.bincount(which.reshape(-1), trace.events.dur[kernels], len(distinct))
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for pair, calls, spent in zip(distinct.tolist(), count.tolist(), time.tolist(), strict=True):
        who = names[pair >> 32] if pair >= 0 else UNKNOWN
        found.setdefault(who, {})[names[pair & 0xFFFFFFFF]] = (calls / rounds, spent / rounds / 1000)
    return found
