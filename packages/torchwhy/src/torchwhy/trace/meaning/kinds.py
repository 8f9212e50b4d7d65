"""Kinds of events, independent of the exporter, its version and its vendor's names of categories."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import Columns, distinct

__all__ = ["CALLED", "GPU_WORK", "HOST", "LONGEST_NAME", "MEMORY_EVENT", "Kind", "Meaning", "kind_of", "kinds_of"]

MEMORY_EVENT: Final = "[memory]"
"""The name of an allocation or a release."""

LONGEST_NAME: Final = 4096
"""Characters of a name that are searched for its meaning: patterns may take time that grows with the square."""


class Kind(IntEnum):
    """Kinds of events; `OTHER` takes no part in anything."""

    OTHER = 0
    OPERATOR = 1
    """A call PyTorch announces: aten::..., operators of other packages, autograd nodes."""
    ANNOTATION = 2
    """record_function on the host: ProfilerStep#, Optimizer.step#, the user's own."""
    RUNTIME = 3
    """A call of the driver or runtime library: launches, copies, synchronisation, allocation."""
    PYTHON = 4
    """A Python frame."""
    KERNEL = 5
    MEMCPY = 6
    MEMSET = 7
    DEVICE_ANNOTATION = 8
    """record_function on the device; repeats the host's names."""
    SYNC = 9
    """The reason for a wait (cuda_sync); it repeats the time of the runtime call."""
    OVERHEAD = 10
    """Work of the profiler itself."""
    MEMORY = 11
    """An allocation or a release; has no duration."""
    GRAPH_NODE = 12
    """A node of a replayed graph that is no work for the device: an event is recorded, the host is called."""
    COUNTER_RANGE = 13
    """A stretch over which hardware counters were read; kernels are not recorded then."""


GPU_WORK: Final = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME, Kind.PYTHON)
CALLED: Final = (Kind.OPERATOR, Kind.ANNOTATION)
"""Annotations of PyTorch and the program; which of the two a name is filed under has changed over the years."""


@dataclass(frozen=True)
class Meaning:
    """Events that mean one thing. `events.of(meaning)` are their rows.

    >>> Meaning(r"cudaMalloc$", Kind.RUNTIME) | Meaning(r"cudaFree$", Kind.RUNTIME)
    Meaning(pattern='cudaMalloc$|cudaFree$', kinds=(<Kind.RUNTIME: 3>,))

    Attributes:
        pattern: a regular expression that matches their names from the beginning. Flags stand in groups, "(?i:...)".
        kinds: what they may be.
    """

    pattern: str
    kinds: tuple[Kind, ...]

    def __init__(self, pattern: str, *kinds: Kind) -> None:
        object.__setattr__(self, "pattern", pattern)
        object.__setattr__(self, "kinds", kinds)

    def __or__(self, other: Meaning) -> Meaning:
        """Return the meaning of either."""
        return Meaning(f"{self.pattern}|{other.pattern}", *dict.fromkeys((*self.kinds, *other.kinds)))

    def names(self, name: str) -> bool:
        """Whether an event of this name, and of a right kind, means this."""
        return re.match(self.pattern, name) is not None


# Categories of libkineto, of PyTorch's own exporters and of the 2021 format, in lower case.
_KINDS: Final = {
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,
    "hpu_op": Kind.KERNEL,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "kernel": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,
    "collective_comm": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "cuda_sync": Kind.SYNC,
    "xpu_sync": Kind.SYNC,
    "overhead": Kind.OVERHEAD,
    "runtime": Kind.RUNTIME,
    "graph_event_node": Kind.GRAPH_NODE,
    "graph_host_node": Kind.GRAPH_NODE,
    "cuda_profiler_range": Kind.COUNTER_RANGE,
}

# What an accelerator's queue does besides running kernels: a wait for another queue is no computation.
_NO_KERNELS: Final = {
    "mtia_ccp_events": {"event_wait": Kind.SYNC, "event_record": Kind.SYNC, "dma_request": Kind.MEMCPY}
}

# Annotations that the 2021 format files under operators.
_ANNOTATIONS: Final = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")


def kind_of(category: str, name: str) -> Kind:
    """Classify a complete event.

    >>> kind_of("Operator", "ProfilerStep#5"), kind_of("privateuse1_runtime", "launch")
    (<Kind.ANNOTATION: 2>, <Kind.RUNTIME: 3>)
    """
    category = category.lower()
    if category.endswith(("_runtime", "_driver")):
        return Kind.RUNTIME
    kind = _NO_KERNELS.get(category, {}).get(name) or _KINDS.get(category, Kind.OTHER)
    if kind is Kind.OPERATOR and name.startswith(_ANNOTATIONS):
        return Kind.ANNOTATION
    return kind


def kinds_of(columns: Columns) -> npt.NDArray[np.uint8]:
    """The `Kind` of each event."""
    texts, count = columns.texts, len(columns.texts)
    meaning = np.zeros(count + 1, np.uint8)  # by category; the last entry answers for "missing"
    for i in distinct(columns.category, count).tolist():
        meaning[i] = kind_of(texts[i], "")
    kind = meaning[columns.category]
    for i in distinct(columns.category, count).tolist():
        for name in _NO_KERNELS.get(texts[i].lower(), ()):
            if name in texts:
                kind[(columns.category == i) & (columns.name == texts.index(name))] = kind_of(texts[i], name)
    kind[columns.phase != ord("X")] = Kind.OTHER
    operators = np.flatnonzero(kind == Kind.OPERATOR)
    annotates = np.zeros(count + 1, np.bool_)
    for i in distinct(columns.name[operators], count).tolist():
        annotates[i] = kind_of("cpu_op", texts[i]) is Kind.ANNOTATION
    kind[operators[annotates[columns.name[operators]]]] = Kind.ANNOTATION
    if MEMORY_EVENT in texts:  # an instant or, from the Python exporter, a complete event; the phase doesn't matter
        kind[columns.name == texts.index(MEMORY_EVENT)] = Kind.MEMORY
    return kind
