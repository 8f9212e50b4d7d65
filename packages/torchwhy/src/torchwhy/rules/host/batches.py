"""Waiting for the next batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.python_lines import called_there, host_work, line_there, main_calls, python_lines, spent_below
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.host_activity import batch_waits, outer_operators, worker_starts
from torchwhy.trace.derived.idle import at_stake, idle_time
from torchwhy.trace.derived.launches import device_known
from torchwhy.trace.derived.run_times import run_times
from torchwhy.trace.derived.stack_samples import stack_samples
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import DATALOADER, LOADED_IN_PROCESS, NEXT_BATCH
from torchwhy.trace.meaning.frames import COLLATE_CALL, LOADER_FRAME, code_of, line_of
from torchwhy.trace.meaning.host_work import HostWork
from torchwhy.trace.meaning.operators import DRAWS_ORDER
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["dataloader_single_process", "dataloader_wait"]

HANDED_OVER_NS: Final = 500_000
"""Time of a worker process to hand over a small batch, measured on a processor of 2025: 0.5 to 0.7 ms."""

MANY: Final = 500
"""Operators for a batch that take milliseconds, however little each computes."""

FOR_EACH_NS: Final = 50_000
"""An operator on a few numbers, with the Python code around it, takes less; where more passes, other work takes it."""

_ROWS: Final = (
    "The data set is a TensorDataset, whose tensors lie in memory already: the DataLoader takes each row by itself and "
    "joins the rows to a batch."
)
_INDEX: Final = (
    "Index whole batches, in this process: for rows in torch.randperm(len(x)).split(64): x[rows], y[rows]. With "
    "a DataLoader: sampler=BatchSampler(RandomSampler(data), 64, drop_last=False), batch_size=None, num_workers=0."
)


@rule(
    "B9",
    "dataloader-wait",
    source="torch.profiler's `enumerate(DataLoader)#` annotation; 5% as in the TensorBoard plugin",
    frees="host",
)
def dataloader_wait(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """The program waits for its next batch.

    Sees: the time in `enumerate(DataLoader)#...__next__`, or in the program's own annotation around getting a batch
    ("load_data", "wait_for_batch", Lightning's "train_dataloader_next"), during which no device has work, as a share of
    the window. On a machine without GPU all of that time counts.

    Costs: while the loop waits for data, nothing is computed. Loading that overlaps with the device's work is free and
    isn't counted.

    Fix: load in worker processes (`num_workers`), keep them alive (`persistent_workers`), let them run ahead
    (`prefetch_factor`), pin the batches; or make a sample cheaper: decode once, cache, augment on the device. Where
    samples of the stack show a known kind of work, the fix fits this kind. Batches that are made in half a
    millisecond gain nothing from workers, and neither do rows of a `TensorDataset`: index a batch in one step.

    Known problems: a step that waits for the last of several batches made ahead waits for all of them; over a few steps
    the share may be far off. The start of the workers is seen only where a pass over the data begins in the window.
    """
    rows, waited, lost = _waits(trace)
    window = trace.derived(steady_window)
    part = window.share(lost)
    if not len(rows) or part < share:
        return
    events = trace.events
    single = bool(events.are(LOADED_IN_PROCESS, rows).any())
    starts = trace.derived(worker_starts).clip(window.start, window.end)
    seen = evidence(trace, rows, times=waited)
    called = ""
    if single:
        calls = main_calls(trace, lost)
        work = host_work(trace, lost, batch=True)
        called = called_there(trace, lost, calls[~events.are(LOADER_FRAME, calls)])
        called = called or (f"; samples show {work[0].shows}" if work and work[1] else "")
        cause, fix = _in_own_process(trace, rows, lost, work)
        seen += (*python_lines(trace, lost), *_asked_at(trace, lost))
    elif starts.total * 2 > lost.total:
        cause = (
            "Each pass over the DataLoader ends its worker processes and starts new ones: no batch is ready until they "
            "run."
        )
        fix = "DataLoader(..., persistent_workers=True) keeps them from one pass to the next."
        seen += (
            Evidence(
                "from the last batch of a pass to the first of the next",
                len(starts),
                starts.total / 1000,
                starts.longest_start / 1000,
            ),
        )
    elif not events.are(DATALOADER, rows).any():
        cause = "The program's annotation says so; what runs inside it isn't recorded."
        fix = "Get the next batch in another process or thread while a step runs, as DataLoader(num_workers=4) does."
    elif _takes_rows(trace):
        cause, fix = f"{_ROWS} The worker processes hand every batch over, which takes longer than to index it.", _INDEX
    else:
        cause, fix = _of_slow_workers(waited)
    idle = " while no device had work" if trace.has_gpu else ""
    yield Finding(
        title=f"{percent(part)} of the time goes to waiting for the next batch{idle}{called}",
        confidence="high",
        stretches=trace.derived(batch_waits).clip(window.start, window.end),
        window=window,
        evidence=seen,
        cause=cause,
        fix=fix,
        linked=single,
    )


@rule(
    "B10",
    "dataloader-single-process",
    source="torch.profiler's pattern matcher, synchronised DataLoader",
    frees="nothing",
)
def dataloader_single_process(trace: Trace, *, share: float = 0.005) -> Iterator[Finding]:
    """The DataLoader works in the program's own process.

    Sees: `_SingleProcessDataLoaderIter` in the name of the annotation, with a measurable wait that is still too short
    for dataloader-wait.

    Costs: little now; it grows with the dataset's cost per sample, since nothing is loaded while a step runs.

    Fix: `num_workers=4` or so, if a sample costs more than a fraction of a millisecond.

    Known problems: for data that lies in memory already, workers cost more than they save.
    """
    rows, waited, _ = _waits(trace)
    single = trace.events.are(LOADED_IN_PROCESS, rows)
    rows, waited = rows[single], waited[single]
    window = trace.derived(steady_window)
    lost = trace.events.times_of(rows).clip(window.start, window.end)
    lost = at_stake(trace, lost)
    part = window.share(lost)
    if not share <= part < dataloader_wait.in_force["share"]:
        return
    yield Finding(
        title=f"Making batches takes {percent(part)} of the time, while nothing else runs",
        severity="info",
        confidence="high",
        stretches=lost,
        window=window,
        evidence=evidence(trace, rows, times=waited),
        cause="num_workers=0: each batch is made between two steps, in the loop's own process.",
        fix="If samples become more costly, give the DataLoader num_workers=4 and persistent_workers=True.",
        linked=True,
    )


def _in_own_process(trace: Trace, rows: Int32, lost: Intervals, work: tuple[HostWork, str] | None) -> tuple[str, str]:
    """Why batches that the loop's own process makes take long, and the fix."""
    if _iterators(trace, rows) >= max(3, 0.9 * len(rows)):
        return (
            "A new iterator is made for each batch, as next(iter(loader)) does: it draws the order of all samples "
            "again, and uses one batch of it.",
            "Make the iterator once, outside the loop: batches = iter(loader), then next(batches), and a new one when "
            "it ends; or for batch in loader.",
        )
    if _takes_rows(trace):
        return _ROWS, _INDEX
    line, collating = line_there(trace, lost), _collating(trace, lost)
    called = bool(line) and _called_by_loader(trace, lost)
    line += spent_below(trace, lost)
    if work:
        kind, part = work
        return (
            f"The batches are made in the program's own process (num_workers=0).{part}{line}",
            kind.batches or kind.fix,
        )
    count = _operators(trace, rows)
    if called and count >= MANY and lost.total <= FOR_EACH_NS * count * len(rows):
        return (
            f"The batches are made in the program's own process (num_workers=0), with {count:,.0f} operators of "
            f"PyTorch for each.{line}",
            "Compute with Python's numbers or NumPy arrays in that line, and make one tensor of the result: each call "
            "of an operator, also one that sets a single number, takes microseconds. What comes out the same each time "
            "is made once for all samples, before the loop.",
        )
    cause = "The batches are made in the program's own process (num_workers=0), so the loop waits meanwhile."
    if collating >= 0.5:
        cause = (
            f"The collate function runs in the program's own process: {percent(collating)} of the stacks sampled in "
            "that time show it."
        )
    if collating >= 0.5 and (not called or _collates_itself(trace, lost)):
        return (
            cause + line,
            "Let the collate function work on whole tensors: torch.stack, torch.nn.utils.rnn.pad_sequence, one "
            "torch.from_numpy for the batch, instead of loops over numbers. num_workers=4 moves it to other processes.",
        )
    usual = float(np.median(trace.events.dur[rows]))
    if usual < HANDED_OVER_NS:
        return cause + line, (
            "Take each batch out of tensors at once, x[i : i + n], or make it larger. Worker processes gain nothing: "
            f"a batch is made in {duration_ns(usual)} (median), and to hand one over takes as long."
        )
    workers = (
        "Give the DataLoader num_workers=4 or so and persistent_workers=True; then measure again. Worker processes "
        "take a second to start and hold copies of what the dataset holds."
    )
    if not called:
        return cause + line, workers
    return cause + line, (
        "Make that line cheaper, or load in worker processes (num_workers=4 or so, persistent_workers=True). Cheaper: "
        "compute results that are the same for all samples once, before the loop, and read only the data that a sample "
        "needs. Workers help where the line waits or the processor has idle cores; they take a second to start and "
        "hold copies of what the dataset holds. Then measure again."
    )


def _operators(trace: Trace, waits: Int32) -> float:
    """How many operators the loop's thread calls for a batch (mean)."""
    events, rows = trace.events, trace.derived(outer_operators)
    rows = rows[events.lane[rows] == trace.main_lane]
    return float(np.count_nonzero(events.covered(rows, events.times_of(waits)))) / len(waits)


def _takes_rows(trace: Trace) -> bool:
    """Whether the program's DataLoader takes rows one by one out of tensors in memory."""
    times = trace.derived(run_times)
    return times is not None and times.takes_rows


def _of_slow_workers(waited: Int64) -> tuple[str, str]:
    """Why worker processes make the loop wait, and the fix."""
    longest = int(waited.max())
    rest = int(waited.sum()) - longest
    if len(waited) >= 3 and longest > 3 * rest:
        return (
            f"One call of {len(waited)} takes {percent(longest / (longest + rest))} of it, as the first of a pass over "
            "the data does while workers start.",
            "persistent_workers=True, if each pass over the data begins like this; otherwise look into that batch.",
        )
    return (
        "The worker processes don't keep up: a batch takes longer to make than to use.",
        "More workers (up to the processor's cores), a larger prefetch_factor, or cheaper samples: decode once and "
        "cache, smaller files, augmentation on the device.",
    )


def _iterators(trace: Trace, rows: Int32) -> int:
    """How many of the calls for a batch draw an order of samples, or follow a new seed that no other call follows."""
    events = trace.events
    orders = events.of(DRAWS_ORDER)
    place = np.searchsorted(events.ts[rows], events.ts[orders], "right") - 1
    within = (place >= 0) & (events.end[orders] <= events.end[rows][np.maximum(place, 0)])
    return len(np.unique(place[within]))


def _called_by_loader(trace: Trace, when: Intervals) -> bool:
    """Whether most samples show a line of the program that the loader calls, such as its dataset's."""
    samples = trace.derived(stack_samples)
    inside = samples.inside(when).tolist()
    called = [samples.stacks[i][samples.stacks[i].index(samples.own[i]) :] for i in inside if samples.own[i]]
    return 2 * sum(any(LOADER_FRAME.names(frame) for frame in stack) for stack in called) > len(inside)


def _collating(trace: Trace, when: Intervals) -> float:
    """The part of the samples taken in some stretches that show the program's collate function; 0 for no samples."""
    samples = trace.derived(stack_samples)
    inside = samples.inside(when).tolist()
    return sum(any(COLLATE_CALL.names(one) for one in samples.texts(i)) for i in inside) / max(len(inside), 1)


def _collates_itself(trace: Trace, when: Intervals) -> bool:
    """Whether most samples of the collate function show its code rather than another function of the program."""
    samples = trace.derived(stack_samples)
    alone, seen = 0, 0
    for i in samples.inside(when).tolist():
        texts = samples.texts(i)
        called = next((place for place, text in enumerate(texts) if COLLATE_CALL.names(text)), 0)
        own = [frame for frame in samples.stacks[i][:called] if code_of(frame) == "program"]
        functions = [frame for frame in own if not frame.endswith(">")]  # a comprehension is part of its function
        seen += called > 0
        alone += len(functions) == 1
    return 2 * alone > seen


def _asked_at(trace: Trace, when: Intervals) -> tuple[Evidence, ...]:
    """The line of the program that asks a DataLoader for its batches, from samples of the stacks."""
    samples = trace.derived(stack_samples)
    found: Counter[tuple[str, ...]] = Counter()
    for i in samples.inside(when).tolist():
        stack = samples.stacks[i]
        last = max((place for place, frame in enumerate(stack) if LOADER_FRAME.names(frame)), default=len(stack))
        caller = next((k for k in range(last + 1, len(stack)) if code_of(stack[k]) == "program"), -1)
        if caller >= 0:
            found[stack[caller:]] += 1
    if not found:
        return ()
    stack, count = found.most_common(1)[0]
    return (Evidence(line_of(stack[0]), count, stack=stack, note="asks for the batches"),)


def _waits(trace: Trace) -> tuple[Int32, Int64, Intervals]:
    """The calls for the next batch in the window, how long nothing else went on during each, and all of that time."""
    events, window = trace.events, trace.derived(steady_window)
    rows = events.of(NEXT_BATCH)
    rows = rows[events.begin_in(rows, window.start, window.end)]
    rows = rows[~np.isin(trace.calls.parent[rows], rows)]  # an annotation around PyTorch's own
    if not trace.derived(device_known):  # nor is it known whether it worked meanwhile
        return rows[:0], np.empty(0, np.int64), Intervals.union([], [])
    start, end = events.ts[rows], np.minimum(events.end[rows], window.end)
    lost = trace.derived(batch_waits).clip(window.start, window.end)
    if not trace.has_gpu:
        return rows, end - start, lost
    idle = trace.derived(idle_time)
    return rows, idle.overlap(start, end), lost & idle
