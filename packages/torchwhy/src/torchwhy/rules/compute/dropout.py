"""Dropout that is active where nothing is trained."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import forward_pass, work_of
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.annotations import OPTIMIZER
from torchwhy.trace.meaning.arithmetic import DROPOUT
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import BACKWARD, DRAWS_MASK
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["dropout_at_inference"]


@rule(
    "D32",
    "dropout-at-inference",
    source="masks drawn in dropout, without a backward pass",
    needs=("operators",),
    frees="device",
)
def dropout_at_inference(trace: Trace, *, share: float = 0.02, often: int = 3) -> Iterator[Finding]:
    """Dropout draws random masks though nothing is trained.

    Sees: calls of `aten::dropout` that draw a mask (`bernoulli_`, `native_dropout`), three or more, in a trace without
    any backward pass or optimizer: 2% of the window or more.

    Costs: random numbers for every activation. Worse, predictions are noisy, and batch normalisation uses the batch's
    statistics instead of those it learnt.

    Fix: `model.eval()` before inference, `model.train()` before training continues.

    Known problems: Monte Carlo dropout wants the noise. A window of a training program that holds no backward pass
    looks the same.
    """
    events, window = trace.events, trace.derived(steady_window)
    if events.any_of(BACKWARD | OPTIMIZER):
        return
    program = trace.derived(forward_pass)
    rows = program.rows[events.are(DROPOUT, program.rows)]
    draws = np.zeros(len(events), np.bool_)
    draws[rows] = True
    inner = events.of(DRAWS_MASK)
    inner = inner[events.kind[inner] == Kind.OPERATOR]
    around = trace.calls.nearest(draws)[inner]
    rows = np.unique(around[around >= 0])
    when = work_of(trace, rows)
    part = window.share(when)
    if len(rows) < often or part < share:
        return
    yield Finding(
        title=f"Dropout draws random masks, but nothing is trained: {percent(part)} of the time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="The model is in training mode: no backward pass and no optimizer were recorded, and dropout is active. "
        "Its predictions are random.",
        fix="Call model.eval() before inference; it switches dropout off and lets batch normalisation use what it "
        "learnt.",
    )
