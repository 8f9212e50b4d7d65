"""Response and cascade on the CPU: a program of widen, fir, sos and narrow."""

from __future__ import annotations

from torch import Tensor

from torchfx._ops import native
from torchfx._ops.program import Program

why_missing = native.why_missing


def lti_forward(
    x: Tensor,
    taps: Tensor,
    sos: Tensor,
    taps_state: Tensor | None,
    state: Tensor | None,
    threshold: int | None,
    y: Tensor,
    taps_after: Tensor,
    after: Tensor,
) -> None:
    """Run the program; it changes states in place, so it is given the results' memory to do so."""
    for result, before in ((taps_after, taps_state), (after, state)):
        result.zero_() if before is None else result.copy_(before)
    program = Program(tuple(y.shape[:-1]), x.dtype)
    wide = program.fir(program.widen(0), taps, taps_after)
    program.finish(program.narrow(program.sos(wide, sos, after)))
    program.run(x, y, threshold)
