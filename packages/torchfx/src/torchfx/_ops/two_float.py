"""Numbers of Triton kernels for chips with few float64 units: float64, or the sum of two float32.

A pair (high, low) holds the sum of both, of which high is the nearest float32: 48 bits, with the range of float32.
Rounding errors are computed exactly: of a sum by D. E. Knuth's two-sum, of a product by one fused multiply-add. That
needs each operation as it is written: kernels are compiled with `enable_fp_fusion=False`, and nothing is reassociated.

`mul`, `add`, `fma` and the rest take float64 tensors or pairs, so that a kernel is written once for both. A pair's
results are within 2^-44 of the sum of their terms' moduli, and what lies below 1e-45 is lost.

Source: T. J. Dekker, A floating-point technique for extending the available precision, 1971; M. Joldes, J.-M. Muller,
V. Popescu, Tight and rigorous error bounds for basic building blocks of double-word arithmetic, 2017.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = [
    "add", "double", "fast_two_sum", "fma", "from_samples", "loaded", "masked_load", "mul", "nearest", "number",
    "numbers", "packed", "rough_add", "rough_fma", "samples", "select", "signed", "taken", "two_product", "two_sum",
    "unpacked", "zeros_like",
]  # fmt: skip


@triton.jit
def two_sum(a, b):
    """Return the rounded sum, and what rounding took from it."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


@triton.jit
def fast_two_sum(a, b):
    """Return the same for |a| >= |b|."""
    total = a + b
    return total, b - (total - a)


@triton.jit
def two_product(a, b):
    """Return the rounded product, and what rounding took from it."""
    product = a * b
    return product, tl.fma(a, b, -product)


@triton.jit
def number(a, PAIRS: tl.constexpr):
    """Return a float64 tensor as a number."""
    if PAIRS:
        high = a.to(tl.float32)
        return high, (a - high.to(tl.float64)).to(tl.float32)
    else:
        return a


@triton.jit
def double(a):
    """Return a number as float64."""
    if isinstance(a, tl.tensor):
        return a
    else:
        return a[0].to(tl.float64) + a[1].to(tl.float64)


@triton.jit
def zeros_like(a):
    """Return zeros shaped like a number."""
    if isinstance(a, tl.tensor):
        return tl.zeros_like(a)
    else:
        return tl.zeros_like(a[0]), tl.zeros_like(a[1])


@triton.jit
def packed(a):
    """Return a number's 64 bits as those of a float64 tensor, to be stored."""
    if isinstance(a, tl.tensor):
        return a
    else:
        high, low = a[0].to(tl.int32, bitcast=True).to(tl.int64), a[1].to(tl.uint32, bitcast=True).to(tl.int64)
        return ((high << 32) | low).to(tl.float64, bitcast=True)


@triton.jit
def unpacked(bits, PAIRS: tl.constexpr):
    """Return the number that `packed` stored."""
    if PAIRS:
        whole = bits.to(tl.int64, bitcast=True)
        high, low = (whole >> 32).to(tl.int32), whole.to(tl.int32)
        return high.to(tl.float32, bitcast=True), low.to(tl.float32, bitcast=True)
    else:
        return bits


@triton.jit
def loaded(place, PAIRS: tl.constexpr):
    """Load what `packed` stored."""
    return unpacked(tl.load(place), PAIRS)


@triton.jit
def masked_load(place, mask, PAIRS: tl.constexpr):
    """Load what `packed` stored, zero where it is masked."""
    return unpacked(tl.load(place, mask=mask, other=0.0), PAIRS)


@triton.jit
def from_samples(a, PAIRS: tl.constexpr):
    """Return samples as a number: as a pair, they must be float32."""
    if PAIRS:
        return a, tl.zeros_like(a)
    else:
        return a.to(tl.float64)


@triton.jit
def numbers(columns, PAIRS: tl.constexpr):
    """Return columns of samples as numbers."""
    found = ()
    for j in tl.static_range(len(columns)):
        found = found + (from_samples(columns[j], PAIRS),)
    return found


@triton.jit
def samples(columns):
    """Return columns of numbers, rough ones too, as tensors to be rounded to samples."""
    found = ()
    for j in tl.static_range(len(columns)):
        if isinstance(columns[j], tl.tensor):
            found = found + (columns[j],)
        else:
            found = found + (columns[j][0] + columns[j][1],)
    return found


@triton.jit
def mul(a, b):
    """Return a b."""
    if isinstance(a, tl.tensor):
        return a * b
    else:
        product, low = two_product(a[0], b[0])
        return fast_two_sum(product, tl.fma(a[1], b[0], tl.fma(a[0], b[1], low)))


@triton.jit
def rough_add(a, b):
    """Return a + b, of which high need not be the nearest float32: for what no recursion takes up again."""
    if isinstance(a, tl.tensor):
        return a + b
    else:
        total, low = two_sum(a[0], b[0])
        return total, low + (a[1] + b[1])


@triton.jit
def rough_fma(a, b, c):
    """Return a b + c, like `rough_add`."""
    if isinstance(a, tl.tensor):
        return tl.fma(a, b, c)
    else:
        product, low = two_product(a[0], b[0])
        low = tl.fma(a[1], b[0], tl.fma(a[0], b[1], low))
        total, rest = two_sum(product, c[0])
        return total, rest + (low + c[1])


@triton.jit
def nearest(a):
    """Return a rough result with the nearest float32 in high."""
    if isinstance(a, tl.tensor):
        return a
    else:
        return fast_two_sum(a[0], a[1])


@triton.jit
def add(a, b):
    """Return a + b."""
    return nearest(rough_add(a, b))


@triton.jit
def fma(a, b, c):
    """Return a b + c."""
    return nearest(rough_fma(a, b, c))


@triton.jit
def signed(k, a):
    """Return k a, where k is -1, 0 or 1."""
    if isinstance(a, tl.tensor):
        return k * a
    else:
        return k[0] * a[0], k[0] * a[1]


@triton.jit
def select(condition, a, b):
    """Return a where a condition holds, otherwise b."""
    if isinstance(a, tl.tensor):
        return tl.where(condition, a, b)
    else:
        return tl.where(condition, a[0], b[0]), tl.where(condition, a[1], b[1])


@triton.jit
def taken(a, places):
    """Return what a number holds at places."""
    if isinstance(a, tl.tensor):
        return tl.gather(a, places, 0)
    else:
        return tl.gather(a[0], places, 0), tl.gather(a[1], places, 0)
