"""Checks of numbers a person passes in: one message shape, naming the argument, its range and the value."""

from __future__ import annotations

import math
import re
import sys
from numbers import Integral, Real
from typing import Any

from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError

__all__ = [
    "NUMBER",
    "UNIT_FACTORS",
    "callers_level",
    "finite_number",
    "number_text",
    "quantity",
    "sample_rate",
    "settled",
    "whole_number",
]

NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-zA-Z%]*)")
UNIT_FACTORS: dict[str, dict[str, float]] = {
    "Hz": {"Hz": 1.0, "kHz": 1000.0, "k": 1000.0},
    "ms": {"ms": 1.0, "s": 1000.0},
    "s": {"s": 1.0, "ms": 1e-3},
    "": {"": 1.0, "%": 1e-2},
}
"""The units that a text may have, and their factors, by a parameter's unit. Any other unit stands for itself alone."""

PLAIN = frozenset((float, int))  # compared first: a check of an abstract class takes half a microsecond


def finite_number(name: str, value: Any, unit: str = "") -> float:
    """Return `value` as a float, or raise: it must be a finite real number (or an array holding one)."""
    if type(value) not in PLAIN and (
        isinstance(value, bool) or not (isinstance(value, Real) or _is_scalar_array(value))
    ):
        raise ArgumentTypeError(f"{name} must be a number{f' in {unit}' if unit else ''}, got {_shown(value)}")
    try:
        number = settled(float(value))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ArgumentError(f"{name} must be finite, got {number}{f' {unit}' if unit else ''}")
    return number


def settled(number: float) -> float:
    """Return the number; one that `torch.compile` follows as a variable becomes a constant of what is compiled.

    Designs compute with numbers as Python does, which the compiler cannot follow.
    """
    if not _has_torch():
        return number
    import torch

    if not torch.compiler.is_dynamo_compiling():
        return number
    from torch.fx.experimental.symbolic_shapes import guard_scalar

    return guard_scalar(number)


def _has_torch() -> bool:
    """Return whether PyTorch is loaded, which a number alone does not need."""
    return "torch" in sys.modules


# As `torch.compiler.assume_constant_result` does. A compiler that followed this function would look at each module of
# `sys.modules`, and fail if it loads another part of the compiler meanwhile.
_has_torch._dynamo_marked_constant = True  # type: ignore[attr-defined]


def whole_number(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int, or raise: it must be a whole number of at least `minimum`, at most `maximum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentTypeError(f"{name} must be a whole number >= {minimum}, got {_shown(value)}")
    number = int(value)
    if number < minimum:
        raise ArgumentError(f"{name} must be a whole number >= {minimum}, got {number}")
    if maximum is not None and number > maximum:
        raise ArgumentError(f"{name} must be a whole number <= {maximum}, got {number}")
    return number


def quantity(name: str, text: str, unit: str) -> tuple[float, str]:
    """Return the number that a text such as "1.5kHz" means in a unit, and the unit the text carries, "" for none.

    Args:
        name: the parameter's, for the error.
        text: a number, and a unit of the same quantity unless the number is in `unit`; letter case does not matter.
        unit: "Hz", "ms", "s", "dB", ..., or "" for a plain number.

    Raises:
        ArgumentError: no number, or another unit.

    Examples:
        >>> quantity("cutoff", "1.5 kHz", "Hz"), quantity("fs", "16k", "Hz"), quantity("mix", "29%", "")
        ((1500.0, 'kHz'), (16000, 'k'), (0.29, '%'))
        >>> quantity("cutoff", "3dB", "Hz")
        Traceback (most recent call last):
        torchfx.errors.ArgumentError: cutoff must be a number in Hz or kHz, got '3dB'
    """
    scales = UNIT_FACTORS.get(unit, {unit: 1.0})
    found = NUMBER.fullmatch(text.strip())
    written = found[2].lower() if found else "?"
    carried = next((each for each in scales if each.lower() == written), None)
    if found is None or (written and carried is None):
        units = f" in {' or '.join(each for each in scales if each != 'k')}" if unit else ""
        raise ArgumentError(f"{name} must be a number{units}, got {text!r}")
    factor = scales[carried or unit]
    value = float(found[1]) * factor if factor >= 1 else float(found[1]) / round(1 / factor)  # 57 * 0.01 is not 0.57
    return (int(value) if value.is_integer() and "." not in found[1] else value), carried or ""


def sample_rate(value: Any) -> float:
    """Return a sample rate in Hz, or raise; whole rates come back as int so that they print as people write them.

    Args:
        value: a number, or a text such as "44.1kHz".
    """
    if isinstance(value, str):
        value = quantity("fs", value, "Hz")[0]
    if type(value) not in PLAIN and (isinstance(value, bool) or not isinstance(value, Real)):
        raise ArgumentTypeError(f"fs must be a sample rate in Hz, got {_shown(value)}")
    try:
        rate = settled(float(value))
    except OverflowError:
        rate = math.inf
    if not (math.isfinite(rate) and rate > 0):
        raise SampleRateError(f"fs must lie in (0, inf) Hz, got {value}")
    return int(rate) if rate.is_integer() else rate


def number_text(value: float) -> str:
    """Return a number as people write it, with all the digits it has: 80, 0.1, 22049.9999999."""
    value = settled(value)
    return (
        str(int(value))
        if math.isfinite(value) and float(value).is_integer() and abs(value) < 1e15
        else repr(float(value))
    )


def callers_level() -> int:
    """Return the stack level, relative to the caller of this function, of the first frame outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("torchfx."):
        frame, level = frame.f_back, level + 1
    return level


def _is_scalar_array(value: Any) -> bool:
    return getattr(value, "ndim", None) == 0 and getattr(getattr(value, "dtype", None), "kind", "") in tuple("fiu")


def _shown(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"
