"""The state-space operators on CUDA tensors: kernels.py, on the current stream; the host waits for nothing."""

from __future__ import annotations

import math

from torch import Tensor

from torchfx._ops import triton_launch
from torchfx._ops.memory import coefficient_rows, packed, pass_on, signal_rows
from torchfx._ops.state_space import reference

__all__ = ["MOST_SCANNED", "saturated_forward", "scan", "state_space_backward", "state_space_forward"]

why_missing = triton_launch.why_missing

MOST_SCANNED = 2
"""States up to which composed maps fit in registers."""

WARPS = 4
LANE_SAMPLES = {4: 4, 8: 2}
"""A tile of the scan: its warps, and the samples in each lane by their bytes, which one load fetches."""

PROGRAMS_PER_PROCESSOR = {4: 3, 8: 4}
"""How many of these a multiprocessor has registers for, by the bytes of a sample (tests/ops/test_triton_varying.py)."""

FEWEST_CHUNKS = 3
"""Chunks of a channel are read twice: fewer of them save no time."""


def state_space_forward(x: Tensor, system: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the system. It is not checked: reading it would wait for the device."""
    if y.numel() == 0:
        pass_on(state, after)
    elif system.shape[-1] - 1 <= MOST_SCANNED:
        scan(x, system, 3, state, y, after)
    else:
        _sequential(x, system, None, state, y, after)


def saturated_forward(
    x: Tensor, system: Tensor, feedback: Tensor, drive: Tensor, state: Tensor | None, y: Tensor, after: Tensor
) -> None:
    """Run the system with its saturating amplifier. It is not checked: reading it would wait for the device."""
    if y.numel() == 0:
        pass_on(state, after)
    else:
        _sequential(x, system, (feedback, drive), state, y, after)


state_space_backward = reference.state_space_backward
"""By the definition, whose recursions run through `state_space_forward`."""


def scan(x: Tensor, coefficients: Tensor, core: int, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run a system of one or two states; one launch, or two where channels alone don't fill the device.

    Args:
        x, state, y, after: as in `state_space_forward`; y is not empty.
        coefficients: a system, or with core 2 the coefficients (..., times, states) of an all-pole filter.
        core: how many trailing dimensions are the coefficients' own.
    """
    kernels = triton_launch.kernels(__package__)
    *leading, time = y.shape
    channels, states, times = y.numel() // time, after.shape[-1], coefficients.shape[-core]
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    values, rows, m_repeat = coefficient_rows(coefficients, core, leading)
    tile = triton_launch.warp_size(x) * WARPS * LANE_SAMPLES[y.element_size()]
    tiles = -(-time // tile)
    wanted = min(PROGRAMS_PER_PROCESSOR[y.element_size()] * triton_launch.processors(x) // channels, tile)
    chunk_tiles = tiles if wanted < FEWEST_CHUNKS else -(-tiles // wanted)
    chunks = -(-tiles // chunk_tiles)
    maps = after.new_empty(channels * chunks * states * (states + 1))
    hold, step = (1, 0) if times == 1 else (time // times, math.prod(coefficients.shape[1 - core :]))
    own = (values, hold, step, times, rows, m_repeat)
    options = {"STATES": states, "COMPANION": core == 2, "TILE": tile, "num_warps": WARPS}
    if chunks > 1:
        triton_launch.launch(
            kernels.chunk_maps, channels * chunks, x,
            signal, row_stride, time_stride, repeat, *own, maps, time, chunks, chunk_tiles, **options,
        )  # fmt: skip
    triton_launch.launch(
        kernels.scanned, channels * chunks, x,
        signal, row_stride, time_stride, repeat, y, *own, after if state is None else packed(state), after, maps, time,
        chunks, chunk_tiles, HAS_STATE=state is not None, HAS_MAPS=chunks > 1, **options,
    )  # fmt: skip


def _sequential(
    x: Tensor, system: Tensor, loop: tuple[Tensor, Tensor] | None, state: Tensor | None, y: Tensor, after: Tensor
) -> None:
    """Run whole channels, one in each lane; `loop` is feedback and drive."""
    kernels = triton_launch.kernels(__package__)
    *leading, time = y.shape
    channels, times, lanes = y.numel() // time, system.shape[-3], triton_launch.warp_size(x)
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    matrices, rows, m_repeat = coefficient_rows(system, 3, leading)
    feedback, drive = (after, after) if loop is None else (packed(values.expand(leading)) for values in loop)
    triton_launch.launch(
        kernels.sequential, -(-channels // lanes), x,
        signal, row_stride, time_stride, repeat, y, matrices, time // times, times, rows, m_repeat,
        feedback, drive, after if state is None else packed(state), after, channels, time,
        STATES=after.shape[-1], SATURATED=loop is not None, HAS_STATE=state is not None,
        NEWTON_STEPS=reference.NEWTON_STEPS, LANES=lanes,
    )  # fmt: skip
