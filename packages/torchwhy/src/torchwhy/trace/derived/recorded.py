"""What of the program was recorded, and what is missing: asked before anything is concluded from an absence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.derived.launches import lost_copies
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import BACKWARD_LABEL, OPTIMIZER, OPTIMIZER_STEP
from torchwhy.trace.meaning.communication import DEVICE_COLLECTIVE
from torchwhy.trace.meaning.frames import BACKWARD_CALL
from torchwhy.trace.meaning.kinds import HOST, Kind
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE, BACKWARD, ON_DEVICE_ONLY
from torchwhy.trace.meaning.runtime import LAUNCH_OR_ENQUEUE, WAIT_FOR_DEVICE
from torchwhy.trace.model.intervals import Intervals
from torchwhy.wording import counted, duration_ns, enumeration

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["Recorded", "recorded"]

LONG_WAIT_NS: Final = 1_000_000
"""Waits for a device that take at least this time together show that it had work."""

HARDLY_ANY: Final = 0.9
"""Where nothing runs for this part of a backward pass, the thread that runs most of its nodes is not in the file."""

PARTS: Final = (
    ("kernels", (Kind.KERNEL,)),
    ("copies", (Kind.MEMCPY, Kind.MEMSET)),
    ("runtime calls", (Kind.RUNTIME,)),
    ("labels", (Kind.ANNOTATION,)),
)
"""The contents of other recorders' files, in words."""

ON_A_DEVICE: Final = 1
"""`Device Type` of memory on a CUDA device; 0 is the processor's. Other devices have higher numbers."""


@dataclass(frozen=True)
class Recorded:
    """The kinds of events that a trace holds.

    Attributes:
        operators: whether the operators that the program called are in it; a program that only replays graphs calls
            none.
        device: whether work of a device is in it.
        worked: what shows that a device worked, though none of its work is in the trace; "" where nothing does.
        signs: the rows that show it.
        launched: whether a call that launched some of the device's work is in the trace.
        lost_copies: what shows that no copy was recorded although there were some; "" where nothing does.
        processor_only: whether the file shows that the program used no device: its list of the machine's devices is
            empty.
        backward: when a backward pass ran whose operators are not in the trace.
        sampled: whether only a sample of the calls was recorded.
        exchanges: why nothing can be said about a device of which only its communication is in the file; "" otherwise.
        missing: for aspects that rules need (`torchwhy.rules.rule.ASPECTS`) why the trace lacks them.
    """

    operators: bool
    device: bool
    worked: str
    signs: Int32
    launched: bool
    lost_copies: str
    processor_only: bool
    backward: Intervals
    sampled: bool
    exchanges: str
    missing: dict[str, str]

    @property
    def on_processor(self) -> bool:
        """Whether nothing shows that a device worked, so that all time is the processor's."""
        return not (self.device or self.worked)

    @property
    def without_operators(self) -> str:
        """Why nothing can be said about the operators that the program called; "" where they were recorded."""
        return self.missing.get("operators", "")


def recorded(trace: Trace) -> Recorded:
    """Find out what was recorded; `trace.derived(recorded)` does it once."""
    operators = len(trace.events.rows(Kind.OPERATOR)) > 0 or _only_replays(trace)
    worked, signs = ("", np.empty(0, np.int32)) if trace.has_gpu else _signs_of_a_device(trace)
    backward = _unseen_backward(trace)
    sampled = trace.links.sampled
    missing: dict[str, str] = {}
    if not trace.has_gpu:
        reason = f"the device's work was not recorded ({worked})" if worked else "no work of a device was recorded"
        missing |= dict.fromkeys(("gpu", "idle", "order"), reason)
    launched = bool(np.any(trace.links.launch >= 0))
    if trace.has_gpu and not launched:
        missing["order"] = "the calls that launched the device's work were not recorded, or carry no ids"
    exchanges = _only_exchanges(trace)
    if exchanges:
        missing |= dict.fromkeys(("gpu", "idle", "order"), exchanges)
    copies = lost_copies(trace)
    if copies:
        missing["idle"] = copies
    if sampled:
        reason = "only a sample of the calls was recorded"
        missing |= {"idle": reason, "operators": reason}
    if not operators:
        missing["operators"] = _without_operators(trace)
    elif len(backward):
        missing["operators"] = f"the backward pass ({duration_ns(backward.total)}) was recorded without its operators"
    listed = "deviceProperties" in trace.info.top and not trace.info.devices
    processor_only = operators and listed and not (worked or trace.has_gpu)
    return Recorded(
        operators, trace.has_gpu, worked, signs, launched, copies, processor_only, backward, sampled, exchanges, missing
    )


def _only_exchanges(trace: Trace) -> str:
    """Why nothing can be said about a device of which a filtered file holds its communication alone; "" otherwise."""
    work = trace.gpu
    others = work.compute.total + work.copies.total if trace.has_gpu else 1
    if others or len(trace.events.rows(*HOST)):
        return ""
    return "the file holds exchanges between devices and nothing else, so what else they do is unknown"


def _without_operators(trace: Trace) -> str:
    """Why no operator is in a trace: other recorders know none, unless the program announces them."""
    if not trace.info.recorder:
        return "no operator of PyTorch was recorded"
    there = [what for what, kinds in PARTS if len(trace.events.rows(*kinds))]
    holds = enumeration(there) if there else "no calls and no work"
    return f"this file of {trace.info.recorder} holds {holds}, but no operators of PyTorch"


def _only_replays(trace: Trace) -> bool:
    """Whether a program without operators called none: its labels were recorded, and it launches graphs alone."""
    links, labels = trace.links, trace.events.rows(Kind.ANNOTATION)
    replays = len(links.graph_launches) > 0 and len(links.graph_launches) == len(links.launches)
    return replays and len(labels) > 0 and not trace.events.any_of(OPTIMIZER)


def _signs_of_a_device(trace: Trace) -> tuple[str, Int32]:
    """What in a trace without work of a device shows that one worked, and its rows; "" where nothing does."""
    events = trace.events
    launches, waits = events.of(LAUNCH_OR_ENQUEUE), events.of(WAIT_FOR_DEVICE)
    if len(launches):
        return counted(len(launches), "launch", "launches"), launches
    waited = events.times_of(waits).total
    if waited >= LONG_WAIT_NS:
        return f"the program waits {duration_ns(waited)} for it", waits
    for rows in (events.of(ON_DEVICE_ONLY), events.of(DEVICE_COLLECTIVE)):
        if len(rows):
            return f"the program calls {trace.name(int(rows[0]))}", rows
    memory = events.rows(Kind.MEMORY)
    memory = memory[events.integers("Device Type", memory) >= ON_A_DEVICE]
    if len(memory):
        return "memory was allocated on it", memory
    labels = events.rows(Kind.DEVICE_ANNOTATION)
    return ("labels of its streams were recorded" if len(labels) else ""), labels


def _unseen_backward(trace: Trace) -> Intervals:
    """When the loop's thread waited for a backward pass of which no operator was recorded.

    On a device the engine runs it in a separate thread, which some files lack.
    """
    events, nodes = trace.events, trace.events.any_of(AUTOGRAD_NODE | BACKWARD)
    called = trace.when(events.of(BACKWARD_LABEL | BACKWARD_CALL))
    if not len(events.rows(Kind.OPERATOR)) or (nodes and not len(called)):
        return Intervals.union([], [])
    if len(called):
        alone = called - events.times_of(events.rows(Kind.OPERATOR))
        if nodes:  # a few of them, such as a last leaf, run in the thread that waits
            alone = alone - events.times_of(events.rows(Kind.RUNTIME))
        return alone if alone.total > (HARDLY_ANY if nodes else 0.5) * called.total else Intervals.union([], [])
    trained = trace.has_gpu and events.any_of(OPTIMIZER_STEP)
    return _without_calls(trace) if trained else Intervals.union([], [])


def _without_calls(trace: Trace) -> Intervals:
    """When no call was recorded on any thread although the device worked: where an unseen thread launched work."""
    events, links = trace.events, trace.links
    unknown = links.work[links.launch < 0]
    calls = events.times_of(events.rows(Kind.OPERATOR, Kind.RUNTIME))
    lost: Intervals = (events.times_of(unknown) - calls).clip(trace.window.start, trace.window.end)
    known = int(np.count_nonzero(links.launch >= 0))
    return lost if len(unknown) > known / 10 else Intervals.union([], [])
