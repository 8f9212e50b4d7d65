"""Runs one contender: reads commands from standard input, answers on standard output, one JSON object a line.

    PYTHON worker.py            needs NumPy and what the contender needs, nothing else

Times are taken here, around the work alone. An error ends the process; its last line on standard error says why.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any, TextIO

import numpy as np

HERE = Path(__file__).parent
WARM_UP = 32  # steps after which caches are warm and threads awake
MODULES = ("torch_copy", "torchfx_library", "scipy_signal", "torchaudio_library")


def load(path: Path) -> Any:
    """Return a file as a module, whatever package it belongs to."""
    spec = importlib.util.spec_from_file_location(f"contender_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def available() -> list[Any]:
    """Return the contender files whose libraries are installed here."""
    modules = [load(HERE / f"{name}.py") for name in MODULES]
    return [module for module in modules if all(importlib.util.find_spec(need) for need in module.NEEDS)]


def has_cuda() -> bool:
    """Whether PyTorch is here and sees a GPU; a build for the CPU alone is not imported, which would take seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    built = load(Path(spec.origin).with_name("version.py"))
    if not (built.cuda or built.hip):
        return False
    import torch

    return torch.cuda.is_available()


def nothing() -> None:
    """Wait for nothing: CPU work is done when the call returns."""


def synchroniser(device: str) -> Callable[[], object]:
    """Return what waits until a device has finished."""
    if device == "cpu":
        return nothing
    import torch

    return torch.cuda.synchronize


def preparation(kind: str, contender: str, threads: int) -> Callable[..., Any]:
    """Return a contender's `prepare`, with PyTorch's number of threads set where the contender uses PyTorch."""
    module = next(module for module in available() if contender in getattr(module, kind))
    if "torch" in module.NEEDS:
        import torch

        torch.set_num_threads(threads)
    prepare: Callable[..., Any] = getattr(module, kind)[contender]
    return prepare


def samples_of(result: Any) -> Any:
    """Return a result's samples (channels, time), whether it is a wave, a tensor or an array."""
    return getattr(result, "ys", result)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Keep Python's garbage collector out of what is timed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Worker:
    """One contender at work on one signal at a time."""

    def __init__(self) -> None:
        """Start with nothing loaded."""
        self.run: Callable[[], Any] = nothing
        self.step: Callable[[Any], Any] = samples_of
        self.synchronise: Callable[[], object] = nothing
        self.blocks: list[Any] = []
        self.result: Any = None

    def probe(self) -> dict[str, Any]:
        """Say which contenders can run in this Python, and where."""
        devices = ("cpu", "cuda") if has_cuda() else ("cpu",)
        modules = available()
        names = {
            kind: {
                name: [device for device in module.DEVICES if device in devices]
                for module in modules
                for name in getattr(module, kind)
            }
            for kind in ("CONTENDERS", "STREAMS")
        }
        return {"whole": names["CONTENDERS"], "streams": names["STREAMS"]}

    def prepare(self, contender: str, job: dict[str, Any], signal: str, threads: int) -> dict[str, Any]:
        """Make the work ready on a signal in a NumPy file, run it once and keep the result for `block`."""
        self.synchronise = synchroniser(job["device"])
        self.run, self.result = nothing, None  # the previous signal's memory, before the next one needs it
        x = np.load(signal, mmap_mode="c")  # shared between all workers, never written to
        self.run = preparation("CONTENDERS", contender, threads)(job, x)
        start = perf_counter()
        self.result = self.run()
        self.synchronise()
        channels, samples = samples_of(self.result).shape
        return {"first_s": perf_counter() - start, "channels": channels, "samples": samples}

    def prepare_stream(
        self, contender: str, job: dict[str, Any], signal: str, threads: int, block: int
    ) -> dict[str, Any]:
        """Make block-wise work ready, run the whole signal through it once and keep the result for `block`."""
        self.synchronise = synchroniser(job["device"])
        x = np.load(signal)
        self.step = preparation("STREAMS", contender, threads)(job)
        self.blocks = [np.ascontiguousarray(x[:, i : i + block]) for i in range(0, x.shape[-1] - block + 1, block)]
        outputs = [self._host(self.step(each)) for each in self.blocks]
        self.result = np.concatenate(outputs, axis=-1)
        return {"channels": len(x), "samples": self.result.shape[-1]}

    def block(self, channel: int, start: int, stop: int, path: str) -> dict[str, Any]:
        """Write a stretch of the kept result to a NumPy file."""
        np.save(path, self._host(samples_of(self.result)[channel, start:stop]))
        return {}

    def drop(self) -> dict[str, Any]:
        """Forget the kept result."""
        self.result = None
        return {}

    def time(self, number: int) -> dict[str, Any]:
        """Return the mean time of `number` calls in a row; each result is freed before the next call.

        Short calls are preceded by one that is not timed: it wakes the threads and fills the caches.
        """
        with no_collection():
            if number > 1:
                self.run()
                self.synchronise()
            start = perf_counter()
            for _ in range(number):
                self.run()
            self.synchronise()
            return {"seconds": (perf_counter() - start) / number}

    def latency(self, calls: int) -> dict[str, Any]:
        """Return the time of each of `calls` steps in a row, nanoseconds, after some that are not timed."""
        times = []
        with no_collection():
            for block in self.blocks[:WARM_UP]:
                self.step(block)
            for i in range(calls):
                block = self.blocks[i % len(self.blocks)]
                start = perf_counter_ns()
                self.step(block)
                self.synchronise()
                times.append(perf_counter_ns() - start)
        return {"ns": times}

    @staticmethod
    def _host(values: Any) -> Any:
        return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def serve(commands: TextIO, answers: TextIO) -> None:
    """Answer commands until there are no more."""
    worker = Worker()
    for line in commands:
        command = json.loads(line)
        answer = getattr(worker, command.pop("do"))(**command)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main() -> None:
    """Serve on the standard streams; what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
