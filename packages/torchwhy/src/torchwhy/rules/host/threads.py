"""More or fewer threads than there are processors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.processor_time import load_average, threads_and_cores
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.operators import HEAVY
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["too_few_threads", "too_many_threads"]


@rule("B41", "too-many-threads", source="threads of an operator against processors, as recorded", frees="host")
def too_many_threads(trace: Trace, *, times: float = 2.0, share: float = 0.1) -> Iterator[Finding]:
    """PyTorch computes with more threads than there are processors.

    Sees: on a program without GPU, `torch.get_num_threads()` at twice the number of processors that the program may use
    or more, as `torchwhy profile` notes them; and products, convolutions or attention in 10% of the window or more.

    Costs: the threads of an operator wait for each other at its end; those without a processor keep all others waiting
    until the operating system gives them one.

    Fix: leave the number to PyTorch, or `torch.set_num_threads(n)` and `OMP_NUM_THREADS=n` with at most the number of
    processors; in containers the limit.

    Known problems: how much is lost depends on how long the operators are; the stake is half of their time, and the
    finding is medium at most.
    """
    if not trace.derived(recorded).on_processor:
        return
    threads, cores = threads_and_cores(trace)
    rows, window = trace.events.of(HEAVY), trace.derived(steady_window)
    rows = rows[trace.in_steps(rows)]
    when = trace.when(rows)
    part = window.share(when.clip(window.start, window.end))
    if not cores or threads < times * cores or part < share:
        return
    yield Finding(
        title=f"Operators use {threads} threads on {cores} processors: heavy ones take {percent(part)} of the time",
        most="medium",
        confidence="medium",
        time_us=when.total / 2000,
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="The threads of an operator wait for each other, and some of them for a processor.",
        fix=f"torch.set_num_threads({cores}), or leave it out; OMP_NUM_THREADS={cores} in the environment.",
    )


@rule("B44", "too-few-threads", source="threads of an operator against processors, as recorded", frees="host")
def too_few_threads(trace: Trace, *, share: float = 0.3, long_us: float = 200.0) -> Iterator[Finding]:
    """PyTorch computes with few threads, and most processors have nothing to do.

    Sees: on a program without GPU, `torch.get_num_threads()` at less than half the number of processors that the
    program may use, as `torchwhy profile` notes them; and products, convolutions or attention of 200 us or more, one at
    a time, in 30% of the window or more. PyTorch itself takes half where each core counts as two processors.

    Costs: operators of this length share their work among threads, so that each core less makes them longer.

    Fix: leave the number to PyTorch: no `OMP_NUM_THREADS=1` in the environment, no `torch.set_num_threads(1)`.

    Known problems: silent where the numbers are unknown, where the program is one of several ranks, where several of
    its threads compute at once, and where other programs use the processors (as the load average shows). At stake is
    what half of the processors would save of those operators, if they scaled in full; the finding is medium at most.
    """
    threads, processors = threads_and_cores(trace)
    if not trace.derived(recorded).on_processor or not 0 < 2 * threads < processors or (trace.info.world_size or 1) > 1:
        return
    if 2 * load_average(trace) > processors:
        return
    events, window = trace.events, trace.derived(steady_window)
    rows = events.of(HEAVY)
    rows = rows[trace.in_steps(rows) & (events.dur[rows] >= long_us * 1000)]
    when = trace.when(rows)
    part = window.share(when.clip(window.start, window.end))
    lanes = events.lane[rows]
    apart = sum(events.times_of(rows[lanes == lane]).total for lane in np.unique(lanes))
    if part < share or apart > 1.2 * events.times_of(rows).total:
        return
    yield Finding(
        title=f"Operators use {threads} of {processors} processors: heavy ones take {percent(part)} of the time",
        most="medium",
        confidence="medium",
        time_us=when.total / 1000 * (1 - 2 * threads / processors),
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="The number of threads was set, by OMP_NUM_THREADS, torch.set_num_threads or a job's settings; the other "
        "processors are left idle.",
        fix="Unset OMP_NUM_THREADS and leave out torch.set_num_threads, or set both to the number of cores; keep few "
        "threads where many such programs share the machine.",
    )
