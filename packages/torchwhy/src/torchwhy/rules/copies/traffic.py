"""How much goes between host and device: too much, or there and back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.copies.pinned import rate_text
from torchwhy.rules.copies.transfers import PAGEABLE, SMALL, exposed, step_count, takes_long, transfers
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.file.columns import Flags, Int32, Int64
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent, size_text

__all__ = ["device_ping_pong", "transfer_share"]

DIRECTIONS = {"HtoD": "from host to device", "DtoH": "from device to host", "PtoP": "between devices"}


@rule(
    "C5",
    "transfer-share",
    source="5% per direction, or 10 transfers per step, as in TraceLens",
    needs={"gpu", "idle"},
    frees="exposed",
)
def transfer_share(trace: Trace, *, share: float = 0.05, per_step: float = 10) -> Iterator[Finding]:
    """Copies between host and device take time during which nothing is computed.

    Sees: per direction, the time in which copies run and the device computes nothing, 5% of the window or more; or
    more than 10 copies of 4 kB and more per step which together cost 1%. Copies that overlap with kernels are free;
    those to the device from memory that isn't pinned belong to pageable-copy.

    Costs: the device waits for its data.

    Fix: move once what doesn't change; copy the next batch on a side stream while this one is computed; send smaller
    types (uint8 pixels, int16 samples) and convert on the device.

    Known problems: data that must move every step, such as a batch, can at best be hidden, not removed.
    """
    copies = trace.derived(transfers)
    for way, text in DIRECTIONS.items():
        chosen = takes_long(trace, way, share=share, per_step=per_step)
        if chosen is None:
            continue
        rows = copies.rows[chosen]
        part = trace.window.share(exposed(trace, rows))
        slow = copies.host[chosen] == PAGEABLE
        first = "Pin the memory first (pageable-copy). " if slow.any() else ""
        advice = {
            "HtoD": "Keep on the device what doesn't change; copy the next batch on a side stream while this one is "
            "computed; send small types and convert on the device.",
            "DtoH": "Keep on the device what the host doesn't need, reduce it there, and read results later, together.",
            "PtoP": "Keep work on the device that holds its data.",
        }[way]
        each = f", {len(rows) / step_count(trace):.0f} per step" if trace.steps_found else ""
        yield Finding(
            title=f"Copies {text} take {percent(part)} of the time with nothing else running{each}",
            confidence="high",
            stretches=trace.when(rows),
            window=trace.window,
            evidence=evidence(trace, rows, note=rate_text(copies, chosen)),
            cause="Data moves, and the device computes nothing meanwhile.",
            fix=first + advice,
            linked=True,
        )


@rule(
    "C6",
    "device-ping-pong",
    source="the same number of bytes to the host and back within a step",
    needs={"gpu"},
    frees="exposed",
)
def device_ping_pong(trace: Trace, *, round_trips: float = 2, share: float = 0.001) -> Iterator[Finding]:
    """A tensor goes to the host and comes back.

    Sees: within one step, copies of one size (4 kB or more) that go to the host first and then to the device again, in
    turns, with kernels launched before the first and after the last of them, at least twice in the trace. A program
    that sends its input and fetches an output of equal size isn't meant, wherever its steps begin.

    Costs: two copies, a wait for each, and whatever the host does in between.

    Fix: do on the device what happens in between; look for `.cpu()`, `.numpy()` or `.tolist()` and a `.to(device)`.

    Known problems: only sizes distinguish tensors: an input and an output of equal size in one step can look like a
    round trip.
    """
    copies = trace.derived(transfers)
    chosen = copies.way("HtoD", "DtoH") & (copies.bytes >= SMALL) & (copies.launch >= 0)
    at = np.flatnonzero(chosen)
    step = trace.step_of(copies.launch[at])
    at, step = at[step >= 0], step[step >= 0]
    pairs = _round_trips(copies.bytes[at], step, copies.way("DtoH")[at], trace.events.ts[copies.launch[at]])
    pairs = pairs[_within_work(trace, copies.launch[at], step, pairs)]
    if len(pairs) < round_trips:
        return
    there, back = copies.rows[at[pairs[:, 0]]], copies.rows[at[pairs[:, 1]]]
    rows = np.concatenate((there, back)).astype(np.int32)
    alone = exposed(trace, rows)
    part = trace.window.share(alone)
    if part < share:
        return
    size = int(copies.bytes[at[pairs[:, 0]]].max())
    yield Finding(
        title=f"Tensors go to the host and back {len(pairs)} times (up to {size_text(size)} each way)",
        confidence="medium",
        stretches=trace.when(rows),
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="Within a step as many bytes come back to the device as left it just before.",
        fix="Do the work in between on the device: look for .cpu(), .numpy() or .tolist() "
        "followed by .to(device) or .cuda().",
    )


def _round_trips(size: Int64, step: Int32, to_host: Flags, time: Int64) -> Int64:
    """Pairs of indices (to the host, back), of the sizes and steps whose copies alternate and begin to the host."""
    order = np.lexsort((time, size, step))
    pairs = []
    group = np.flatnonzero(np.diff(step[order], prepend=-1) | np.diff(size[order], prepend=-1))
    for members in np.split(order, group[1:]) if len(order) else []:
        ways = to_host[members]
        if len(members) % 2 == 0 and ways[::2].all() and not ways[1::2].any():
            pairs += list(zip(members[::2].tolist(), members[1::2].tolist(), strict=True))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _within_work(trace: Trace, launch: Int32, step: Int32, pairs: Int64) -> Flags:
    """Whether kernels of the same step were launched before each pair's way to the host and after its way back."""
    events, issued = trace.events, trace.links.launches
    times, steps = events.ts[issued], trace.steps_found
    starts, ends = (np.array([getattr(steps[i], edge) for i in step.tolist()], np.int64) for edge in ("start", "end"))
    there, back = pairs[:, 0], pairs[:, 1]
    before = np.searchsorted(times, events.ts[launch[there]]) - np.searchsorted(times, starts[there])
    after = np.searchsorted(times, ends[back]) - np.searchsorted(times, events.ts[launch[back]])
    found: Flags = (before > 0) & (after > 0)
    return found
