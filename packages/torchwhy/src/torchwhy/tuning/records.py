"""Records of a program's run: step times, results, and facts that decide which changes can be tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from torchwhy.capture.launch.program import Program

__all__ = ["Facts", "Loader", "Record", "Request", "Results"]


class Loader(msgspec.Struct, frozen=True):
    """A `DataLoader` that the program made: its arguments, and the program's line ("train.py:31")."""

    workers: int = 0
    persistent: bool = False
    prefetch: int | None = None
    pinned: bool = False
    iterable: bool = False
    line: str = ""


class Facts(msgspec.Struct, frozen=True):
    """Facts about the program and the machine.

    Attributes:
        threads, processors: that an operator uses, and that the process may use.
        threads_set: the program's line that calls `torch.set_num_threads`; "" where nothing does.
        libraries: names of the native libraries that are loaded, such as "libgomp".
        loaders: that were made.
        cuda: whether a GPU was used.
        trained: whether a backward pass ran.
        optimizers: classes of those that stepped.
        fused: whether all of them are fused.
        steps: whether steps were found.
        modules: classes of the outermost modules.
        images: whether a module holds two-dimensional convolutions.
        compiled: whether the program compiles itself.
        anomaly: whether autograd's anomaly detection was on.
        matmul_precision: of `torch.get_float32_matmul_precision`.
        cudnn_benchmark: whether that is on.
        bf16: whether the processor multiplies in bfloat16.
    """

    threads: int = 1
    processors: int = 1
    threads_set: str = ""
    libraries: tuple[str, ...] = ()
    loaders: tuple[Loader, ...] = ()
    cuda: bool = False
    trained: bool = False
    optimizers: tuple[str, ...] = ()
    fused: bool = False
    steps: bool = True
    modules: tuple[str, ...] = ()
    images: bool = False
    compiled: bool = False
    anomaly: bool = False
    matmul_precision: str = "highest"
    cudnn_benchmark: bool = False
    bf16: bool = False


class Results(msgspec.Struct, frozen=True):
    """Numbers by which two runs are compared; of tensors a sample.

    Attributes:
        losses: on which `backward` was called, in order.
        outputs: of the outermost modules in the first steps: by module and step, one list for each call.
        parameters: of the optimizers, at the end.
        printed: the program's stdout.
    """

    losses: list[float] = []
    outputs: dict[str, list[list[float]]] = {}
    parameters: list[list[float]] = []
    printed: str = ""


class Record(msgspec.Struct, frozen=True):
    """A run.

    Attributes:
        steps_us: from each step's beginning to the next, in order; where no steps were found, the one whole run.
        start_us: from when PyTorch had been imported to the beginning of the first of these.
        source: what steps begin with, a value of `capture.launch.discovery.Source`; "" where none were found.
        label: the same for people.
        ended_early: whether the run was ended because there were steps enough.
        wall_s: of the whole process.
        error: why the run failed; "" where it did not.
    """

    steps_us: list[float] = []
    start_us: float = 0.0
    source: str = ""
    label: str = ""
    ended_early: bool = False
    results: Results = Results()
    facts: Facts = Facts()
    wall_s: float = 0.0
    error: str = ""

    @property
    def cold(self) -> int:
        """Steps at the beginning that do not count: a quarter, from 3 to 10 of them."""
        return min(max(len(self.steps_us) // 4, 3), 10, len(self.steps_us) - 1)

    @property
    def step_us(self) -> float:
        """The mean time of a step: a loader that starts again in each epoch makes few steps long."""
        counted = self.steps_us[self.cold :]
        return sum(counted) / len(counted)

    @property
    def begins_us(self) -> float:
        """From when PyTorch had been imported to the first step that counts."""
        return self.start_us + sum(self.steps_us[: self.cold])


@dataclass(frozen=True)
class Request:
    """The program to run, and how.

    Attributes:
        program: to run.
        record: the file to write.
        apply: what changes the program, called with the `Observer` when PyTorch has been imported.
        source: what steps begin with, as in `Record`; "" finds out.
        fewest, most_s: the run is ended after this number of steps, once they have taken this time.
    """

    program: Program
    record: Path
    apply: tuple[Callable[[Any], None], ...] = ()
    source: str = ""
    fewest: int = 12
    most_s: float = 10.0
