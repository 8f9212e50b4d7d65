"""Weight decay that is computed as a part of the loss."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import backward_of, differentiated, forward_pass, work_of
from torchwhy.trace.derived.shapes import values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, LINEAR, POWER, SUM
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["penalty_in_loss"]


@rule(
    "D44",
    "penalty-in-loss",
    source="squares of tensors with the shapes of weights, summed and differentiated",
    frees="device",
)
def penalty_in_loss(trace: Trace, *, share: float = 0.05, least: int = 2) -> Iterator[Finding]:
    """The squares of all weights are summed in the loss.

    Sees: `aten::pow` with exponent 2, or `aten::square`, on tensors with the shapes of two or more weights of layers,
    each with `aten::sum` of the same shape right after it, and a backward pass. They take 5% of the window or more.

    Costs: every weight is read, its square written and read, and backward computes and adds a second gradient for it,
    however small the batch is.

    Fix: `weight_decay=2 * factor` of the optimizer, which adds the same gradient (factor * w**2 has the derivative
    2 * factor * w). `AdamW` and Adam treat it differently: Adam's `weight_decay` is a penalty in the loss.

    Known problems: tensors are known by their shapes. A penalty whose value is logged is still to be computed, without
    a gradient and not in each step.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    layers = np.flatnonzero(events.are(LINEAR | CONVOLUTION, program.rows)).tolist()
    weights = {program.shapes[i][1] for i in layers if len(program.shapes[i]) > 1}
    squares = np.flatnonzero(events.are(POWER, program.rows)[:-1] & events.are(SUM, program.rows)[1:]).tolist()
    taken = [i for i in squares if program.shapes[i] and program.shapes[i + 1][:1] == program.shapes[i][:1]]
    taken = [i for i in taken if values(trace, int(program.rows[i]))[1:2] in ([], ["2"], ["2."])]
    penalised = {program.shapes[i][0] for i in taken} & weights
    if len(penalised) < least:
        return
    rows = program.rows[[k for i in taken for k in (i, i + 1)]]
    if not differentiated(trace, rows).all():
        return
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if part < share:
        return
    yield Finding(
        title=f"Squares of tensors with {len(penalised)} shapes of weights are summed in the loss: {percent(part)} of "
        "the time",
        confidence="high",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="Each of them is read, squared and written for the loss, and backward adds a second gradient for it.",
        fix="Leave it to the optimizer: weight_decay=2 * factor adds the same gradient where it updates the weights "
        "(in SGD and Adam; AdamW decays apart from the gradient).",
        linked=False,
    )
