"""Code that the operators' Triton kernels share: tiles of neighbouring samples, one row for each lane."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["lanes_of", "tile_of", "widened"]


@triton.jit
def lanes_of(tile, LANES: tl.constexpr, LOG_T: tl.constexpr):
    """Split a tile (LANES, 2^LOG_T) into its columns (LANES,): a lane's samples, one after the other."""
    parts = (tl.reshape(tile, (LANES, 2**LOG_T)),)
    for level in tl.static_range(LOG_T):
        low, high = (), ()
        for i in tl.static_range(2**level):
            even, odd = tl.split(tl.reshape(parts[i], (LANES, 2 ** (LOG_T - level - 1), 2)))
            low, high = low + (even,), high + (odd,)
        parts = low + high
    columns = ()
    for i in tl.static_range(2**LOG_T):
        columns = columns + (tl.reshape(parts[i], (LANES,)),)
    return columns


@triton.jit
def widened(columns):
    """Return columns in float64."""
    wide = ()
    for j in tl.static_range(len(columns)):
        wide = wide + (columns[j].to(tl.float64),)
    return wide


@triton.jit
def tile_of(columns, dtype: tl.constexpr, LANES: tl.constexpr, LOG_T: tl.constexpr):
    """Join what `lanes_of` split."""
    parts = ()
    for i in tl.static_range(2**LOG_T):
        parts = parts + (tl.reshape(columns[i].to(dtype), (LANES, 1)),)
    for level in tl.static_range(LOG_T - 1, -1, -1):
        joined = ()
        for i in tl.static_range(2**level):
            pair = tl.join(parts[i], parts[i + 2**level])
            joined = joined + (tl.reshape(pair, (LANES, 2 ** (LOG_T - level))),)
        parts = joined
    return parts[0]
