"""The network of delay lines on CUDA tensors: kernels.py, one launch on the current stream."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from torchfx._ops import triton_launch
from torchfx._ops.delay_network import composite
from torchfx._ops.memory import Rows, coefficient_rows, packed, pass_on, signal_rows

why_missing = triton_launch.why_missing

TILE = 8192
"""Lines times samples in a block: as many as registers hold, 16 in each thread."""

LOG_LANE = 4
"""The logarithm of how many samples a lane filters, one after the other."""

MOST_LINES = 64
"""Lines beyond which the matrix leaves no registers."""


def delay_network_forward(
    x: Tensor,
    delays: Sequence[int],
    system: Tensor,
    sos: Tensor | None,
    lines: Tensor | None,
    state: Tensor | None,
    filter_first: bool,
    y: Tensor,
    lines_after: Tensor,
    after: Tensor,
) -> None:
    """Run the network. Coefficients are not checked: reading them would wait for the device."""
    if y.numel() == 0:
        pass_on(lines, lines_after)
        pass_on(state, after)
        return
    count = len(delays)
    if count > MOST_LINES:
        from torchfx._ops import operators

        found = composite.delay_network_forward(operators, x, delays, system, sos, lines, state, filter_first)
        for result, values in zip((y, lines_after, after), found, strict=True):
            result.copy_(values)
        return
    kernels = triton_launch.kernels(__package__)
    from torchfx._ops.sos.kernels import TABLE

    *leading, outputs, time = y.shape
    inputs, signals = x.shape[-2], y.numel() // (outputs * time)
    signal, row_stride, time_stride, repeat = signal_rows(x, (*leading, inputs))
    matrices, rows, system_repeat = coefficient_rows(system, 2, leading)
    sections = Rows(lines_after, 1, 1) if sos is None else coefficient_rows(sos, 3, leading)
    table = lines_after.new_empty(sections.rows, count, after.shape[0], TABLE.value)
    height = 1 if count == 1 else max(16, 1 << (count - 1).bit_length())  # tl.dot takes no less
    warp = triton_launch.warp_size(x)
    block = min(*delays, TILE // height, warp << LOG_LANE)  # no line takes more lanes than a warp has
    if block >> LOG_LANE:
        block &= -1 << LOG_LANE
    log_time = max(LOG_LANE + 1, (min(block, time) - 1).bit_length())
    log_run = log_time - LOG_LANE
    triton_launch.launch(
        kernels.network, signals, x,
        signal, row_stride, time_stride, repeat, y, inputs, outputs, tuple(2 * delay + 1 for delay in delays),
        matrices, rows, system_repeat, sections.tensor, table, after.shape[0], sections.rows, sections.repeat,
        lines_after if lines is None else packed(lines), lines_after, after if state is None else packed(state), after,
        signals, time, block,
        LINES=height, TIME=1 << log_time, LOG_T=LOG_LANE, LOG_RUN=log_run, SHIFTED=y.element_size() == 8,
        FILTERED=sos is not None, FILTER_FIRST=filter_first, HAS_LINES=lines is not None, HAS_STATE=state is not None,
        num_warps=max(1, (height << log_run) // warp), num_stages=1,
    )  # fmt: skip
