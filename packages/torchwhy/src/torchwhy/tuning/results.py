"""Whether a change leaves a program's results as they are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.tuning.records import Results
from torchwhy.wording import enumeration

__all__ = ["Agreement", "agreement_of"]

ROUNDING: Final = 1e-3
"""Results that differ relatively by less agree: threads add in another order, and training magnifies that."""

UNSTABLE: Final = 0.05
"""Values that differ by more than this between runs of the unchanged program show nothing about a change."""

_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Agreement:
    """Comparison of a changed program's results with the unchanged program's.

    Attributes:
        compared: what was: some of "losses", "outputs", "parameters" and "printed text".
        largest: the largest relative difference among them, in the Euclidean norm; infinite where shapes, texts or the
            places of NaN differ; NaN where nothing could be compared.
        of: where it is.
        same: whether each difference is below `ROUNDING`, or below three times that between runs of the unchanged
            program.
        unstable: outputs that were not compared, because they differ between runs of the unchanged program.
    """

    compared: tuple[str, ...]
    largest: float
    of: str
    same: bool
    unstable: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The same in a few words."""
        if not self.compared:
            why = f"{enumeration(self.unstable)} differ from run to run" if self.unstable else "nothing was seen"
            return f"not compared: {why}"
        if self.largest == 0:
            return f"identical ({enumeration(self.compared)})"
        if math.isinf(self.largest):
            return f"different {self.of}"
        of = f"{self.of} differ by {self.largest:.2g}"
        return f"equal within rounding ({of})" if self.same else of


def agreement_of(unchanged: Sequence[Results], changed: Sequence[Results]) -> Agreement:
    """Compare the runs of a changed program with the first of the unchanged one.

    Args:
        unchanged: its runs; their differences say what chance does.
        changed: runs of the changed program, one at least.
    """
    first = unchanged[0]
    chance = _largest(first, unchanged[1:])
    unstable = tuple(name for name, size in chance.items() if size > UNSTABLE)
    found = {name: size for name, size in _largest(first, changed).items() if name not in unstable}
    if not found:
        return Agreement((), math.nan, "", True, unstable)
    same = all(size <= max(ROUNDING, 3 * chance.get(name, 0.0)) for name, size in found.items())
    of = max(found, key=lambda name: found[name])
    return Agreement(tuple(found), found[of], of, same, unstable)


def _largest(first: Results, others: Sequence[Results]) -> dict[str, float]:
    found: dict[str, float] = {}
    for other in others:
        for name, size in _differences(first, other):
            found[name] = max(size, found.get(name, 0.0))
    return found


def _differences(a: Results, b: Results) -> Iterator[tuple[str, float]]:
    """Yield what both runs have, with how much it differs."""
    if a.losses or b.losses:
        yield "losses", _relative(a.losses, b.losses)
    for place in a.outputs.keys() & b.outputs.keys():  # a step in which a module is compiled has no outputs
        alike = len(a.outputs[place]) == len(b.outputs[place])
        each = (_relative(x, y) for x, y in zip(a.outputs[place], b.outputs[place], strict=False))
        yield "outputs", max(each, default=0.0) if alike else math.inf
    if a.parameters or b.parameters:
        alike = len(a.parameters) == len(b.parameters)
        each = (_relative(x, y) for x, y in zip(a.parameters, b.parameters, strict=False))
        yield "parameters", max(each, default=0.0) if alike else math.inf
    if a.printed.strip() or b.printed.strip():
        yield "printed text", _of_texts(a.printed, b.printed)


def _relative(a: Sequence[float], b: Sequence[float]) -> float:
    """The norm of the difference over the norm of `a`; infinite where that has no meaning."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if x.shape != y.shape or not np.array_equal(np.isfinite(x), np.isfinite(y)):
        return math.inf
    finite = np.isfinite(x)
    away, size = float(np.linalg.norm(x[finite] - y[finite])), float(np.linalg.norm(x[finite]))
    return away / size if size else (math.inf if away else 0.0)


def _of_texts(a: str, b: str) -> float:
    """The largest relative difference of the numbers in two texts, less what rounding to their last digit can do."""
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return math.inf
    worst = 0.0
    for x, y in zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True):
        digit = max(_last_digit(x), _last_digit(y))
        away = max(abs(float(x) - float(y)) - 1.001 * digit, 0.0)
        worst = max(worst, away / (abs(float(x)) or digit or 1.0))
    return worst


def _last_digit(number: str) -> float:
    """What one unit of the last digit is worth.

    >>> _last_digit("0.125"), _last_digit("12"), _last_digit("1.5e3")
    (0.001, 0.0, 100.0)
    """
    mantissa, _, exponent = number.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - digits) if digits or exponent else 0.0
