"""Searches for values that aren't finite, left in from debugging."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.operators import FINITE_CHECK, FINITE_TEST, NUMBER_READ, TRUTH_OF_ALL
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["value_checks"]


@rule(
    "B50", "value-checks", source="runs of isnan, isinf or isfinite, any or all, and a read of the answer", frees="all"
)
def value_checks(trace: Trace, *, per_step: int = 4, share: float = 0.03) -> Iterator[Finding]:
    """Results are searched for NaN and infinite values in each step.

    Sees: on a processor, `aten::isnan`, `isinf` or `isfinite`, followed at once by `any` or `all`, and a read of the
    answer, as `assert not torch.isnan(x).any()` does; four times a step or more, outside of autograd. They take 3% of
    the window or more.

    Costs: each check reads the whole tensor two times, and writes a mask of its size.

    Fix: take the checks out, or run Python with -O where they are assertions. One check of the loss finds the same, a
    step later: NaN and infinite values spread to it.

    Known problems: a check that steers the computation, such as one that skips a step, must stay. On a GPU each answer
    is a wait, which other rules see.
    """
    events, window = trace.events, trace.derived(steady_window)
    if trace.has_gpu or not trace.steps_found:
        return
    rows = trace.derived(outer_operators)
    rows = rows[(events.lane[rows] == trace.main_lane) & trace.in_steps(rows)]
    rows = rows[~np.isin(rows, trace.derived(autograd).backward)]
    rows = rows[np.argsort(events.ts[rows], kind="stable")]
    if len(rows) < 3:
        return
    tests, alls, reads = (events.are(one, rows) for one in (FINITE_TEST, TRUTH_OF_ALL, NUMBER_READ))
    begins = np.flatnonzero(tests[:-2] & alls[1:-1] & reads[2:])
    inside = rows[begins]
    chosen = begins[events.begin_in(inside, window.start, window.end)]
    steps = max(1, sum(step.start >= window.start for step in trace.steps_found))
    when = Intervals.union(events.ts[rows[chosen]], events.end[rows[chosen + 2]]).clip(window.start, window.end)
    part = window.share(when)
    if len(chosen) < per_step * steps or part < share:
        return
    calls = np.unique(np.concatenate([rows[chosen + k] for k in range(3)]))
    yield Finding(
        title=f"Results are searched for NaN or infinite values {len(chosen) / steps:,.0f} times a step: "
        f"{percent(part)} of the time",
        confidence="high",
        stretches=when,
        window=window,
        evidence=evidence(trace, calls[events.are(FINITE_CHECK, calls)], limit=3),
        cause="The program tests its results for errors in every step: each check reads a whole tensor, and makes and "
        "reads a mask of its size.",
        fix="Take the checks out when the error is found (python -O leaves assertions out), and check the loss alone: "
        "NaN and infinite values spread to it. To look for their origin, torch.autograd.set_detect_anomaly(True) for "
        "some steps.",
        linked=True,
    )
