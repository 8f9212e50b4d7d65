"""What only PyTorch's own results show: `counts.json` of a recorded step, for `torchwhy gate`, and `flops.json`."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchwhy.capture.containment import described, is_programs
from torchwhy.capture.options import Options
from torchwhy.capture.recorder import Window
from torchwhy.schema import SCHEMA

__all__ = ["Flops", "FlopsFile", "write_counts"]

LIMIT_S: Final = 60  # 200 000 events take 5 s


class Flops(msgspec.Struct, frozen=True):
    """Estimated floating point operations of all calls of an operator with inputs of these sizes."""

    name: str
    shapes: str
    flops: int


class FlopsFile(msgspec.Struct, frozen=True):
    """`flops.json`."""

    schema: int
    flops: tuple[Flops, ...]


def write_counts(folder: Path, windows: Sequence[Window], options: Options, device: bool) -> list[str]:
    """Write `counts.json`, and `flops.json` where they were recorded; return what was wrong, for the report.

    Args:
        folder: the run's. windows: what was recorded. options: with what.
        device: whether the GPU was.
    """
    import torch

    from torchwhy.counters.environment import environment
    from torchwhy.counters.from_trace import Recorded, counts_from_trace

    # A forked process may not ask CUDA.
    taken_in, in_use = environment(), torch.cuda.is_initialized()

    def write() -> None:
        if options.flops:
            (folder / "flops.json").write_bytes(msgspec.json.encode(FlopsFile(SCHEMA, tuple(_flops(windows)))))
        recorded = [Recorded(window.results.experimental_event_tree(), window.compiled) for window in windows]
        counts = counts_from_trace(
            recorded, memory=options.memory, device=device, device_in_use=in_use, taken_in=taken_in
        )
        counts.save(folder)

    trouble = _apart(write)
    return [f"there is no counts.json for `torchwhy gate`: {trouble}"] if trouble else []


def _flops(windows: Sequence[Window]) -> list[Flops]:
    found: Counter[tuple[str, str]] = Counter()
    for window in windows:
        for event in window.results.events():
            if event.flops():
                found[event.name(), str(event.shapes())] += event.flops()
    return [Flops(*key, flops) for key, flops in found.items()]


def _apart(work: Callable[[], None]) -> str:
    """Do work in a forked process, so that a crash in it does no harm; return what went wrong, or "".

    The results are full of pointers of PyTorch's into what the program has left of the heap.
    """
    if sys.platform != "linux":
        return _trouble(work)
    reads, writes = os.pipe()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of threads, which matter to none of this
        child = os.fork()
    if child == 0:
        status = 1
        try:
            gc.disable()  # nothing of the program's is to be finalized here
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.alarm(LIMIT_S)
            os.write(writes, _trouble(work).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writes)
    with os.fdopen(reads, "rb") as answer:
        trouble = answer.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"its process died of {signal.Signals(os.WTERMSIG(status)).name}"
    return trouble or ("its process failed" if status else "")


def _trouble(work: Callable[[], None]) -> str:
    try:
        work()
    except Exception as error:
        if is_programs(error):
            raise
        return described(error)
    return ""
