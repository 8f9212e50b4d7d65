"""Experts that compute every token, though a router chooses few of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape, elements, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import LINEAR, TOP_K
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["all_experts"]


@rule("D54", "all-experts", source="operations by shapes: tokens x experts against tokens x k", frees="device")
def all_experts(trace: Trace, *, share: float = 0.05, least: int = 4) -> Iterator[Finding]:
    """Every token goes through all experts of a mixture, and few of them count.

    Sees: `aten::topk` that chooses k of E columns, at most half of them, and after it, up to the next one, layers with
    equal shapes of weight, E or a multiple of them, that read as many rows as it does. There are 4 experts or more,
    each with two layers or more. These layers take 5% of the window or more, with their backward pass. Needs recorded
    shapes and arguments.

    Costs: a token's other E - k experts are computed and multiplied by zero. At stake is that part.

    Fix: gather each expert's own tokens (`torch.where(index == e)`, or tokens sorted by expert), compute these alone,
    and add them back with `index_add`; `torch._grouped_mm` computes all experts in one call.

    Known problems: with few tokens all experts at once may be faster on a device, as gathering takes more calls.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    events = trace.events
    routers = np.flatnonzero(events.are(TOP_K, program.rows)).tolist()
    found: dict[int, float] = {}
    sizes = (0, 0)
    for i, end in pairwise([*routers, len(program.rows)]):
        k, experts = _choice(trace, program, i)
        if experts < least or not 0 < 2 * k <= experts:
            continue
        layers = _layers(trace, program, i, end)
        every = [places for places in layers.values() if len(places) % experts == 0]
        if sum(map(len, every)) >= 2 * experts:
            sizes = (k, experts)
            found.update(dict.fromkeys(program.rows[sorted(chain.from_iterable(every))].tolist(), 1 - k / experts))
    rows = np.array(list(found), np.int32)
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not len(rows) or part < share:
        return
    saved = float(np.average(list(found.values()), weights=np.maximum(events.dur[rows], 1)))
    yield Finding(
        title=f"Each token goes through all {sizes[1]} experts, though {sizes[0]} count: {percent(part)} of the time",
        confidence="medium",
        time_us=when.total / 1000 * saved,
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause=f"The router chooses {sizes[0]} of {sizes[1]}, and each expert's layers read as many rows as the router.",
        fix="Give each expert its own tokens: rows, place = torch.where(index == e), expert(tokens[rows]), and "
        "out.index_add(0, rows, ...).",
        linked=False,
    )


def _choice(trace: Trace, program: ForwardPass, i: int) -> tuple[int, int]:
    """How many columns are chosen, and of how many; zeros where the trace doesn't show it, or rows are chosen."""
    scores, given = program.shapes[i][:1], values(trace, int(program.rows[i]))
    if not scores or len(given) < 3 or not given[1].isdigit() or given[2] not in ("-1", str(len(scores[0]) - 1)):
        return 0, 0
    return int(given[1]), scores[0][-1]


def _layers(trace: Trace, program: ForwardPass, i: int, end: int) -> dict[Shape, list[int]]:
    """The layers after a router that read as many rows as it, by the shapes of their weights."""
    rows, found = elements(program.shapes[i][0][:-1]), dict[Shape, list[int]]()
    for k in (i + 1 + np.flatnonzero(trace.events.are(LINEAR, program.rows[i + 1 : end]))).tolist():
        taken = program.shapes[k]
        if program.step[k] == program.step[i] and len(taken) > 1 and elements(taken[0][:-1]) == rows:
            found.setdefault(taken[1], []).append(k)
    return found
