"""Normalisation written out in elementwise operators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import elements
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Flags
from torchwhy.trace.meaning.arithmetic import DIVIDE, ELEMENTWISE, MEAN_OR_VARIANCE, MULTIPLY, POWER, ROOT, SUBTRACT
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, percent

__all__ = ["norm_by_hand"]

LONGEST = 14
"""Operators in one normalisation, at most."""


@rule("D31", "norm-by-hand", source="operators by shapes: mean of squares, root, scale", frees="device")
def norm_by_hand(trace: Trace, *, share: float = 0.1, least: int = 2) -> Iterator[Finding]:
    """Layers normalise with separate operators instead of a fused one.

    Sees: among 14 operators in a row a mean (or variance) over the last dimension of a tensor, a root of one number for
    each of its rows, and a division or product of the tensor by them; with a square or variance before the root. Twice
    or more, and 10% of the window or more, with the backward pass.

    Costs: each operator reads and writes the whole tensor, and keeps it for the backward pass; the fused one does so
    once.

    Fix: `F.layer_norm(x, shape, weight, bias)`, or `F.rms_norm(x, shape, weight)` where no mean is subtracted; or
    `torch.compile`.

    Known problems: statistics over other dimensions than the last are left out. What is saved is estimated by the
    tensors that needn't be read and written.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    found, centred, count = _norms(trace, program)
    rows = np.unique(np.array(found, np.int32))
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if count < least or part < share:
        return
    name = "F.layer_norm" if centred else "F.rms_norm"
    yield Finding(
        title=f"Normalisation is written out in {counted(len(rows) // count, 'operator')} each time: "
        f"{percent(part)} of the time",
        confidence="medium",
        time_us=when.total / 1000 * (1 - count / len(rows)),
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="Mean, square, root and scale are separate operators; each reads and writes the whole tensor.",
        fix=f"{name} computes it in one pass, and its backward pass in another "
        f"(nn.{'LayerNorm' if centred else 'RMSNorm'}); torch.compile fuses such operators, too.",
    )


def _norms(trace: Trace, program: ForwardPass) -> tuple[list[int], bool, int]:
    """Rows of the operators of all normalisations, whether a mean is subtracted, and how many there are."""
    events, rows = trace.events, program.rows

    def are(meaning: object) -> Flags:
        return events.are(meaning, rows)  # type: ignore[arg-type]

    means, roots, squares, scales, differences = (
        are(meaning) for meaning in (MEAN_OR_VARIANCE, ROOT, POWER | MULTIPLY, DIVIDE | MULTIPLY, SUBTRACT)
    )
    whole = are(ELEMENTWISE) | means
    found: list[int] = []
    count, centred, free = 0, False, 0
    for i in np.flatnonzero(roots).tolist():
        small = program.shapes[i][0] if program.shapes[i] else ()
        if len(small) < 2 or small[-1] != 1:
            continue
        after = next(
            (
                k
                for k in range(i + 1, min(i + 4, len(rows)))
                if scales[k] and len(program.shapes[k]) > 1 and small in program.shapes[k]
            ),
            -1,
        )
        if after < 0:
            continue
        large = max(program.shapes[after], key=elements)
        if large[:-1] != small[:-1] or large[-1] == 1:
            continue
        begin = max(i - LONGEST + 4, free)
        mine = [k for k in range(begin, after + 1) if whole[k] and {large, small} & set(program.shapes[k])]
        mean = [k for k in mine if k < i and means[k] and large in program.shapes[k]]
        square = [k for k in mine if k < i and squares[k] and large in program.shapes[k]]
        if not mean or not square:
            continue
        first = min(mean[-2] if len(mean) > 1 and mean[-2] > begin - 1 else mean[-1], square[-1])
        centred |= any(differences[k] for k in mine if k >= first)
        found += [int(rows[k]) for k in mine if k >= first]
        count, free = count + 1, after + 1
    return found, centred, count
