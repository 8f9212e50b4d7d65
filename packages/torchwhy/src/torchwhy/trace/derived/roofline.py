"""How long the device needs at best for what kernels compute, by their operators' shapes, and how long they took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from torchwhy.trace.derived.convolutions import convolution_output
from torchwhy.trace.derived.device_peaks import used_peaks
from torchwhy.trace.derived.flops import flops_of, moved_by
from torchwhy.trace.derived.kernels import kernels_of
from torchwhy.trace.derived.shapes import WIDTH, dtypes, shapes, tensors, values
from torchwhy.trace.file.columns import Int32, Int64, numbered
from torchwhy.trace.meaning.arithmetic import ATTENTION_IN_PARTS, CONVOLUTION_BACKWARD, FUSED_EXPERTS, operation_of
from torchwhy.trace.meaning.kernels import kind_of_operation
from torchwhy.trace.model.events import parse_list

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace
    from torchwhy.trace.peaks import Peaks

__all__ = ["ATTAINABLE", "LATENCY", "PRODUCTS", "Group", "kinds_and_owners", "roofline_groups"]

ATTAINABLE: Final = 0.7
"""Share of the roofline that good kernels reach: cuBLAS in bfloat16 on H100 and A100, PyTorch's elementwise kernels."""

LATENCY: Final = 5000
"""Nanoseconds; a call with less to do than that at `ATTAINABLE` takes as long as its kernel needs to begin and end."""

PRODUCTS: Final = ("GEMM", "attention", "convolution", "MoE")
"""Kinds of kernels whose arithmetic the shapes of their operators show."""


@dataclass(frozen=True)
class Group:
    """Calls of one operator with the same shapes, types and values.

    Attributes:
        operators: their rows.
        kernels: rows of what they launched that does their work.
        name: of the operator.
        kind: of its kernels.
        spent: nanoseconds of those.
        work: arithmetic operations of all calls; 0 where few are needed for each byte.
        moved: bytes that all calls read and write at least.
        dtype: what they compute in.
        ideal: nanoseconds the device would need at best; 0 where its peaks aren't known.
        bound: "compute" or "memory", by what takes longer at best, or "latency" with too little to do for either; ""
            where the peaks aren't known.
    """

    operators: Int32
    kernels: Int32
    name: str
    kind: str
    spent: int
    work: float
    moved: float
    dtype: str
    ideal: float = 0.0
    bound: str = ""

    @property
    def reached(self) -> float:
        """The part of the roofline that they reach."""
        return self.ideal / self.spent if self.spent else 1.0

    @property
    def gain(self) -> float:
        """Nanoseconds less, if they came to the `ATTAINABLE` part of the roofline, or to `LATENCY`."""
        attainable = max(self.ideal / ATTAINABLE, LATENCY * len(self.operators))
        return max(self.spent - attainable, 0.0) if self.ideal else 0.0


def kinds_and_owners(trace: Trace) -> tuple[tuple[str, ...], Int32]:
    """The kind of each of `kernels_of(trace)`, and the operator whose shapes show how much it has to do, or -1.

    That is the one that launched it, or around it the one that computes attention in parts, or a mixture of experts.
    """
    events, kernels = trace.events, trace.derived(kernels_of)
    kinds = np.array([name.kind for name in kernels.names], object)[kernels.which]
    owner = kernels.operator.copy()
    for meaning, kind in ((ATTENTION_IN_PARTS, "attention"), (FUSED_EXPERTS, "MoE")):
        wanted = np.zeros(len(events) + 1, np.bool_)
        wanted[events.of(meaning)] = True
        if wanted.any():
            around = np.append(trace.calls.nearest(wanted[:-1]), np.int32(-1))[kernels.operator]
            owner = np.where(around >= 0, around, owner)
            kinds[around >= 0] = kind
    operators, which = np.unique(owner, return_inverse=True)
    own = _kinds_of(trace, operators)[which.reshape(-1)]
    computes = np.isin(kinds, PRODUCTS) & np.isin(own, PRODUCTS)  # convolutions computed as matrix products
    kinds[computes] = own[computes]
    return tuple(kinds.tolist()), owner.astype(np.int32)


def _kinds_of(trace: Trace, operators: Int32) -> npt.NDArray[np.object_]:
    """What each operator computes, by its name; "" of -1."""
    names, which = numbered(
        np.where(operators >= 0, trace.events.name[operators], np.int32(-1)), len(trace.events.texts)
    )
    return np.array([_kind_of(trace.events.texts[name]) if name >= 0 else "" for name in names.tolist()], object)[which]


def _kind_of(name: str) -> str:
    if ATTENTION_IN_PARTS.names(name):
        return "attention"
    return "MoE" if FUSED_EXPERTS.names(name) else kind_of_operation(operation_of(name)) if operation_of(name) else ""


def roofline_groups(trace: Trace) -> tuple[Group, ...]:
    """Operators with known shapes that launched kernels; `trace.derived(roofline_groups)` makes them once."""
    events, kernels, peaks = trace.events, trace.derived(kernels_of), used_peaks(trace)
    every, owner = trace.derived(kinds_and_owners)
    kinds = np.array(every, object)
    at = np.flatnonzero((owner >= 0) & (kernels.spent > 0))
    if not len(at) or not events.has("Input Dims"):
        return ()
    operators, which = np.unique(owner[at], return_inverse=True)
    own = _kinds_of(trace, operators)[which.reshape(-1)]
    counted = (own == "") | (own == kinds[at])
    at = at[counted]
    if not len(at):
        return ()
    operators, which = np.unique(owner[at], return_inverse=True)
    which = which.reshape(-1)
    first = np.zeros(len(operators), np.int64)
    first[which[::-1]] = at[::-1]
    texts = [events.text_ids(key, operators) for key in ("Input Dims", "Input type", "Concrete Inputs")]
    names = kernels.which[first]
    keys = np.stack((events.name[operators], *texts, names))
    distinct, group = np.unique(keys, axis=1, return_inverse=True)
    order = np.argsort(group.reshape(-1)[which], kind="stable")
    bounds = np.searchsorted(group.reshape(-1)[which][order], np.arange(distinct.shape[1] + 1))
    found = []
    for i in np.flatnonzero(distinct[1] >= 0).tolist():
        members = at[order[bounds[i] : bounds[i + 1]]]
        made = _group(trace, members, owner, str(kinds[members[0]]), peaks)
        found += [made] if made else []
    return tuple(found)


def _group(trace: Trace, members: Int64, owner: Int32, kind: str, peaks: Peaks | None) -> Group | None:
    kernels = trace.derived(kernels_of)
    operators, launched = np.unique(owner[members], return_counts=True)
    row, count = int(operators[0]), len(operators)
    name, typed = trace.name(row), [dtype for dtype in dtypes(trace, row) if dtype]
    if not typed:
        return None
    work = moved = 0.0
    dtype = kernels.names[int(kernels.which[members[0]])].dtype or typed[0]
    if kind in PRODUCTS:
        needed = _needed(trace, row, int(launched.min()))
        if needed is None:
            return None
        dtype = typed[0] if WIDTH.get(typed[0], 0) == 1 else dtype  # the kernel's name may show the result's type
        work, moved = needed[0] * (2 if dtype == "float4" else 1), needed[1] * WIDTH[typed[0]]
    else:
        moved = moved_by(name, tensors(trace, row), values(trace, row))
    if not moved:
        return None
    rows, spent = kernels.rows[members], int(kernels.spent[members].sum())
    made = Group(operators, rows, name, kind, spent, count * work, count * moved, dtype)
    rate = peaks.flops(dtype) if peaks else 0.0
    if peaks is None or (work and not rate):
        return made
    computing, moving = (work / rate * 1e9 if work else 0.0), moved / peaks.bandwidth
    bound = "compute" if computing > moving else "memory"
    bound = "latency" if max(computing, moving) < LATENCY * ATTAINABLE else bound
    return Group(
        operators, rows, name, kind, spent, made.work, made.moved, dtype, count * max(computing, moving), bound
    )


def _needed(trace: Trace, row: int, launched: int) -> tuple[float, float] | None:
    name, given = trace.name(row), values(trace, row)
    output = convolution_output(trace, row) if operation_of(name) == "convolution" else ()
    gradients = min(launched, 2)
    if CONVOLUTION_BACKWARD.names(name) and given:
        mask = parse_list(given[-1].lower())  # which of input, weight and bias get a gradient
        gradients = sum(one is True for one in mask[:2]) or gradients
    return flops_of(name, shapes(trace, row), output, gradients, given)
