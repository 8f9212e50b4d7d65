"""How to run a workload: the point of a study that one recording stands for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import torch

from torchwhy.errors import ArgumentError

__all__ = ["DTYPES", "MODES", "Case", "Schedule", "default_device"]

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64}
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")  # of torch.compile


@dataclass(frozen=True)
class Schedule:
    """Steps the profiler skips (`wait`), runs through without keeping (`warmup`), and records (`active`)."""

    wait: int = 1
    warmup: int = 1
    active: int = 3

    def __post_init__(self) -> None:
        """Raise ArgumentError unless at least one step is recorded."""
        if self.wait < 0 or self.warmup < 0 or self.active < 1:
            raise ArgumentError(f"a schedule needs wait >= 0, warmup >= 0 and active >= 1, got {self}")

    @property
    def steps(self) -> int:
        """Steps in all."""
        return self.wait + self.warmup + self.active


@dataclass(frozen=True)
class Case:
    """One way to run a workload.

    Attributes:
        size: the workload's length, such as a matrix's rows; >= 1.
        dtype: bf16, fp16, fp32 or fp64.
        device: as `torch.device` takes it.
        batch: a leading dimension, or None for none.
        warm: call the function before the profiler starts.
        mode: of torch.compile, or None to run eagerly.
        schedule: of the profiler.

    >>> Case(64, device="cpu").stem(default_device="cpu")
    '64_bf16_cold_eager'
    >>> Case(64, "fp32", "cpu", batch=8, warm=True, mode="default").stem(default_device="cuda")
    '64_batch8_fp32_warm_compiled_cpu'
    """

    size: int
    dtype: str = "bf16"
    device: str = "cpu"
    batch: int | None = None
    warm: bool = False
    mode: str | None = None
    schedule: Schedule = field(default_factory=Schedule)

    def __post_init__(self) -> None:
        """Raise ArgumentError for values no machine could run."""
        if self.size < 1:
            raise ArgumentError(f"size must be >= 1, got {self.size}")
        if self.batch is not None and self.batch < 1:
            raise ArgumentError(f"batch must be >= 1, got {self.batch}")
        if self.dtype not in DTYPES:
            raise ArgumentError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        if self.mode is not None and self.mode not in MODES:
            raise ArgumentError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")

    @property
    def shape(self) -> tuple[int, ...]:
        """(size, size), or (batch, size, size)."""
        return (self.size, self.size) if self.batch is None else (self.batch, self.size, self.size)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as PyTorch's."""
        return DTYPES[self.dtype]

    @property
    def variant(self) -> str:
        """`eager`, `compiled`, or `compiled-` and a mode that is not the default one."""
        return {None: "eager", "default": "compiled"}.get(self.mode, f"compiled-{self.mode}")

    def stem(self, default_device: str) -> str:
        """Return the file name without suffix; what is as usual is left out."""
        usual = Schedule()
        parts = [str(self.size)]
        parts += [f"batch{self.batch}"] if self.batch is not None else []
        parts += [self.dtype, "warm" if self.warm else "cold", self.variant]
        parts += [self.device.replace(":", "")] if self.device != default_device else []
        parts += [f"{k}{v}" for k, v in asdict(self.schedule).items() if v != getattr(usual, k)]
        return "_".join(parts)

    def __str__(self) -> str:
        """Return the case in words."""
        shape = " x ".join(map(str, self.shape))
        return f"{shape} {self.dtype}, {'warm' if self.warm else 'cold'}, {self.variant}, on {self.device}"


def default_device() -> str:
    """Return the accelerator PyTorch can use, or `cpu`.

    >>> isinstance(default_device(), str)
    True
    """
    if not torch.accelerator.is_available():
        return "cpu"
    accelerator = torch.accelerator.current_accelerator()
    return accelerator.type if accelerator is not None else "cpu"
