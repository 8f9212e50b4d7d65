"""Weights that are computed at each access."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import backward_of
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.frames import PARAMETRIZATION
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["parametrization_uncached"]


@rule("D28", "parametrization-uncached", source="PyTorch's documentation of `parametrize.cached`", frees="host")
def parametrization_uncached(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """A parametrized weight is computed several times per step.

    Sees: Python frames of the same `ParametrizationList` twice or more in a step, so a recording with stacks. All but
    the first of a step take 5% of the window or more, with the backward pass of their operators; on a GPU only the part
    during which the device waits.

    Costs: `torch.nn.utils.parametrize` computes the weight, such as an orthogonal matrix, at every access, and
    differentiates each of them.

    Fix: `with parametrize.cached():` around the loop or the forward pass; the weight is computed once inside.

    Known problems: passes of a step between which an optimizer changes the weight, as in a GAN, need it twice.
    """
    events, window = trace.events, trace.derived(steady_window)
    rows = events.of(PARAMETRIZATION)
    rows = rows[trace.in_steps(rows) & events.begin_in(rows, window.start, window.end)]
    if not len(rows):
        return
    _, first, count = np.unique(
        np.stack((events.name[rows], trace.step_of(rows))), axis=1, return_index=True, return_counts=True
    )
    again = np.ones(len(rows), np.bool_)
    again[first] = False
    times = int(count.max())
    repeated = rows[again]
    when = events.times_of(repeated) | events.times_of(backward_of(trace, _operators(trace, repeated)))
    part = window.share(when)
    if times < 2 or part < share:
        return
    yield Finding(
        title=f"A parametrized weight is computed up to {times} times per step: {percent(part)} of the time",
        confidence="high",
        stretches=when,
        window=window,
        evidence=evidence(trace, repeated),
        cause="torch.nn.utils.parametrize computes a weight at each access, and the backward pass goes through each "
        "computation.",
        fix="Wrap the loop or the forward pass in `with torch.nn.utils.parametrize.cached():`.",
        linked=True,
    )


def _operators(trace: Trace, frames: Int32) -> Int32:
    """The operators in some frames."""
    rows = trace.events.rows(Kind.OPERATOR)
    found: Int32 = rows[trace.frames.within(rows, frames)]
    return found
