"""What to do about an exchange between ranks: by the collective that takes the time, and by who asks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from torchwhy.trace.derived.collectives import Collective
from torchwhy.trace.meaning.communication import DISTRIBUTED_DATA_PARALLEL, FULLY_SHARDED, FULLY_SHARDED_HOOKS
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import LEARNING
from torchwhy.trace.meaning.tensors import CLONE, EMBEDDING
from torchwhy.trace.model.trace import Trace

__all__ = ["behind_clones", "most_of", "overlap_advice"]

_PAIRS: Final = frozenset({"send", "recv", "send_recv"})
_SHARDED: Final = frozenset({"all_gather", "reduce_scatter"})

_PIPELINE: Final = (
    "Most of it is sent from rank to rank. Between the stages of a pipeline: more and smaller micro-batches, stages of "
    "equal time, an interleaved schedule (torch.distributed.pipelining); elsewhere isend and irecv ahead of time."
)
_EMBEDDINGS: Final = (
    "Most of it is all_to_all of embeddings: look up the next batch's while this one is computed (TorchRec's "
    "TrainPipelineSparseDist), place large tables so that ranks send equally much, send them in 16 bits."
)
_EXPERTS: Final = (
    "Most of it is all_to_all, as between experts or sharded tables: split the batch in two and exchange one half "
    "while the other is computed, send 16 or 8 bits, keep groups within a node, balance what each rank receives."
)
_DDP: Final = (
    "DDP overlaps with the backward pass by itself: try a larger or smaller bucket_cap_mb, static_graph=True, "
    "gradient_as_bucket_view=True; with gradient accumulation wrap all but the last round in no_sync()."
)
_FSDP: Final = (
    "FSDP: prefetch (backward_prefetch=BACKWARD_PRE, forward_prefetch=True), and wrap larger blocks, so that fewer "
    "and longer gathers hide behind longer computation."
)
_FSDP2: Final = (
    "FSDP: prefetch further ahead (set_modules_to_forward_prefetch, set_modules_to_backward_prefetch), shard larger "
    "blocks, and where memory allows it keep parameters after the forward pass (reshard_after_forward=False)."
)
_TENSOR_PARALLEL: Final = (
    "Each layer's result is summed over the ranks before the next can begin, as tensor parallelism does: fewer ranks "
    "per model, a fused all-reduce and normalisation where the server has one, the step as a CUDA graph; or two "
    "halves of the batch in turns, so that one computes while the other is exchanged."
)
_ELSE: Final = (
    "Start it earlier and wait later: async_op=True, and wait() where the result is used; or compute meanwhile."
)


def most_of(found: Sequence[Collective]) -> str:
    """The kind of collective that takes more than half of the time of some; "" where none does."""
    spent: Counter[str] = Counter()
    for one in found:
        spent["send_recv" if one.name in _PAIRS else "sharding" if one.name in _SHARDED else one.name] += one.duration
    name, longest = spent.most_common(1)[0] if spent else ("", 0)
    return name if 2 * longest > spent.total() else ""


def overlap_advice(trace: Trace, found: Sequence[Collective]) -> str:
    """How to hide or shorten these collectives, by what most of them are and by the wrapper that asks for them."""
    events, most = trace.events, most_of(found)
    if most == "send_recv":
        return _PIPELINE
    if most == "all_to_all":
        return _EMBEDDINGS if events.any_of(EMBEDDING) else _EXPERTS
    if events.any_of(FULLY_SHARDED) and most in ("sharding", ""):
        return _FSDP2 if events.any_of(FULLY_SHARDED_HOOKS) else _FSDP
    if events.any_of(DISTRIBUTED_DATA_PARALLEL) and most in ("all_reduce", ""):
        return _DDP
    if most == "all_reduce" and not events.any_of(LEARNING):
        return _TENSOR_PARALLEL
    return _ELSE


def behind_clones(trace: Trace, found: Sequence[Collective]) -> int:
    """How many collectives exchange a copy made right before them: the operator that precedes a call beside it."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    parent, lane = trace.calls.parent[rows], events.lane[rows]
    order = np.lexsort((events.ts[rows], parent, lane))
    rows, parent, lane = rows[order], parent[order], lane[order]
    cloned = np.zeros(len(events), np.bool_)
    beside = (parent[1:] == parent[:-1]) & (lane[1:] == lane[:-1])
    cloned[rows[1:]] = beside & events.are(CLONE, rows[:-1])
    return sum(bool(cloned[list(one.calls)].any()) for one in found)
