"""How exactly numbers are computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchwhy.tuning.change import Change, changes
from torchwhy.tuning.records import Facts

__all__ = ["bfloat16_products", "denormals", "tf32"]


@changes("cpu-hotspot")
def denormals(facts: Facts) -> Iterator[Change]:
    """Numbers below 1.2e-38 become 0: processors compute with them up to a hundred times slower."""
    if not facts.cuda:
        line = "torch.set_flush_denormal(True)  # after import torch"
        yield Change("denormals flushed", (line,), apply=_flush, inexact="numbers below 1.2e-38 become 0")


def _flush(observer: Any) -> None:
    import torch

    torch.set_flush_denormal(True)  # before there are other threads, which inherit it


@changes("fp32-matmul-no-tc")
def tf32(facts: Facts) -> Iterator[Change]:
    """Tensor cores multiply float32 in TF32."""
    if facts.cuda and facts.matmul_precision == "highest":
        line = 'torch.set_float32_matmul_precision("high")  # after import torch'
        yield Change("TF32 products", (line,), apply=_use_tf32, inexact="products keep 10 bits of the mantissa")


def _use_tf32(observer: Any) -> None:
    import torch

    torch.set_float32_matmul_precision("high")
    name = "set_float32_matmul_precision"
    setattr(torch, name, lambda precision: None)


@changes("cpu-hotspot", "compute-bound")
def bfloat16_products(facts: Facts) -> Iterator[Change]:
    """The processor multiplies float32 in bfloat16."""
    if facts.bf16 and not facts.cuda and facts.matmul_precision == "highest":
        line = 'torch.set_float32_matmul_precision("medium")  # after import torch'
        yield Change("bfloat16 products", (line,), apply=_use_bfloat16, inexact="products keep 7 bits of the mantissa")


def _use_bfloat16(observer: Any) -> None:
    import torch

    torch.set_float32_matmul_precision("medium")
    name = "set_float32_matmul_precision"
    setattr(torch, name, lambda precision: None)
