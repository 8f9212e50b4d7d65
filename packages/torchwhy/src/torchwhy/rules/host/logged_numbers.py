"""Numbers computed from tensors one by one, for logging."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.tensor_loops import tensor_loops
from torchwhy.rules.host.tensor_texts import tensor_texts
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import forward_pass
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.stack_samples import stack_samples
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.arithmetic import READS_ALL
from torchwhy.trace.meaning.frames import HOOK_CALL
from torchwhy.trace.meaning.operators import FINITE_CHECK, NUMBER_READ
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["logged_numbers"]

STAGES = 2
"""Operators between a tensor and its number, at most, such as `isnan` and `any`."""


@rule("B38", "numbers-one-by-one", source="a reduction and a read number for each of many tensors", frees="host")
def logged_numbers(trace: Trace, *, per_step: int = 20, share: float = 0.05) -> Iterator[Finding]:
    """Many tensors are each reduced to a number that is read.

    Sees: in each step 20 numbers or more that are read (`aten::item`, `is_nonzero`), each directly after a norm, mean,
    minimum, spread or a search for values that aren't finite, over a tensor; together, with the Python in between, 5%
    of the window or more. On a GPU only the part during which the device waits. Loops over a tensor have rules of their
    own.

    Costs: some operators and a read for each parameter or layer in every step; on a GPU the host waits for each number.

    Fix: do it every N steps. Norms of all gradients at once: `torch.nn.utils.get_total_norm`, `clip_grad_norm_` or
    `torch._foreach_norm`; other numbers with `torch.stack(numbers).tolist()`.

    Known problems: what the numbers are for isn't recorded. A check that stops training in time may be worth it.
    """
    steps = trace.steps_found
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    if not steps:
        return
    rows, reads = _rounds(trace, program.rows, program.shapes)
    if len(reads) < per_step * len(np.unique(trace.step_of(reads))) or len(np.unique(trace.step_of(reads))) < 2:
        return
    # Where the next number follows, Python's part of the loop lies between.
    begins, ends = events.ts[rows[:, 0]], events.end[rows[:, 1]]
    place = np.searchsorted(events.ts[program.rows], np.stack((begins, events.ts[rows[:, 1]])))
    follows = (place[0, 1:] == place[1, :-1] + 1) & (begins[1:] - ends[:-1] <= ends[:-1] - begins[:-1])
    spans = Intervals.union(begins, np.append(np.where(follows, begins[1:], ends[:-1]), ends[-1:]))
    spans = spans - trace.derived(tensor_loops).spans - trace.derived(tensor_texts).spans
    spans = spans.clip(window.start, window.end)
    part = window.share(at_stake(trace, spans))
    if part < share:
        return
    seen = np.concatenate((rows[:, 0], reads))
    hooks = _in_hooks(trace, spans)
    yield Finding(
        title=f"{len(reads) / len(np.unique(trace.step_of(reads))):,.0f} tensors per step are each reduced to a number "
        f"that is read: {percent(part)} of the time",
        confidence="medium",
        stretches=spans,
        window=window,
        evidence=evidence(trace, seen),
        cause="Hooks of modules compute norms, means or checks of each layer in every step."
        if hooks
        else "Norms, means or checks of each tensor are computed and read one after another, as for a log.",
        fix="Take the hooks out, or let them work every N steps; several numbers are read at once with "
        "torch.stack(numbers).tolist()."
        if hooks
        else "Do it every N steps. Norms of all parameters take a few operators at once: torch._foreach_norm, "
        "torch.nn.utils.get_total_norm, clip_grad_norm_; other numbers torch.stack(numbers).tolist().",
    )


def _rounds(trace: Trace, rows: Int32, shapes: list[list[tuple[int, ...]]]) -> tuple[Int32, Int32]:
    """First and last operator of each number that is read after reductions of a tensor, and the reads."""
    events = trace.events
    reduces = events.are(READS_ALL | FINITE_CHECK, rows)
    found = []
    for i in np.flatnonzero(events.are(NUMBER_READ, rows)).tolist():
        first = i
        while first > 0 and i - first < STAGES and reduces[first - 1]:
            first -= 1
        if first < i and any(max(shape) > 1 for shape in shapes[first] if shape):
            found.append((int(rows[first]), int(rows[i])))
    pairs = np.array(found, np.int32).reshape(-1, 2)
    return pairs, pairs[:, 1]


def _in_hooks(trace: Trace, when: Intervals) -> bool:
    """Whether samples of the stacks show modules that call hooks, for half of these stretches or more."""
    samples = trace.derived(stack_samples)
    inside = samples.inside(when).tolist()
    called = [i for i in inside if any(HOOK_CALL.names(text) for text in samples.texts(i))]
    return len(called) * 2 >= len(inside) > 0
