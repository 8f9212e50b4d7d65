"""Tensors turned into text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.steady_state import steady_window, typical
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.frames import FORMATTING, own_frame
from torchwhy.trace.meaning.operators import FORMATTING_BEGINS, FORMATTING_STEP, NUMBER_READ
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["TensorTexts", "tensor_texts", "tensors_to_text"]

READS: Final = 4
"""A text contains at least this number of numbers, each read separately."""


@dataclass(frozen=True)
class TensorTexts:
    """Tensors that the program turned into text.

    Attributes:
        rows: the operators called for it, all of them outermost.
        spans: from the first operator to the last of each text.
    """

    rows: Int32
    spans: Intervals


def tensor_texts(trace: Trace) -> TensorTexts:
    """Find PyTorch's code that formats tensors: by its frames, or without stacks by the operators it begins with.

    It looks for the finite numbers that aren't zero (`isfinite`, `ne`, `__and__`, `masked_select`, one after another),
    and then reads number by number.
    """
    events = trace.events
    rows = trace.derived(outer_operators)
    rows = rows[(events.lane[rows] == trace.main_lane) & trace.in_steps(rows)]
    frames = events.of(FORMATTING)
    spans = events.times_of(frames)
    if not trace.has_stacks and len(rows) >= len(FORMATTING_BEGINS):
        begins = np.ones(len(rows) - len(FORMATTING_BEGINS) + 1, np.bool_)
        for i, meaning in enumerate(FORMATTING_BEGINS):
            begins &= events.are(meaning, rows[i : i + len(begins)])
        step = events.are(FORMATTING_STEP, rows)
        reads = np.concatenate(([0], np.cumsum(events.are(NUMBER_READ, rows))))
        stops = np.append(np.flatnonzero(~step), len(rows))
        first = np.flatnonzero(begins)
        last = stops[np.searchsorted(stops, first)] - 1
        text = reads[last + 1] - reads[first] >= READS
        spans = Intervals.union(events.ts[rows[first[text]]], events.end[rows[last[text]]])
    inside = events.covered(rows, spans) > 0
    return TensorTexts(rows[inside], spans)


@rule(
    "B26",
    "tensors-to-text",
    source="the operators of torch._tensor_str, which formats tensors number by number",
    frees="host",
)
def tensors_to_text(trace: Trace, *, share: float = 0.02) -> Iterator[Finding]:
    """Tensors are turned into text.

    Sees: frames of `torch/_tensor_str.py`; without stacks the operators with which it begins (`isfinite`, `ne`,
    `__and__`, `masked_select`, in this order) and the reading of single numbers that follows: 2% of the window or more.

    Costs: PyTorch formats number by number, several operators each, up to a thousand numbers per tensor; on a GPU it
    first waits for the device. The text is made even where the logger then drops it, if the message is an f-string.

    Fix: log numbers (`loss.item()`, `x.norm()`) every N steps; give the logger the tensor and not its text
    (`logger.debug("%s", x)`), so that it is formatted only when it is written.

    Known problems: without stacks only tensors of floating-point numbers are recognised, and numbers that the program
    itself reads right after the text are counted as a part of it.
    """
    found = trace.derived(tensor_texts)
    usual = typical(trace, at_stake(trace, found.spans), trace.derived(steady_window))
    if not len(usual.when) or usual.share < share:
        return
    shown = evidence(trace, found.rows)
    line = own_frame(shown[0].stack) if shown else ""
    whole = found.spans.clip(usual.window.start, usual.window.end)
    if usual.outlier is not None:
        whole = whole - Intervals.union([usual.outlier.start], [usual.outlier.end])
    yield Finding(
        title=f"{percent(usual.share)} of the time goes to turning tensors into text, up to "
        f"{duration_ns(usual.when.lengths.max())} at a time",
        confidence="high" if trace.has_stacks else "medium",
        stretches=whole,
        window=usual.window,
        evidence=shown,
        cause="A tensor is printed, logged or put into a string"
        + (f" at {line}" if line else "")
        + ": its numbers are read and formatted one by one.",
        fix='Log numbers (.item(), .norm()) every N steps; give loggers the tensor, logger.debug("%s", x), not an '
        "f-string, so that it becomes text only when it is written.",
        linked=trace.has_stacks,
    )
