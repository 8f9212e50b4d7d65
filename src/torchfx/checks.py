"""Checks of numbers a person passes in: one message shape, naming the argument, its range and the value."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError

__all__ = ["finite_number", "positive_number", "sample_rate", "whole_number"]


def finite_number(name: str, value: Any, unit: str = "") -> float:
    """Return `value` as a float, or raise: it must be a finite real number (or a tensor holding one)."""
    if isinstance(value, bool) or not (isinstance(value, Real) or _is_scalar_tensor(value)):
        raise ArgumentTypeError(f"{name} must be a number{_in(unit)}, got {_shown(value)}")
    if getattr(value, "requires_grad", False):
        raise ArgumentError(f"{name} cannot be learned here, got a tensor that requires a gradient; pass a number")
    number = float(value)
    if not math.isfinite(number):
        raise ArgumentError(f"{name} must be finite, got {number}{_space(unit)}")
    return number


def positive_number(name: str, value: Any, unit: str = "") -> float:
    """Return `value` as a float, or raise: it must be finite and above zero."""
    number = finite_number(name, value, unit)
    if number <= 0:
        raise ArgumentError(f"{name} must lie in (0, inf){_space(unit)}, got {number:g}{_space(unit)}")
    return number


def whole_number(name: str, value: Any, minimum: int) -> int:
    """Return `value` as an int, or raise: it must be a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentTypeError(f"{name} must be a whole number >= {minimum}, got {_shown(value)}")
    if value < minimum:
        raise ArgumentError(f"{name} must be a whole number >= {minimum}, got {value}")
    return int(value)


def sample_rate(value: Any) -> float:
    """Return a sample rate in Hz, or raise; whole rates come back as int so that they print as people write them."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentTypeError(f"fs must be a sample rate in Hz, got {_shown(value)}")
    rate = float(value)
    if not (math.isfinite(rate) and rate > 0):
        raise SampleRateError(f"fs must lie in (0, inf) Hz, got {value}")
    return int(rate) if rate.is_integer() else rate


def _is_scalar_tensor(value: Any) -> bool:
    if getattr(value, "ndim", None) != 0 or not hasattr(value, "dtype"):
        return False
    kind = getattr(value.dtype, "kind", None)  # NumPy's
    return kind in "fiu" if kind else not value.is_complex()


def _in(unit: str) -> str:
    return f" in {unit}" if unit else ""


def _space(unit: str) -> str:
    return f" {unit}" if unit else ""


def _shown(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"
