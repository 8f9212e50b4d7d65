"""Activations that are written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.needless import needless
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, forward_pass
from torchwhy.trace.derived.shapes import values
from torchwhy.trace.meaning.arithmetic import ELEMENTWISE, ERROR_FUNCTION, HYPERBOLIC_TANGENT, MULTIPLY, POWER
from torchwhy.trace.model.trace import Trace

__all__ = ["gelu_by_hand"]

AROUND: Final = 5
"""At most this number of operators before and after the tangent or the error function belongs to a GELU."""

SPARED: Final = 0.5
"""The share of their time that one operator saves instead of eight: a small language model took 1.16 times as long with
them, and they took 28% of its time on one core."""


@rule("D70", "gelu-by-hand", source="a cube and a tangent, or an error function, of one shape in a row", frees="device")
def gelu_by_hand(trace: Trace, *, share: float = 0.05, least: int = 4) -> Iterator[Finding]:
    """A GELU is computed by an operator for each of its steps.

    Sees: `tanh` with a third power of a tensor of its shape among the five operators before it, or `erf`, and
    elementwise operators of that shape around it: four or more, with a product of two such tensors after them. They
    take 5% of the window or more, with their backward pass.

    Costs: each operator reads and writes the whole tensor, and in training keeps it. At stake is half of their time:
    one operator reads once and writes once.

    Fix: `F.gelu(x)`, or `F.gelu(x, approximate="tanh")` for the formula with the tangent.

    Known problems: another function of the tangent of a cube looks like it.
    """
    program = trace.derived(forward_pass)
    found: set[int] = set()
    approximate = False
    for i in np.flatnonzero(trace.events.are(HYPERBOLIC_TANGENT | ERROR_FUNCTION, program.rows)).tolist():
        tangent = bool(trace.events.are(HYPERBOLIC_TANGENT, program.rows[i : i + 1])[0])
        rows, multiplied = _steps(trace, program, i)
        if len(rows) >= least and multiplied and (not tangent or any(_cubes(trace, row) for row in rows)):
            found.update(rows)
            approximate |= tangent
    call = 'F.gelu(x, approximate="tanh")' if approximate else "F.gelu(x)"
    yield from needless(
        trace,
        dict.fromkeys(found, SPARED),
        share,
        "A GELU is computed by an operator for each of its steps",
        confidence="high",
        cause="Each step reads and writes the whole tensor; F.gelu takes one pass over it.",
        fix=f"{call} computes the same formula in one operator.",
    )


def _steps(trace: Trace, program: ForwardPass, i: int) -> tuple[list[int], bool]:
    """Elementwise operators of one shape in a row around one, and whether a product of it comes after."""
    shape, found, multiplied = program.shapes[i][:1], [int(program.rows[i])], False
    for step in (-1, 1):
        k = i + step
        while 0 <= k < len(program.rows) and abs(k - i) <= AROUND and program.step[k] == program.step[i]:
            if program.shapes[k][:1] != shape or not trace.events.are(ELEMENTWISE, program.rows[k : k + 1])[0]:
                break
            found.append(int(program.rows[k]))
            product = bool(trace.events.are(MULTIPLY, program.rows[k : k + 1])[0])
            multiplied |= product and step > 0 and program.shapes[k][:2] == shape * 2
            k += step
    return found, multiplied


def _cubes(trace: Trace, row: int) -> bool:
    """Whether an operator takes a third power."""
    given = values(trace, row)
    return bool(trace.events.are(POWER, [row])[0]) and len(given) > 1 and given[1] in ("3", "3.", "3.0")
