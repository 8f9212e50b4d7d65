"""What to do about an exchange between ranks: by the collectives that take the time, and by who asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from torchwhy.trace.derived.collectives import Collective
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.meaning.communication import (
    DISTRIBUTED_DATA_PARALLEL,
    FULLY_SHARDED,
    FULLY_SHARDED_HOOKS,
    WHOLE_FORWARD,
    WRAPPER,
)
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import LEARNING
from torchwhy.trace.meaning.tensors import CLONE, TABLES
from torchwhy.trace.model.trace import Trace

__all__ = ["COME_TOGETHER", "START_EARLIER", "behind_clones", "fewer", "most_of", "overlap_advice"]

_PAIRS: Final = frozenset({"send", "recv", "send_recv"})
_SHARDED: Final = frozenset({"all_gather", "reduce_scatter"})

COME_TOGETHER: Final = (
    "Find the rank that comes late, and why: record every rank into one folder and run torchwhy explain on the folder. "
    "Then give the ranks equal work. Smaller messages or smaller types don't help."
)
"""The advice if most of the time is waiting."""

_PIPELINE: Final = (
    "Between the stages of a pipeline: more and smaller micro-batches, stages that take equal time, an interleaved "
    "schedule (torch.distributed.pipelining). Elsewhere: isend and irecv, started before the data is needed."
)
_TABLES: Final = (
    "Look up the next batch's embeddings while this batch is computed (TorchRec's TrainPipelineSparseDist), place "
    "large tables so that all ranks send equally much, send the embeddings in 16 bits."
)
_EXPERTS: Final = (
    "Split the batch in two and exchange one half while the other is computed, send 16 or 8 bits, keep groups within "
    "a node, and balance the amount that each rank receives."
)
_DDP: Final = (
    "DDP overlaps with the backward pass by itself: try a larger or smaller bucket_cap_mb, static_graph=True, "
    "gradient_as_bucket_view=True; with gradient accumulation wrap all rounds but the last in no_sync()."
)
_FSDP: Final = (
    "FSDP: prefetch (backward_prefetch=BACKWARD_PRE, forward_prefetch=True), and wrap larger blocks, so that fewer "
    "and longer gathers run under longer computation."
)
_FSDP2: Final = (
    "FSDP: prefetch further ahead (set_modules_to_forward_prefetch, set_modules_to_backward_prefetch), shard larger "
    "blocks, and where memory allows it keep parameters after the forward pass (reshard_after_forward=False)."
)
_TENSOR_PARALLEL: Final = (
    "Without a backward pass, all-reduces belong to tensor parallelism: the next operator needs each result. Use "
    "fewer ranks per model, a fused all-reduce and normalization, or a CUDA graph; or compute one half of the batch "
    "while the other is exchanged."
)
START_EARLIER: Final = (
    "Start the exchange earlier and wait for it later: async_op=True, and wait() where the result is used."
)


def most_of(found: Sequence[Collective], times: Int64) -> str:
    """The kind of collective that takes more than half of some time; "" where no kind does.

    Args:
        found: collectives.
        times: the time that counts of each, nanoseconds.
    """
    spent: dict[str, int] = {}
    for one, time in zip(found, times.tolist(), strict=True):
        kind = "send_recv" if one.name in _PAIRS else "sharding" if one.name in _SHARDED else one.name
        spent[kind] = spent.get(kind, 0) + time
    kind = max(spent, key=lambda name: spent[name], default="")
    return kind if 2 * spent.get(kind, 0) > sum(spent.values()) else ""


def overlap_advice(trace: Trace, found: Sequence[Collective], times: Int64) -> str:
    """How to hide or shorten collectives: by the kind that takes most of the time, and by who asks for that kind.

    Args:
        trace: the program.
        found: its collectives.
        times: the time that counts of each, nanoseconds.
    """
    most = most_of(found, times)
    events = trace.events
    if most == "send_recv":
        return _PIPELINE
    if most == "all_to_all":
        return _TABLES if events.any_of(TABLES) else _EXPERTS
    wrapped = not _within_the_model(trace, found, times)
    if most == "sharding" and wrapped and events.any_of(FULLY_SHARDED):
        return _FSDP2 if events.any_of(FULLY_SHARDED_HOOKS) else _FSDP
    if most == "all_reduce" and wrapped and events.any_of(DISTRIBUTED_DATA_PARALLEL):
        return _DDP
    if most == "all_reduce" and not events.any_of(LEARNING):
        return _TENSOR_PARALLEL
    return START_EARLIER


def _within_the_model(trace: Trace, found: Sequence[Collective], times: Int64) -> bool:
    """Whether the model asks for most of them in its forward pass, and not DDP or FSDP around it."""
    events, own = trace.events, 0
    for one, time in zip(found, times.tolist(), strict=True):
        host = one.launch if one.launch >= 0 else one.row
        around = [above for above in trace.ancestors(host) if events.are(WRAPPER, [above])[0]]
        own += time if around and events.are(WHOLE_FORWARD, around[:1])[0] else 0
    return 2 * own > int(times.sum())


def behind_clones(trace: Trace, found: Sequence[Collective]) -> int:
    """How many collectives exchange a copy: the operator before the call, under the same parent, makes one."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    parent, lane = trace.calls.parent[rows], events.lane[rows]
    order = np.lexsort((events.ts[rows], parent, lane))
    rows, parent, lane = rows[order], parent[order], lane[order]
    cloned = np.zeros(len(events), np.bool_)
    beside = (parent[1:] == parent[:-1]) & (lane[1:] == lane[:-1])
    cloned[rows[1:]] = beside & events.are(CLONE, rows[:-1])
    return sum(bool(cloned[list(one.calls)].any()) for one in found)


def fewer(trace: Trace, found: Sequence[Collective], times: Int64, *, cloned: bool) -> str:
    """How to make fewer and larger collectives of many small ones.

    Args:
        trace: the program.
        found: its small collectives.
        times: the time that counts of each, nanoseconds.
        cloned: whether most of them exchange a copy.
    """
    events, most = trace.events, most_of(found, times)
    if most == "all_to_all":
        return "Exchange all tables, or all experts' tokens, in one message with their sizes (all_to_all_single)."
    if most == "sharding" and events.any_of(FULLY_SHARDED):
        return "Shard larger blocks with FSDP: each wrapped module is gathered and reduced by itself."
    if most == "all_reduce" and not cloned and events.any_of(DISTRIBUTED_DATA_PARALLEL):
        return "Set a larger bucket_cap_mb, so that DDP puts more gradients into each all-reduce."
    return (
        "Exchange one flat tensor instead of each tensor by itself: torch.cat of the flattened tensors, or the "
        "_coalesced functions of torch.distributed, in place instead of on a clone. For gradients "
        "DistributedDataParallel does that."
    )
