"""Kernels that do one operation of `_ops/two_float.py` on each element."""

import triton
import triton.language as tl

from torchfx._ops import two_float


@triton.jit
def sums(a, b, total, rest, N: tl.constexpr):
    """Write a + b by `two_sum`."""
    i = tl.arange(0, N)
    high, low = two_float.two_sum(tl.load(a + i), tl.load(b + i))
    tl.store(total + i, high)
    tl.store(rest + i, low)


@triton.jit
def ordered_sums(a, b, total, rest, N: tl.constexpr):
    """Write a + b by `fast_two_sum`."""
    i = tl.arange(0, N)
    high, low = two_float.fast_two_sum(tl.load(a + i), tl.load(b + i))
    tl.store(total + i, high)
    tl.store(rest + i, low)


@triton.jit
def products(a, b, product, rest, N: tl.constexpr):
    """Write a b by `two_product`."""
    i = tl.arange(0, N)
    high, low = two_float.two_product(tl.load(a + i), tl.load(b + i))
    tl.store(product + i, high)
    tl.store(rest + i, low)


@triton.jit
def numbers(a, b, c, of_fma, of_mul, of_add, same, N: tl.constexpr):
    """Write what `fma`, `mul` and `add` find for pairs of float64 numbers, as float64; and a after being packed."""
    i = tl.arange(0, N)
    x, y = two_float.number(tl.load(a + i), True), two_float.number(tl.load(b + i), True)
    z = two_float.number(tl.load(c + i), True)
    tl.store(of_fma + i, two_float.double(two_float.fma(x, y, z)))
    tl.store(of_mul + i, two_float.double(two_float.mul(x, y)))
    tl.store(of_add + i, two_float.double(two_float.add(x, z)))
    tl.store(same + i, two_float.packed(x))
    tl.debug_barrier()
    tl.store(same + i, two_float.double(two_float.loaded(same + i, True)))
