"""Layouts that are converted back and forth, and a bias that is taken away again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import about_kernels
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.kernels import kernels_of
from torchwhy.trace.derived.ownership import operators_of_work
from torchwhy.trace.derived.shapes import shapes
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.arithmetic import ADD_IN_PLACE, BATCH_NORM, CONVOLUTION
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["conv_bias_before_bn", "layout_conversion"]


@rule(
    "D6",
    "layout-conversion",
    source="`nchwToNhwc` and similar names of kernels; 5% of the kernels' time",
    needs={"gpu"},
    frees="device",
)
def layout_conversion(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Tensors are converted between memory layouts around convolutions.

    Sees: kernels named for a conversion between NCHW and NHWC or a transposition by cuDNN or MIOpen, from 5% of the
    kernels' time on.

    Costs: each reads and writes a whole tensor and computes nothing.

    Fix: `model.to(memory_format=torch.channels_last)` and the inputs likewise, once.

    Known problems: libraries convert inside fused kernels as well, whose names do not show it.
    """
    kernels = trace.derived(kernels_of)
    chosen = kernels.that(lambda name: name.operation == "layout" and name.library != "PyTorch")
    part = kernels.share(chosen)
    if part < share:
        return
    rows = kernels.rows[chosen]
    yield from about_kernels(
        trace,
        rows,
        title=f"{percent(part)} of the compute kernels' time goes to conversions of memory layout",
        cause="The convolutions' kernels want channels last, the tensors have channels first.",
        fix="Convert once: model.to(memory_format=torch.channels_last) and the same for its inputs; then look whether "
        "an operator in between turns them back.",
    )


@rule(
    "D7",
    "conv-bias-before-bn",
    source="torch.profiler's pattern matcher, convolution with bias before batch norm",
    frees="device",
)
def conv_bias_before_bn(trace: Trace, *, layers: float = 1, share: float = 0.002) -> Iterator[Finding]:
    """Convolutions add a bias that the batch normalization after them removes.

    Sees: `aten::conv2d` (or 1d, 3d) with a bias, directly followed on its thread by `aten::batch_norm`, as shapes of
    inputs show (`record_shapes=True`).

    Costs: one kernel that reads and writes the output, and in training the gradient of the bias.

    Fix: `bias=False` in the convolution; for inference fold the normalization into the weights.

    Known problems: a bias that another layer reads too is needed; only batch normalisation directly after it on the
    same thread is seen.
    """
    events = trace.events
    convolutions = events.of(CONVOLUTION)
    norms = events.of(BATCH_NORM)
    if not len(convolutions) or not len(norms) or not events.has("Input Dims"):
        return
    followed = convolutions[_followed_by(trace, convolutions, norms)]
    pairs = [row for row in followed.tolist() if len(shapes(trace, row)) > 2]
    added = np.array([child for row in pairs for child in _bias(trace, row)], np.int32)
    if len(pairs) < layers or not len(added):
        return
    rows = trace.links.work[np.isin(trace.derived(operators_of_work), added)] if trace.has_gpu else added
    spent = trace.when(rows)
    part = trace.window.share(spent)
    if part < share:
        return
    yield Finding(
        title=f"{len(pairs)} convolutions add a bias that batch normalization removes: {percent(part)} of the time",
        confidence="high",
        stretches=spent,
        window=trace.window,
        evidence=evidence(trace, np.array(pairs, np.int32)),
        cause="Batch normalization subtracts the mean, and with it any constant added before.",
        fix="Make the convolution with bias=False; for inference fold the normalization into the convolution "
        "(torch.nn.utils.fuse_conv_bn_eval).",
        linked=True,
    )


def _followed_by(trace: Trace, rows: Int32, norms: Int32) -> npt.NDArray[np.bool_]:
    """Whether the next operator on each one's thread is one of `norms`, and beside it."""
    events, parent, operators = trace.events, trace.calls.parent, trace.events.rows(Kind.OPERATOR)
    found = np.zeros(len(rows), np.bool_)
    for lane in np.unique(events.lane[rows]):
        here, on_lane = events.lane[rows] == lane, operators[events.lane[operators] == lane]
        place = np.searchsorted(events.ts[on_lane], events.end[rows[here]])
        following = on_lane[np.minimum(place, len(on_lane) - 1)]
        beside = (place < len(on_lane)) & (parent[following] == parent[rows[here]])
        found[here] = beside & np.isin(following, norms)
    return found


def _bias(trace: Trace, row: int) -> list[int]:
    """The addition of the bias within a convolution; empty where the convolution's kernel adds it."""
    inside = trace.calls.inside(row)
    added: list[int] = inside[trace.events.are(ADD_IN_PLACE, inside)].tolist()
    return added
