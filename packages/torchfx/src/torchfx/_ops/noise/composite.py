"""Noise in plain PyTorch, on any device that has float64, in the operations of csrc/noise/kernels.cpp."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

GOLDEN, SECOND_KEY, BLOCK = 0x9E3779B97F4A7C15, 1 << 20, 32

LOG = (-0.499999832, 0.333339316, -0.250025804, 0.199635335, -0.16551856, 0.148831935, -0.144263857, 0.0898034271)
SIN = (0.999999996, -0.16666658, 0.00833305106, -0.000198090753, 2.60522492e-06)
COS = (0.999999953, -0.499999053, 0.0416635847, -0.00138537043, 2.31539317e-05)
"""(log(1 + f) - f) / f^2, sin(sqrt(z)) / sqrt(z) and cos(sqrt(z)): see csrc/noise/kernels.cpp."""

Operators = Mapping[str, Callable[..., Any]]


def noise_forward(
    operators: Operators, x: Tensor, gain: Tensor, place: Tensor, key: int, density: str, rounded: bool
) -> Tensor:
    """Add noise, or round after it."""
    numbers, gain = _noise(place, x.shape[-1], key, density), gain[..., None]
    if rounded:
        return (gain * torch.round(x.double() * (1 / gain) + numbers)).to(x.dtype)
    return (x.double() + gain * numbers).to(x.dtype)


def noise_magnitude(operators: Operators, place: Tensor, time: int, key: int) -> Tensor:
    """Measure normal numbers."""
    return magnitude(operators, _noise(place, time, key, "normal"))


def magnitude(operators: Operators, x: Tensor) -> Tensor:
    """Return the root of the sum of squares."""
    found: Tensor = torch.linalg.vector_norm(x, dim=-1, dtype=torch.float64)
    return found


def _noise(place: Tensor, time: int, key: int, density: str) -> Tensor:
    at = place[..., None] + torch.arange(time, device=place.device)
    if density == "normal":
        return _normal(at, key).double()
    numbers = _uniform(at + key) - 0.5
    if density == "triangular":
        numbers = numbers + _uniform(at + (key + SECOND_KEY)) - 0.5
    elif density == "differences":
        numbers = numbers - (_uniform(at - 1 + key) - 0.5)
    return numbers


def _uniform(n: Tensor) -> Tensor:
    return _shifted(_word(n), 11).double() * 2.0**-53


def _normal(at: Tensor, key: int) -> Tensor:
    half = BLOCK // 2
    word = _word(_shifted(at, 5) * half + at % half + key)
    # The radius sqrt(-2 log(u)), u = v / 2^31 = 2^e (1 + f).
    m, e = torch.frexp(_shifted(word, 33).float() + 0.5)
    low = m < math.sqrt(0.5)
    f, e = torch.where(low, 2 * m, m) - 1, (torch.where(low, e - 1, e) - 31).float()
    log_u = (f * f * _polynomial(LOG, f) + f) + e * 0.693147181
    # PyTorch's roots of float32 are not always the nearest numbers.
    radius = torch.sqrt(log_u.double() * -2).float()
    # An angle within [-pi/2, pi/2], and the bit that is left as the cosine's sign.
    angle = ((word << 32) >> 32).float() * 7.3145906e-10
    cosine = radius * _polynomial(COS, angle * angle)
    cosine = torch.where((word >> 32) % 2 == 1, -cosine, cosine)
    return torch.where(at % BLOCK < half, cosine, radius * (angle * _polynomial(SIN, angle * angle)))


def _polynomial(terms: tuple[float, ...], v: Tensor) -> Tensor:
    found = v * terms[-1] + terms[-2]
    for term in terms[-3::-1]:
        found = found * v + term
    return found


def _word(n: Tensor) -> Tensor:
    z = n * _signed(GOLDEN)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ _shifted(z, shift)) * _signed(factor)
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, by: int) -> Tensor:
    """Shift right as if there were no sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
