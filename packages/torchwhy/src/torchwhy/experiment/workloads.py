"""The workloads, in one table, and the ways to run them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch.nn.functional import gelu, linear

from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.experiment.devices import free_bytes, require_device

__all__ = ["DTYPES", "WORKLOADS", "CannotRunError", "Case", "Workload", "prepare", "require_runnable", "smallest"]

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64}
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")  # of torch.compile


class CannotRunError(TorchWhyError):
    """A workload cannot run here: no memory, no compiler, no place for its files."""


@dataclass(frozen=True)
class Case:
    """One way to run a workload.

    Attributes:
        workload: a name in `WORKLOADS`.
        size: rows of the matrices; >= 1.
        dtype: bf16, fp16, fp32 or fp64.
        device: as `torch.device` takes it.
        batch: a leading dimension, or None for none.
        warm: call the function before the profiler starts.
        mode: of torch.compile, or None to run eagerly.
        wait, warmup, active: steps that the profiler skips, runs through without keeping, and records.

    >>> Case("linear", 64).stem(default_device="cpu")
    '64_fp32_cold_eager'
    >>> Case("linear", 64, "bf16", "cpu", batch=8, warm=True, mode="default").stem(default_device="cuda")
    '64_batch8_bf16_warm_compiled_cpu'
    """

    workload: str
    size: int
    dtype: str = "fp32"
    device: str = "cpu"
    batch: int | None = None
    warm: bool = False
    mode: str | None = None
    wait: int = 1
    warmup: int = 1
    active: int = 3

    def __post_init__(self) -> None:
        """Raise ArgumentError for values no machine could run."""
        if self.workload not in WORKLOADS:
            raise ArgumentError(f"experiment must be one of {', '.join([*WORKLOADS, 'peaks'])}, got {self.workload!r}")
        if self.size < 1:
            raise ArgumentError(f"size must be >= 1, got {self.size}")
        if self.batch is not None and self.batch < 1:
            raise ArgumentError(f"batch must be >= 1, got {self.batch}")
        if self.dtype not in DTYPES:
            raise ArgumentError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        if self.mode is not None and self.mode not in MODES:
            raise ArgumentError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")
        if self.wait < 0 or self.warmup < 0 or self.active < 1:
            counts = f"{self.wait}, {self.warmup} and {self.active}"
            raise ArgumentError(f"a schedule needs wait >= 0, warmup >= 0 and active >= 1, got {counts}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the input and the result: (size, size), or (batch, size, size)."""
        return (self.size, self.size) if self.batch is None else (self.batch, self.size, self.size)

    @property
    def label(self) -> str:
        """The workload's name as annotations and folders carry it."""
        return self.workload.replace("-", "_")

    @property
    def variant(self) -> str:
        """`eager`, `compiled`, or `compiled-` and a mode that is not the default one."""
        return {None: "eager", "default": "compiled"}.get(self.mode, f"compiled-{self.mode}")

    @property
    def bytes_used(self) -> int:
        """The bytes of inputs, result and values between, which a call reads or writes at least once."""
        found = WORKLOADS[self.workload]
        inputs = sum(math.prod(shape) for shape in found.shapes(self))
        return DTYPES[self.dtype].itemsize * (inputs + found.made * math.prod(self.shape))

    @property
    def flops(self) -> float:
        """Floating-point operations of one call, those of products and sums.

        >>> Case("matmul-add", 10).flops, Case("mlp", 10, batch=8).flops
        (2100.0, 132000.0)
        """
        found = WORKLOADS[self.workload]
        per_matrix = 2 * found.products * self.size**3 + found.sums * self.size**2
        return float((self.batch or 1) * per_matrix)

    def stem(self, default_device: str) -> str:
        """Return the file name without suffix; usual values are left out of it."""
        parts = [str(self.size), *([f"batch{self.batch}"] if self.batch is not None else [])]
        parts += [self.dtype, "warm" if self.warm else "cold", self.variant]
        parts += [self.device.replace(":", "")] if self.device != default_device else []
        usual = (("wait", self.wait, 1), ("warmup", self.warmup, 1), ("active", self.active, 3))
        parts += [f"{name}{value}" for name, value, default in usual if value != default]
        return "_".join(parts)

    def __str__(self) -> str:
        """Return the case in words."""
        shape = " x ".join(map(str, self.shape))
        return f"{shape} {self.dtype}, {'warm' if self.warm else 'cold'}, {self.variant}, on {self.device}"


@dataclass(frozen=True)
class Workload:
    """A function over tensors, for any case.

    Attributes:
        function: tensors -> result; what is compiled when the case says so.
        shapes: a case -> the shapes of the tensors.
        products: products of two (size, size) matrices that its arithmetic amounts to.
        sums: additions of two such matrices.
        made: tensors of the case's shape that its results and the values between amount to.
    """

    function: Callable[..., torch.Tensor]
    shapes: Callable[[Case], tuple[tuple[int, ...], ...]]
    products: int
    sums: int
    made: int


def _matmul_add(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.add(torch.matmul(x, w), b)


def _addmm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.addmm(b, x, w) if x.dim() == 2 else torch.baddbmm(b, x, w)


def _mlp(x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor) -> torch.Tensor:
    return linear(gelu(linear(x, w1, b1)), w2, b2)


def _three_alike(case: Case) -> tuple[tuple[int, ...], ...]:
    return (case.shape,) * 3


def _linear_shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    return case.shape, (case.size, case.size), (case.size,)


def _mlp_shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    return case.shape, (4 * case.size, case.size), (4 * case.size,), (case.size, 4 * case.size), (case.size,)


WORKLOADS = {
    "matmul-add": Workload(_matmul_add, _three_alike, products=1, sums=1, made=2),
    "addmm": Workload(_addmm, _three_alike, products=1, sums=1, made=1),
    "linear": Workload(linear, _linear_shapes, products=1, sums=1, made=1),
    "mlp": Workload(_mlp, _mlp_shapes, products=8, sums=5, made=9),  # four times as wide inside, GELU between
}


def prepare(case: Case) -> Callable[[], torch.Tensor]:
    """Make the inputs, the same for every run, and return a function without arguments.

    It is not called yet, so its first call is cold.

    Raises:
        CannotRunError: the inputs do not fit into memory.

    >>> prepare(Case("matmul-add", 4))().shape
    torch.Size([4, 4])
    """
    torch.manual_seed(0)
    workload = WORKLOADS[case.workload]
    try:
        inputs = [torch.randn(s, device=case.device, dtype=DTYPES[case.dtype]) for s in workload.shapes(case)]
    except (RuntimeError, MemoryError) as error:
        raise CannotRunError(f"cannot make the inputs for {case}: {_first_line(error)}") from error
    function = workload.function
    if case.mode is not None:
        torch._dynamo.reset()  # each size compiles for itself, not as a recompilation with dynamic shapes
        function = torch.compile(function, mode=case.mode, dynamic=False)

    def call() -> torch.Tensor:
        try:
            return function(*inputs)
        except RuntimeError as error:  # out of memory, no compiler, a dtype without a kernel
            unsupported = "not implemented for" in str(error) or "NOT_SUPPORTED" in str(error)
            kind = ArgumentError if unsupported else CannotRunError
            raise kind(f"cannot run {case.workload} with {case}: {_first_line(error)}") from error

    return call


def smallest(case: Case) -> Case:
    """Return the case on the smallest input: the same calls, and next to no arithmetic.

    >>> smallest(Case("linear", 64, batch=8)).shape
    (1, 1, 1)
    """
    return replace(case, size=1, batch=None if case.batch is None else 1)


def require_runnable(case: Case) -> None:
    """Raise ArgumentError, in one line, if the device is missing, lacks the dtype, or the size exceeds its memory."""
    device = require_device(case.device)
    if case.dtype == "fp64" and device.type == "mps":
        raise ArgumentError("dtype fp64 is not supported on mps; use fp32")
    if case.dtype == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise ArgumentError(f"dtype bf16 is not supported on {torch.cuda.get_device_name(device)}; use fp16 or fp32")
    free = free_bytes(device)
    if free is not None and case.bytes_used > free:
        needed = f"{case.bytes_used / 2**30:,.1f} GiB"
        raise ArgumentError(f"size {case.size} needs {needed}, {case.device} has {free / 2**30:,.1f} GiB free")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
