"""What an experiment runs: data, a function over it, and what that should cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.experiment.case import Case

__all__ = ["CannotRunError", "Workload", "prepare", "smallest"]


class CannotRunError(TorchWhyError):
    """A workload cannot run here: no memory, no compiler."""


@dataclass(frozen=True)
class Workload:
    """A function over tensors, for any case.

    Attributes:
        name: as the command line takes it.
        summary: one line.
        make_inputs: a case -> the tensors to pass.
        function: tensors -> result; what is compiled when the case says so.
        flops: a case -> floating-point operations of one call.
        tensors: inputs, results and temporaries of the case's shape that are alive at once.
    """

    name: str
    summary: str
    make_inputs: Callable[[Case], tuple[torch.Tensor, ...]]
    function: Callable[..., torch.Tensor]
    flops: Callable[[Case], float]
    tensors: int

    @property
    def label(self) -> str:
        """The name as annotations and folders carry it."""
        return self.name.replace("-", "_")


def prepare(workload: Workload, case: Case) -> Callable[[], torch.Tensor]:
    """Make the inputs and return a function without arguments; it is not called yet, so its first call is cold.

    Raises:
        CannotRunError: the inputs do not fit into memory.

    >>> from torchwhy.experiment import workload_named
    >>> prepare(workload_named("matmul-add"), Case(4, "fp32"))().shape
    torch.Size([4, 4])
    """
    try:
        inputs = workload.make_inputs(case)
    except (RuntimeError, MemoryError) as error:
        raise CannotRunError(f"cannot make the inputs for {case}: {_first_line(error)}") from error
    function = workload.function
    if case.mode is not None:
        torch._dynamo.reset()  # each size compiles for itself, not as a recompilation with dynamic shapes
        function = torch.compile(function, mode=case.mode, dynamic=False)

    def call() -> torch.Tensor:
        try:
            return function(*inputs)
        except NotImplementedError as error:
            raise ArgumentError(f"{case.dtype} is not supported on {case.device}: {_first_line(error)}") from error
        except RuntimeError as error:  # out of memory, no compiler, a dtype without a kernel
            unsupported = "not implemented for" in str(error) or "NOT_SUPPORTED" in str(error)
            kind = ArgumentError if unsupported else CannotRunError
            raise kind(f"cannot run {workload.name} with {case}: {_first_line(error)}") from error

    return call


def smallest(case: Case) -> Case:
    """Return the case on the smallest input: the same calls, and next to no arithmetic.

    >>> smallest(Case(64, batch=8)).shape
    (1, 1, 1)
    """
    return replace(case, size=1, batch=None if case.batch is None else 1)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
