"""Checks of numbers a person passes in: one message shape, naming the argument, its range and the value."""

from __future__ import annotations

import math
import sys
from numbers import Integral, Real
from typing import Any

from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError

__all__ = ["callers_level", "finite_number", "number_text", "sample_rate", "settled", "whole_number"]

PLAIN = frozenset((float, int))  # asked for first: asking an abstract class takes half a microsecond


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
    torch = sys.modules.get("torch")
    if torch is None or not torch.compiler.is_dynamo_compiling():
        return number
    from torch.fx.experimental.symbolic_shapes import guard_scalar

    return guard_scalar(number)


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


def sample_rate(value: Any) -> float:
    """Return a sample rate in Hz, or raise; whole rates come back as int so that they print as people write them."""
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
    """Return the stack level, seen from the caller of this function, of the first frame outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("torchfx."):
        frame, level = frame.f_back, level + 1
    return level


def _is_scalar_array(value: Any) -> bool:
    return getattr(value, "ndim", None) == 0 and getattr(getattr(value, "dtype", None), "kind", "") in tuple("fiu")


def _shown(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"
