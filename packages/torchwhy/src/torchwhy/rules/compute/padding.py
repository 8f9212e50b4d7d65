"""Sequences that are padded to more than the longest of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import shapes, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.arithmetic import PADDING
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["padded_to_fixed_length"]


@rule("D37", "padded-to-maximum", source="lengths before and after padding", frees="device")
def padded_to_fixed_length(
    trace: Trace, *, longest: float = 0.6, often: int = 16, lengths: int = 4, share: float = 0.1
) -> Iterator[Finding]:
    """Sequences are padded to a fixed length that is much longer than all of them.

    Sees: 16 calls or more of `F.pad` that bring tensors of four different lengths or more to the same one, the longest
    of them at most 60% of it; and operators of the model that read tensors with a dimension of that length. These take
    10% of the window or more, with their backward pass.

    Costs: the model computes the padding as if it were data; attention does so with its square.

    Fix: pad each batch to its own longest sequence (`torch.nn.utils.rnn.pad_sequence` in the collate function), and put
    sequences of similar length together.

    Known problems: compiled code and CUDA graphs need fixed shapes; a few lengths will do (multiples of 64). Longer
    sequences may come in steps that weren't recorded.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    pads = events.of(PADDING)
    before, after = _lengths(trace, pads)
    known = after > 0
    pads, before, after = pads[known], before[known], after[known]
    if len(pads) < often or len(np.unique(after)) != 1 or len(np.unique(before)) < lengths:
        return
    full, most = int(after[0]), int(before.max())
    if most > longest * full:
        return
    rows = program.rows[np.array([any(full in shape for shape in taken) for taken in program.shapes], np.bool_)]
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not len(rows) or part < share:
        return
    yield Finding(
        title=f"Sequences are padded to {full:,}, the longest has {most:,}: their operators take {percent(part)} "
        "of the time",
        confidence="medium",
        time_us=when.total / 1000 * (1 - most / full),
        stretches=when,
        window=window,
        evidence=(*evidence(trace, pads, limit=1), *evidence(trace, rows, limit=4)),
        cause=f"At least {percent(1 - most / full)} of each sequence is padding, which the model computes like data.",
        fix="Pad each batch to its own longest sequence: torch.nn.utils.rnn.pad_sequence in the collate function; for "
        "compiled code to the next of a few lengths.",
    )


def _lengths(trace: Trace, pads: Int32) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    """The last dimension before and after each call that pads it; 0 where it isn't known or nothing is padded."""
    found = np.zeros((2, len(pads)), np.int64)
    for i, row in enumerate(pads.tolist()):
        taken, given = shapes(trace, row), values(trace, row)
        amounts = given[1].strip("[]").split(",") if len(given) > 1 else []
        if taken and len(amounts) == 2 and all(one.strip().isdigit() for one in amounts):
            found[:, i] = taken[0][-1], taken[0][-1] + sum(map(int, amounts))
    return found[0], found[1]
