"""The rounds of an inference server, by phase and batch size, with the time of a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from torchwhy.trace.derived.idle import shown_from
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.meaning.serving import ServerStep, server_step
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.steps import Step
from torchwhy.trace.model.trace import Trace

__all__ = ["RoundGroup", "server_rounds"]


@dataclass(frozen=True)
class RoundGroup:
    """Rounds of one phase and batch size; times in nanoseconds.

    Attributes:
        phase: "prefill", "decode", "mixed", ...
        requests: in the batch of each round; None where the labels do not say.
        tokens: that the model was run on in all of them, of prompts and answers; None where the labels do not say.
        times: of each round, in order.
        device: how long the device worked for each round, in order.
    """

    phase: str
    requests: int | None
    tokens: int | None
    times: Int64
    device: Int64


def server_rounds(trace: Trace) -> tuple[RoundGroup, ...]:
    """Return the rounds that a server announced, the phase and batch size with the most time first; () without any.

    A round lasts until the next one begins if that one generates, for then requests were waiting for it: scheduling,
    sampling and what the host does between rounds count. Before a prefill the server may have had no requests. Such a
    round lasts until its label and its device work have ended. Device work belongs to the round that launched it, also
    where it runs while the next is prepared.
    """
    found = [(step, holds) for step in trace.steps_found if (holds := server_step(step.name)) is not None]
    if not found:
        return ()
    steps, held = [step for step, _ in found], [holds for _, holds in found]
    times, device = _times(steps, held, trace.derived(shown_from)), _device(trace, steps)
    groups: dict[tuple[str, int | None], list[int]] = {}
    for i, one in enumerate(held):
        groups.setdefault((one.phase, one.requests), []).append(i)
    result = []
    for (phase, requests), members in groups.items():
        tokens = [held[i].tokens for i in members]
        known = [one for one in tokens if one is not None]
        total = sum(known) if len(known) == len(tokens) else None
        result.append(RoundGroup(phase, requests, total, times[members], device[members]))
    return tuple(sorted(result, key=lambda group: (-int(group.times.sum()), group.phase, group.requests or 0)))


def _times(steps: Sequence[Step], held: Sequence[ServerStep], shown: int) -> Int64:
    """How long each round lasts; one that begins before the device's work is shown, from then on."""
    starts = np.array([max(step.start, min(shown, step.device_end)) for step in steps], np.int64)
    ends = np.array([max(step.end, step.device_end) for step in steps], np.int64)
    generates = np.array([one.phase not in {"prefill", "idle"} for one in held])
    following = np.append(starts[1:], ends[-1])
    awaited = np.append(generates[1:], False)
    times: Int64 = np.where(awaited, following, np.minimum(ends, np.maximum(following, starts))) - starts
    times[-1] = ends[-1] - starts[-1]
    return times


def _device(trace: Trace, steps: Sequence[Step]) -> Int64:
    """How long the device worked for each."""
    events, links = trace.events, trace.links
    known = links.launch >= 0
    work, launched = links.work[known], events.ts[links.launch[known]]
    order = np.argsort(launched, kind="stable")
    work, launched = work[order], launched[order]
    first = np.searchsorted(launched, [step.start for step in steps])
    last = np.searchsorted(launched, [step.end for step in steps])
    starts, ends = events.ts[work], events.end[work]
    spent = [Intervals.union(starts[a:b], ends[a:b]).total for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    return np.array(spent, np.int64)
