"""Memory: nearly full, growing, in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.copies.autograd import graph_for_nothing
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.memory import CPU, Memory, allocating_operator, memory_of
from torchwhy.trace.derived.step_memory import StepMemory, step_memory
from torchwhy.trace.meaning.annotations import OPTIMIZER
from torchwhy.trace.meaning.kinds import MEMORY_EVENT
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import part_of, percent, size_text

__all__ = ["fragmentation", "memory_creep", "peak_memory"]

# Seen with PyTorch 2.13: 100 MB per step stay with record_shapes=True, nothing without.
_OF_PROFILER: Final = (
    " Under torch.func's transforms it may be the profiler: with record_shapes=True it keeps what they wrap."
)


@rule("C12", "peak-memory", source="90% as in the TensorBoard plugin, 97% reserved as in gpuprof", frees="nothing")
def peak_memory(trace: Trace, *, allocated: float = 0.9, reserved: float = 0.97) -> Iterator[Finding]:
    """The device's memory is nearly full.

    Sees: the highest `Total Allocated` above 90% of the device's memory, or the highest `Total Reserved` above 97%.
    Needs `profile_memory=True`.

    Costs: the next larger batch runs out of memory; before that the allocator frees and retries, and each such retry
    waits for the device.

    Fix: a smaller batch with gradient accumulation, activation checkpointing, 16-bit types, `no_grad` where nothing is
    learnt, `del` of tensors that are no longer needed.

    Known problems: needs `profile_memory=True`; memory of other processes on the device, and of libraries other than
    PyTorch's allocator, isn't in a trace.
    """
    for memory in trace.derived(memory_of):
        total = _device_bytes(trace, memory)
        if memory.kind == CPU or not memory.absolute or not total:
            continue
        used, taken = memory.peak_allocated / total, memory.peak_reserved / total
        if used < allocated and taken < reserved:
            continue
        in_tensors = used >= allocated
        most = memory.peak_allocated if in_tensors else memory.peak_reserved
        what = f"{percent(most / total)} of its memory {'in tensors' if in_tensors else 'reserved'}"
        yield Finding(
            title=f"{memory.name} reaches {what} ({part_of(most, total, size_text)})",
            severity="medium" if in_tensors else "low",
            confidence="high",
            window=trace.window,
            evidence=_peak(trace, memory),
            cause="What the forward pass keeps for the backward pass, gradients, optimizer state and temporary tensors "
            "exist at the same time."
            if trace.events.any_of(AUTOGRAD_NODE)
            else "Tensors of the program exist at the same time.",
            fix=_smaller(trace, memory),
        )


@rule(
    "C13",
    "memory-creep",
    source="allocated memory at the ends of steps, as in TraceML and TensorBoard's leak list",
    frees="nothing",
)
def memory_creep(
    trace: Trace, *, rises: float = 3, smallest: float = 1e6, steps_seen: float = 16, held: float = 32e6
) -> Iterator[Finding]:
    """Every step leaves more memory allocated than the one before.

    Sees: `Total Allocated` at the ends of recorded steps, rising at least three times in a row to the end of the trace,
    evenly, by a megabyte or more together. The first step doesn't count: it makes what stays. Host and device alike.
    Without memory events: what torchwhy read at the ends of 16 or more steps, recorded or not, rising in most of them
    after the first quarter, by 32 MB or more together.

    Costs: the program ends when the memory does.

    Fix: something keeps tensors of past steps: a list of losses (append `loss.item()` or `loss.detach()`), a graph kept
    with `retain_graph=True`, hooks, a cache without bounds.

    Known problems: a cache that fills up, such as of keys and values, grows the same way. With record_shapes=True the
    profiler itself keeps what torch.func wraps.
    """
    if not trace.derived(memory_of):
        for seen in trace.derived(step_memory):
            yield from _creep_seen(trace, seen, steps_seen, held)
    steps = trace.steps_found
    if len(steps) < rises + 2 or steps[0].inferred:
        return
    inference = len(graph_for_nothing(trace)[0]) > 0
    for memory in trace.derived(memory_of):
        change = np.diff(memory.at_ends(steps[1:]))
        last = len(change) - int(np.flatnonzero(change <= 0)[-1] + 1) if (change <= 0).any() else len(change)
        growth = change[len(change) - last :]
        if last < rises or growth.sum() < smallest or growth.min() < np.median(growth) / 10:
            continue
        start, end = steps[len(steps) - last - 1].end, steps[-1].end
        rows = memory.rows[memory.between(start, end)]
        gained = memory.change[memory.between(start, end)]
        kept = rows[np.argsort(-gained, kind="stable")[:5]]
        yield Finding(
            title=f"{memory.name} holds {size_text(float(np.median(growth)))} more after each of {last} steps",
            severity="medium",
            confidence="low" if _by_transforms(trace) else "medium",
            window=trace.window,
            evidence=(
                Evidence(
                    MEMORY_EVENT,
                    len(rows),
                    None,
                    float(memory.times[-1]) / 1000,
                    memory.name,
                    (),
                    "largest from "
                    + (", ".join(dict.fromkeys(_allocator(trace, int(row)) for row in kept)) or "unknown"),
                    rows,
                ),
            ),
            cause=(_GRAPHS if inference else _KEPT) + (_OF_PROFILER if "record_shapes" in trace.info.flags else ""),
            fix=(_NO_GRAPHS if inference else _DROP)
            + (
                "tracemalloc and gc.get_objects() show which objects hold the remaining memory."
                if memory.kind == CPU
                else "torch.cuda.memory._record_memory_history shows where the remaining memory was allocated."
            ),
        )


_KEPT: Final = (
    "Tensors of past steps stay referenced: a list of losses with their graphs, retain_graph=True, hooks, or a cache "
    "that grows (of keys and values, while text is generated, that is its purpose)."
)

_GRAPHS: Final = (
    "Results of past steps are kept, each with its graph: operators record one, and no backward pass follows. A cache "
    "that grows would look the same."
)

_NO_GRAPHS: Final = (
    "Run the loop under torch.inference_mode(): what is kept then holds no activations. Drop what isn't needed with "
    "del; "
)

_DROP: Final = (
    "Append loss.item() or loss.detach() instead of the loss, drop what isn't needed with del, look for caches; "
)


def _creep_seen(trace: Trace, memory: StepMemory, least_steps: float, least: float) -> Iterator[Finding]:
    """The same from what was read between steps, of which other threads and the allocator make a noise."""
    held, steps = memory.held[len(memory.held) // 4 :], memory.steps[len(memory.held) // 4 :]
    change = np.diff(held) / np.diff(steps)  # steps between are not read while the watch of contents runs
    if len(memory.held) < least_steps or held[-1] - held[0] < least:
        return
    usual = float(np.median(change))
    if usual <= 0 or np.mean(change > usual / 2) < _MOSTLY:
        return
    passed = int(steps[-1] - steps[0])
    even, all_of_it = usual * passed, float(held[-1] - held[0])
    if not _MOSTLY * even <= all_of_it <= even / _MOSTLY:  # one jump is no growth of every step
        return
    inference = len(graph_for_nothing(trace)[0]) > 0
    yield Finding(
        title=f"{memory.name} holds {size_text(usual)} more after each step: {size_text(int(held[-1] - held[0]))} in "
        f"{passed} steps",
        severity="medium",
        confidence="medium",
        window=trace.window,
        evidence=(
            Evidence(
                "memory at the ends of steps",
                len(held),
                note=f"{size_text(int(held[0]))} after step {steps[0]}, {size_text(int(held[-1]))} after step "
                f"{steps[-1]}",
            ),
        ),
        cause=_GRAPHS if inference else _KEPT,
        fix=f"{_NO_GRAPHS if inference else _DROP}record with memory (torchwhy profile --memory) to see which "
        "operators make it.",
    )


_MOSTLY: Final = 0.8
"""At least this share of the steps grows, and the total growth differs from the median growth of all steps by at most
this ratio."""


@rule("C14", "fragmentation", source="reserved but unused memory at the peak, 30% as in gpuprof", frees="nothing")
def fragmentation(trace: Trace, *, share: float = 0.3, of_device: float = 0.5) -> Iterator[Finding]:
    """The allocator holds much memory that tensors don't use, even when they use most.

    Sees: at the highest `Total Allocated`, more than 30% of `Total Reserved` not in tensors, where the reserved memory
    is half of the device's or more.

    Costs: memory that can't be used; an out-of-memory error with memory to spare. It may also be a rest of a larger
    need before the trace, which is harmless.

    Fix: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, shapes that repeat (pad to a few sizes).

    Known problems: memory kept from a larger need before the trace looks like fragmentation.
    """
    for memory in trace.derived(memory_of):
        total, taken = _device_bytes(trace, memory), memory.reserved_at_peak
        if memory.kind == CPU or not memory.absolute or not total or taken < of_device * total:
            continue
        unused = (taken - memory.peak_allocated) / taken
        if unused < share:
            continue
        yield Finding(
            title=f"{memory.name} has {size_text(taken)} reserved at its peak, {percent(unused)} of it not in tensors",
            severity="low",
            confidence="medium",
            window=trace.window,
            evidence=_peak(trace, memory),
            cause="Free memory lies in pieces between tensors, too small for the requested size; or more was needed "
            "before the trace began.",
            fix="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and let shapes repeat: pad to a few sizes.",
        )


def _device_bytes(trace: Trace, memory: Memory) -> int:
    return next((device.memory_bytes for device in trace.info.devices if device.id == memory.device), 0)


def _peak(trace: Trace, memory: Memory) -> tuple[Evidence, ...]:
    row = memory.peak_row
    asked = _allocator(trace, row)
    note = f"the peak, {size_text(memory.peak_allocated)} allocated, reached in {asked or 'an unknown operator'}"
    return tuple(replace(item, time_us=None, where=memory.name, note=note) for item in evidence(trace, [row]))


def _allocator(trace: Trace, row: int) -> str:
    """The outermost operator during which memory was allocated; "" where none was recorded."""
    operator = allocating_operator(trace, row)
    return trace.name(operator) if operator >= 0 else ""


def _smaller(trace: Trace, memory: Memory) -> str:
    held = int(memory.at([trace.window.start])[0])
    if 2 * held >= memory.peak_allocated:
        return (
            f"{size_text(held)} of it were allocated before the window: weights, optimizer state, or a cache allocated "
            "in advance, whose size is a setting of its program. 16-bit or quantised weights, or a smaller cache, free "
            "it; a smaller batch does not."
        )
    if trace.events.any_of(AUTOGRAD_NODE):
        return "A smaller batch with gradient accumulation, activation checkpointing, 16-bit types (autocast)."
    return (
        "A smaller batch, torch.inference_mode(), 16-bit or quantised weights (torchao), a pruned model, del of what "
        "is no longer needed."
    )


def _by_transforms(trace: Trace) -> bool:
    """Whether the profiler itself may hold tensors: gradients, but no optimizer, as torch.func's transforms have it."""
    events = trace.events
    return "record_shapes" in trace.info.flags and events.any_of(AUTOGRAD_NODE) and not events.any_of(OPTIMIZER)
