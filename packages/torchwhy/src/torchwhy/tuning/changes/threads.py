"""The threads of operators: how many, where they run, how they wait."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torchwhy.tuning.change import Change, by_environment, changes
from torchwhy.tuning.records import Facts

__all__ = ["binding", "threads", "waiting"]


@changes(
    "too-many-threads", "too-few-threads", "small-steps", "dispatch-flood", "tensor-for-loop", "weight-for-loop",
    "optimizer-for-loop", "numbers-one-by-one", "small-batches", "dataloader-wait",
)  # fmt: skip
def threads(facts: Facts) -> Iterator[Change]:
    """All processors, half of them, or one."""
    counts = dict.fromkeys((facts.processors, max(1, facts.processors // 2), 1))
    where = f"  # {facts.threads_set}, instead of what stands there" if facts.threads_set else "  # after import torch"
    for count in counts:
        if count != facts.threads:
            line = f"torch.set_num_threads({count}){where}"
            if not facts.threads_set:
                line = f"OMP_NUM_THREADS={count} in the environment, or {line}"
            variables = {"OMP_NUM_THREADS": str(count), "MKL_NUM_THREADS": str(count)}
            name = f"{count} thread{'s' * (count > 1)}"
            yield Change(name, (line,), variables, partial(_use_threads, count))


def _use_threads(count: int, observer: Any) -> None:
    """Set the number, and leave it, whatever the program sets."""
    import torch

    torch.set_num_threads(count)
    name = "set_num_threads"
    setattr(torch, name, lambda other: None)


@changes("too-many-threads", "small-steps")
def waiting(facts: Facts) -> Iterator[Change]:
    """Threads that wait sleep instead of keeping their processor busy, or the reverse."""
    if facts.threads < 2 or facts.cuda:
        return
    variable = ("KMP_BLOCKTIME", "0") if "libiomp5" in facts.libraries else ("OMP_WAIT_POLICY", "PASSIVE")
    yield by_environment("waiting threads sleep", dict([variable]))


@changes("too-many-threads")
def binding(facts: Facts) -> Iterator[Change]:
    """Each thread stays on its processor."""
    if 1 < facts.threads <= facts.processors and not facts.cuda and not any(one.workers for one in facts.loaders):
        yield by_environment("threads bound to cores", {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"})
