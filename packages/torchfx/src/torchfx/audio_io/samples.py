"""Samples as files hold them, (frames, channels), and as this package does, (channels, frames).

NumPy moves them, not PyTorch: PyTorch would split blocks of this size among its threads, whose start costs more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torchfx.audio_io.formats import INTEGERS

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["block_frames", "from_integers", "integer_type", "interleaved", "quantised"]

# Samples converted at a time. Measured on a Xeon with 2 MiB of second-level cache: 2^15 takes up to a fifth longer for
# its calls, 2^19 up to a third longer because blocks leave the cache.
BLOCK = 1 << 17
FEW_CHANNELS = 8  # up to here interleaving channel by channel is faster than a transposed copy, up to 5 times


def block_frames(channels: int) -> int:
    """Return how many frames make a block."""
    return max(1, BLOCK // channels)


def integer_type(encoding: str) -> type[np.int16 | np.int32] | None:
    """Return the integers libsndfile takes and gives for an encoding, top-aligned; None if that isn't integers."""
    bits = INTEGERS.get(encoding)
    return None if bits is None else np.int16 if bits <= 16 else np.int32


def from_integers(frames: npt.NDArray[Any], ys: npt.NDArray[Any]) -> None:
    """Scale integers (frames, channels) to [-1, 1) in `ys`, (channels, frames) of float32 or float64."""
    scale = ys.dtype.type(2.0 ** (1 - 8 * frames.itemsize))
    np.multiply(frames.T, scale, out=ys, dtype=ys.dtype, casting="unsafe")


def quantised(ys: npt.NDArray[Any], encoding: str) -> npt.NDArray[Any]:
    """Round samples in [-1, 1] to an encoding's integers, half to even, as floats that are aligned to the top.

    Float32 is exact up to 24 bits: a product with a power of two is, and so is every integer of 24 bits.
    """
    bits = INTEGERS[encoding]
    work = np.float32 if ys.dtype == np.float32 and bits <= 24 else np.float64
    full_scale = work(2.0 ** (bits - 1))
    integers: npt.NDArray[Any] = np.multiply(ys, full_scale, dtype=work)
    np.rint(integers, out=integers)
    np.minimum(integers, full_scale - 1, out=integers)
    if bits not in {16, 32}:
        integers *= work(2.0 ** (16 - bits if bits < 16 else 32 - bits))
    return integers


def interleaved(ys: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return samples (channels, frames) as (frames, channels), contiguous, of another type."""
    frames = np.empty(ys.shape[::-1], dtype)
    if len(ys) > FEW_CHANNELS or ys.T.flags.c_contiguous:
        frames[...] = ys.T
    else:
        for channel, row in enumerate(ys):
            frames[:, channel] = row
    return frames
