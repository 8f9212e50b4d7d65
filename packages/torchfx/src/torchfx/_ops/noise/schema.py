"""Schema and checks of noise: random numbers that depend on a key and on their place alone.

Word n of SplitMix64 seeded with 0 is w[n]; numbers count modulo 2^64. With u[n] = 2^-53 floor(w[n] / 2^11), the number
at place p is

    rectangular   u[p + key] - 1/2, within [-1/2, 1/2)
    triangular    the sum of two such numbers, the second with key + 2^20
    differences   the rectangular number less that of the place before
    normal        normally distributed, of mean 0 and variance 1: Box and Muller's method in single precision, two
                  numbers from each word

The key places a noise among all others: two noises share numbers where their keys are less than their lengths apart.
Native and PyTorch's numbers are the same bits, whatever the instruction set.

Sources: G. L. Steele, D. Lea, C. H. Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014; G. E. P. Box,
M. E. Muller, A Note on the Generation of Random Normal Deviates, Ann. Math. Stat. 29 (2), 1958.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import broadcast_shapes, check_signal
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = ["DENSITIES", "OPERATORS"]

DENSITIES = ("normal", "rectangular", "triangular", "differences")
"""The densities, in the order of torchfx_noise_density."""

NUMBER = Operand(0)


def forward_shapes(x: Tensor, gain: Tensor, place: Tensor, key: int, density: str, rounded: bool) -> Shapes:
    """Return shape and dtype of the output."""
    check_signal(x)
    if gain.dtype is not torch.float64:
        raise ArgumentTypeError(f"gain must be float64, got {gain.dtype}")
    check_place(place)
    for name, values in (("gain", gain), ("place", place)):
        if values.device != x.device:
            raise ArgumentError(f"{name} must be on the signal's device {x.device}, got {values.device}")
    if density not in DENSITIES:
        raise ArgumentError(f"density must be one of {', '.join(DENSITIES)}, got {density!r}")
    leading = broadcast_shapes(x=x.shape[:-1], gain=gain.shape, place=place.shape)
    return (((*leading, x.shape[-1]), x.dtype),)


def noise_magnitude_shapes(place: Tensor, time: int, key: int) -> Shapes:
    """Return shape and dtype of the magnitudes."""
    check_place(place)
    if time < 0:
        raise ArgumentError(f"time must be >= 0, got {time}")
    return ((place.shape, torch.float64),)


def magnitude_shapes(x: Tensor) -> Shapes:
    """Return shape and dtype of the magnitudes."""
    check_signal(x)
    return ((x.shape[:-1], torch.float64),)


def check_place(place: Tensor) -> None:
    """Raise unless places are whole numbers."""
    if place.dtype is not torch.int64:
        raise ArgumentTypeError(f"place must be int64, got {place.dtype}")


OPERATORS = (
    Operator(
        "noise_forward(Tensor x, Tensor gain, Tensor place, int key, str density, bool rounded=False) -> Tensor",
        {"x": Operand(1), "gain": NUMBER, "place": NUMBER},
        (Operand(1),),
        forward_shapes,
    ),
    Operator(
        "noise_magnitude(Tensor place, SymInt time, int key) -> Tensor",
        {"place": NUMBER},
        (NUMBER,),
        noise_magnitude_shapes,
        frozenset((torch.int64,)),
    ),
    Operator("magnitude(Tensor x) -> Tensor", {"x": Operand(1)}, (NUMBER,), magnitude_shapes),
)
