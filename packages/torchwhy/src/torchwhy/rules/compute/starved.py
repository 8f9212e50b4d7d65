"""Operators on the processor whose threads don't get a core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.processor_time import BUSY, threads_and_cores, waited_share
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.shapes import DTYPES, WIDTH, elements
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import LOADED_BY_WORKERS
from torchwhy.trace.meaning.arithmetic import MEMORY_SPEED
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import digits, percent

__all__ = ["starved_threads"]

_PARALLEL: Final = 32_768
"""ATen splits such an operator over threads from this number of elements on (at::internal::GRAIN_SIZE)."""


@rule(
    "D21",
    "starved-threads",
    source="simple operators below 0.3 GB/s, a tenth of what one core does; half of them, and 5% of the window",
    frees="all",
)
def starved_threads(
    trace: Trace, *, gb_s: float = 0.3, usual_gb_s: float = 3.0, calls: int = 10, share: float = 0.05
) -> Iterator[Finding]:
    """Simple operators on the CPU take far longer than the processor needs for them.

    Sees: in a program without GPU, additions, multiplications, copies and similar operators on 32768 elements or more
    that read and write less than 0.3 GB/s, at least ten and half of all such calls, in 5% of the window or more. Needs
    `record_shapes=True`.

    Costs: such an operator is split over threads and ends when the last of them does; where there are more threads than
    free cores, that one first waits for its turn, milliseconds each time. At stake is the time beyond a rate of 3 GB/s.

    Fix: no more threads than cores: `torch.set_num_threads` (or OMP_NUM_THREADS) for each process, counting the
    DataLoader's workers, other ranks and the limit of a container, which PyTorch doesn't always see.

    Known problems: slow memory, as of some virtual machines, looks like threads that wait; so does a processor at a low
    clock. Silent where other programs use the processors: the thread waited for one in 10% of the recording, and the
    program has no more threads than processors, neither workers of a DataLoader nor other ranks. Then a note says so.
    """
    if not trace.derived(recorded).on_processor or _crowded_out(trace):
        return
    events = trace.events
    rows = events.of(MEMORY_SPEED)
    rows = rows[trace.in_steps(rows)]
    spent = trace.calls.self_time[rows]
    size = _bytes(trace, rows)
    counted = (size > 0) & (2 * spent >= events.dur[rows])
    rows, spent, size = rows[counted], spent[counted], size[counted]
    slow = size < gb_s * spent
    if slow.sum() < calls or 2 * slow.sum() < len(rows):
        return
    excess = np.maximum(spent[slow] - (size[slow] / usual_gb_s).astype(np.int64), 0)
    rows, size, spent = rows[slow], size[slow], spent[slow]
    whole = trace.when(rows)
    time_us = min(int(excess.sum()), whole.total) / 1000
    part = time_us / trace.window.us if trace.window.us else 0.0
    if part < share:
        return
    rate = float(np.median(size / spent))
    yield Finding(
        title=f"Simple operators run at {digits(rate, 2)} GB/s, a fraction of what one core does: {percent(part)} of "
        "the time",
        confidence="medium",
        time_us=time_us,
        window=trace.window,
        evidence=evidence(trace, rows, times=spent, note=f"at {digits(rate, 2)} GB/s"),
        cause="The operator's threads wait for a core: there are more threads than free cores, because of other "
        "programs, other ranks, the DataLoader's workers, or a container's limit. Times of all parallel operators in "
        "this trace are longer for it.",
        fix="torch.set_num_threads(n), or OMP_NUM_THREADS=n, with n the cores that are free for this process; then "
        "record again before acting on the other findings.",
    )


def _crowded_out(trace: Trace) -> bool:
    """Whether other programs take the processors, and nothing shows that this one has processes or threads too many."""
    threads, cores = threads_and_cores(trace)
    alone = (trace.info.world_size or 1) == 1 and not trace.events.any_of(LOADED_BY_WORKERS)
    return trace.derived(waited_share) >= BUSY and 0 < threads <= cores and alone


def _bytes(trace: Trace, rows: Int32) -> npt.NDArray[np.int64]:
    """What each operator reads and writes at least; 0 where it isn't large or its shapes weren't recorded."""
    events = trace.events
    pairs = np.stack((events.text_ids("Input Dims", rows), events.text_ids("Input type", rows)))
    distinct, which = np.unique(pairs, axis=1, return_inverse=True)
    sizes = [_bytes_of(*(events.texts[i] if i >= 0 else "" for i in pair)) for pair in distinct.T.tolist()]
    found: npt.NDArray[np.int64] = np.array(sizes, np.int64)[which.reshape(-1)]
    return found


def _bytes_of(dims: str, types: str) -> int:
    """The largest input, once read and once written.

    >>> _bytes_of("[[1000, 1000], []]", '["float", "Scalar"]')
    8000000
    """
    largest = 0
    for shape, kind in zip(parse_list(dims), parse_list(types), strict=False):
        if isinstance(shape, list) and shape and all(isinstance(size, int) for size in shape):
            count, width = elements(tuple(shape)), WIDTH.get(DTYPES.get(str(kind), ""), 0)
            largest = max(largest, count * width if count >= _PARALLEL else 0)
    return 2 * largest
