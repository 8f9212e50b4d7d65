"""The detectors on CUDA tensors: kernels.py, on the current stream; the host waits for nothing."""

from __future__ import annotations

from torch import Tensor

from torchfx._ops import triton_launch
from torchfx._ops.dynamics.composite import peaks_of
from torchfx._ops.memory import coefficient_rows, packed, pass_on, signal_rows
from torchfx._ops.triton_launch import LOG_TOLERANCE

why_missing = triton_launch.why_missing

LOG_T = {4: 5, 8: 4}
"""The logarithm of how many samples a lane holds, by their bytes: as many as registers hold."""

PROGRAMS_PER_PROCESSOR = 8
"""How many warps of the ballistics a multiprocessor has registers for."""

BLOCK = 1024
"""How many samples a program of the curve or the product takes, with `WARPS` warps."""

WARPS = 4


def ballistics_forward(x: Tensor, coefficients: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the detector in one launch. Coefficients are not checked: reading them would wait for the device."""
    if y.numel() == 0:
        pass_on(state, after)
    else:
        _follow(x, coefficients, state, y, after, LOG_TOLERANCE[y.element_size()])


def dynamics_forward(
    x: Tensor, key: Tensor | None, settings: Tensor, state: Tensor | None, link: int | None, y: Tensor, after: Tensor
) -> None:
    """Run curve, ballistics and product, a launch each, after the maxima of linked channels."""
    if y.numel() == 0:
        pass_on(state, after)
        return
    kernels = triton_launch.kernels(__package__)
    key = x if key is None else key
    key = key if link is None else peaks_of(key, link)
    *leading, time = y.shape
    asked, gain = (settings.new_empty((*after.shape, time)) for _ in range(2))
    signal, rows = signal_rows(x, leading), coefficient_rows(settings, 1, leading)
    blocks = -(-time // BLOCK)
    options = {"BLOCK": BLOCK, "num_warps": WARPS}
    triton_launch.launch(
        kernels.curve, after.numel() * blocks, x,
        *signal_rows(key, after.shape), asked, *coefficient_rows(settings, 1, after.shape), time, blocks, **options,
    )  # fmt: skip
    _follow(asked, settings[..., 6:], state, gain, after, LOG_TOLERANCE[y.element_size()])
    gains = signal_rows(gain, leading)
    triton_launch.launch(
        kernels.product, y.numel() // time * blocks, x,
        *signal, y, gains.tensor, gains.row_stride, gains.repeat, *rows, time, blocks, **options,
    )  # fmt: skip


def _follow(
    x: Tensor, coefficients: Tensor, state: Tensor | None, y: Tensor, after: Tensor, log_tolerance: float
) -> None:
    kernels = triton_launch.kernels(__package__)
    time, channels, log_t = y.shape[-1], after.numel(), LOG_T[y.element_size()]
    lanes = triton_launch.warp_size(x)
    wanted = PROGRAMS_PER_PROCESSOR * triton_launch.processors(x) // channels
    chunks, chunk_tiles = triton_launch.split(-(-time // (lanes << log_t)), wanted)
    triton_launch.launch(
        kernels.ballistics, channels * chunks, x,
        *signal_rows(x, after.shape), y, *coefficient_rows(coefficients, 1, after.shape),
        after if state is None else packed(state), after, time, chunks, chunk_tiles, log_tolerance,
        LANES=lanes, LOG_T=log_t, HAS_STATE=state is not None,
    )  # fmt: skip
