"""More threads than there are processors."""

from __future__ import annotations

from collections.abc import Iterator

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.processor_time import threads_and_cores
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.operators import HEAVY
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["too_many_threads"]


@rule("B41", "too-many-threads", source="threads of an operator against processors, as recorded", frees="host")
def too_many_threads(trace: Trace, *, times: float = 2.0, share: float = 0.1) -> Iterator[Finding]:
    """PyTorch computes with more threads than there are processors.

    Sees: on a program without GPU, `torch.get_num_threads()` at twice the number of processors that the program may use
    or more, as `torchwhy profile` notes them; and products, convolutions or attention in 10% of the window or more.

    Costs: the threads of an operator wait for each other at its end; those without a processor keep all others waiting
    until the operating system gives them one.

    Fix: leave the number to PyTorch, or `torch.set_num_threads(n)` and `OMP_NUM_THREADS=n` with at most the number of
    processors; in containers that of the limit.

    Known problems: how much is lost depends on how long the operators are; the stake is half of their time, and the
    finding is medium at most.
    """
    if trace.has_gpu:
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
