"""Optimizers that go through their parameters one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.launches import kernel_launches
from torchwhy.trace.derived.replay import replay
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP, WITHOUT_FOREACH, ZERO_GRAD
from torchwhy.trace.meaning.frames import SINGLE_TENSOR_UPDATE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import ACCUMULATE_GRADIENT, ADD_IN_PLACE, FOREACH_OR_FUSED, UPDATE, ZERO_FILL
from torchwhy.trace.model.intervals import Intervals, Window
from torchwhy.trace.model.trace import Trace

__all__ = ["optimizer_for_loop", "zero_grad_memset"]

FUSED: Final = frozenset({"Adam", "AdamW", "SGD"})
FOREACH: Final = frozenset({"Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"})
"""Optimizers with the argument fused, or only foreach, as of PyTorch 2.13; foreach gains nothing on the CPU."""


@rule("B15", "optimizer-for-loop", source="torch.profiler's pattern matcher, single-tensor optimizers", frees="all")
def optimizer_for_loop(
    trace: Trace, *, launches: int = 30, share: float = 0.005, cpu_share: float = 0.1
) -> Iterator[Finding]:
    """The optimizer updates its parameters one by one.

    Sees: frames such as `_single_tensor_adam`, or an `Optimizer.step#` with 30 launches per step or more, most kernels
    under 20 us and none for many tensors at once (`_foreach`, `multi_tensor_apply`, `fused`). What it takes on the
    device, gaps included, is 0.5% of the window or more; on a CPU its own time 10%. At stake are its time on the host
    while the device is idle, and the time of its kernels, except for the kernel name that takes longest: that pass
    remains.

    Costs: several launches per parameter, where one for all of them does the same.

    Fix: `foreach=True` or `fused=True` when making the optimizer.

    Known problems: an optimizer of the program's own that calls such operators looks the same, and has no such
    arguments; the advice then is to write its step with `torch._foreach_*`.
    """
    events = trace.events
    rows = trace.calls.outermost_of_name(events.of(OPTIMIZER_STEP))  # a scheduler's wrapper announces it once more
    rows = rows[trace.in_steps(rows) & ~events.are(WITHOUT_FOREACH, rows)]
    if not len(rows):
        return
    spans = events.times_of(rows)
    operators = trace.derived(outer_operators)  # what an operator calls itself is a part of it
    inside = operators[events.covered(operators, spans) > 0]
    frames = events.of(SINGLE_TENSOR_UPDATE)
    calls = trace.derived(kernel_launches)
    calls = calls[events.covered(calls, spans) > 0]
    work = trace.links.put_by(calls)
    every = events.of(FOREACH_OR_FUSED)
    if events.covered(every, spans).any() or events.are(FOREACH_OR_FUSED, work).any():
        return
    on_device = len(work) > 0
    least = launches // 3 if len(frames) else launches
    many = len(calls) >= least * len(rows) and on_device and float(np.median(events.dur[work])) < 20_000
    single = events.are(UPDATE, inside)
    loop = (len(frames) > 0 or bool(single.any())) and (not on_device or many)
    if not many and not (loop and len(inside) >= least * len(rows)):
        return
    window = trace.derived(steady_window)
    spent = _on_device(trace, rows, calls, window) if on_device else spans.clip(window.start, window.end)
    part = window.share(spent)
    if part < (share if on_device else cpu_share):
        return
    longest = events.texts[int(np.bincount(events.name[rows], weights=events.dur[rows]).argmax())]
    name = longest.partition("#")[2].partition(".")[0] or "The optimizer"
    busy = trace.when(work)
    host = spans.clip(trace.window.start, trace.window.end)
    saved: float = host.total
    if on_device:
        saved = trace.derived(replay).saved(host=host, device=busy, device_part=_repeated(trace, work))
    calls_ = "launches" if on_device else "operators"
    per_step = len(calls) / len(rows) if on_device else len(inside) / len(rows)
    yield Finding(
        title=f"{name} updates its parameters one by one: {per_step:,.0f} {calls_} per step",
        confidence="high" if loop else "medium",
        time_us=saved / 1000,
        stretches=spans.clip(window.start, window.end) | busy,
        window=window,
        evidence=evidence(trace, rows, note="on the host")
        + (evidence(trace, work, limit=3) if on_device else evidence(trace, inside, limit=3)),
        cause="Several operators are called for each parameter.",
        fix=_at_once(name, on_device=on_device),
        linked=loop,
    )


def _repeated(trace: Trace, work: Int32) -> float:
    """The part of the kernels' time that goes to other names than the one that takes longest; 0 without kernels."""
    spent = np.bincount(trace.events.name[work], weights=trace.events.dur[work]) if len(work) else np.zeros(0)
    return 1 - float(spent.max() / spent.sum()) if spent.any() else 0.0


def _at_once(name: str, *, on_device: bool) -> str:
    """How this optimizer updates all parameters together."""
    if name in FUSED or (name == "Adagrad" and not on_device):
        return f"{name}(..., fused=True)" + (" or foreach=True." if on_device else ".")
    if name in FOREACH and on_device:
        return f"{name}(..., foreach=True)."
    return "torch.compile the optimizer's step, or write it with torch._foreach_* operators."


def _on_device(trace: Trace, rows: Int32, calls: Int32, window: Window) -> Intervals:
    """From the first to the last work of each optimizer step on the device."""
    events = trace.events
    starts, ends = [], []
    for row in rows.tolist():
        mine = calls[(events.ts[calls] >= events.ts[row]) & (events.ts[calls] < events.end[row])]
        work = trace.links.put_by(mine)
        if len(work):
            starts.append(int(events.ts[work].min()))
            ends.append(int(events.end[work].max()))
    return Intervals.union(starts, ends).clip(window.start, window.end)


@rule("B16", "zero-grad-memset", source="torch.profiler's pattern matcher, gradients set to zero", frees="all")
def zero_grad_memset(trace: Trace, *, per_step: int = 1) -> Iterator[Finding]:
    """Gradients are filled with zeros instead of being dropped.

    Sees: `Optimizer.zero_grad#` with `aten::zero_`, or `_foreach_zero_` inside, one per step or more. After each, as
    many additions to gradients as there were fills count, too.

    Costs: one write of every gradient, and in the backward pass an addition to zero where the gradient itself would do.

    Fix: `optimizer.zero_grad(set_to_none=True)`, the default since PyTorch 2.0.

    Known problems: where gradients are views of one buffer, as DDP keeps them, they must be zeroed and cannot be
    dropped.
    """
    events = trace.events
    notes = events.of(ZERO_GRAD)
    notes = notes[trace.in_steps(notes)]
    if not len(notes):
        return
    spans = events.times_of(notes)
    rows = events.of(ZERO_FILL)
    rows = rows[events.covered(rows, spans) > 0]
    if not len(rows) or len(rows) < per_step * len(notes):
        return
    additions = _additions(trace, notes, rows)
    spans = spans | events.times_of(additions)
    calls = events.rows(Kind.RUNTIME)
    calls = calls[events.covered(calls, spans) > 0]
    work = trace.links.put_by(calls)
    busy = events.times_of(work)
    window = trace.derived(steady_window)
    whole = trace.window.start, trace.window.end
    host, device = spans.clip(*whole), busy.clip(*whole)
    saved = trace.derived(replay).saved(host=host, device=device) if trace.has_gpu else host.total
    yield Finding(
        title=f"zero_grad writes zeros: {len(rows) / len(notes):,.0f} fills per step",
        confidence="high",
        time_us=saved / 1000,
        stretches=host | device,
        window=window,
        evidence=evidence(trace, notes, note="on the host")
        + evidence(trace, rows, limit=3, note="part of it")
        + evidence(trace, additions, limit=1, note="the first addition to each gradient, in the backward pass"),
        cause="set_to_none=False: the gradients are kept and filled with zeros"
        + (", and the backward pass adds to the zeros." if len(additions) else "."),
        fix="optimizer.zero_grad(set_to_none=True), which is the default from PyTorch 2.0 on.",
        linked=True,
    )


def _additions(trace: Trace, notes: Int32, fills: Int32) -> Int32:
    """The additions to gradients that were just filled: after each `zero_grad` as many as it filled."""
    events = trace.events
    rows = events.of(ADD_IN_PLACE)
    rows = rows[events.covered(rows, events.times_of(events.of(ACCUMULATE_GRADIENT))) > 0]
    rows = rows[np.argsort(events.ts[rows], kind="stable")]
    starts = np.sort(events.ts[notes])
    filled = np.bincount(np.searchsorted(starts, events.ts[fills], "right"), minlength=len(starts) + 1)
    follows = np.searchsorted(starts, events.ts[rows], "right")
    place = np.arange(len(rows)) - np.searchsorted(follows, follows)
    found: Int32 = rows[(follows > 0) & (place < filled[follows])]
    return found
