"""Peak rates of this machine's devices, measured: matrix products in each type, and a copy through memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from torchwhy.device_peaks import peaks_as_toml
from torchwhy.experiment.devices import default_device, free_bytes, require_device
from torchwhy.experiment.limits import busy, measure_copy
from torchwhy.timing import measure
from torchwhy.trace.peaks import Peaks

__all__ = ["DevicePeaks", "Rate", "measure_peaks"]

TYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
SMALLEST, LARGEST = 512, 16384  # rows of the matrices
LONG_ENOUGH_S = 0.1  # of one product: larger ones are no faster
COPIED = {"cpu": 1 << 28}  # bytes: many times the last cache
COPIED_ON_DEVICES = 1 << 30
TIMED_S = 1.0  # for each size and type


@dataclass(frozen=True)
class Rate:
    """The fastest matrix product of a type: rows of its square matrices, seconds, operations per second."""

    dtype: str
    size: int
    time_s: float
    flops_per_s: float


@dataclass(frozen=True)
class DevicePeaks:
    """The measured peak rates of one device.

    Attributes:
        name: as traces name it; "cpu" for the host.
        device: as `torch.device` takes it.
        bandwidth_bytes_per_s: read and written by a copy of `copied_bytes`.
        rates: by type; those it lacks are left out.
        disturbed: whether other processes took the processors meanwhile, so that the host's figures are too low.
    """

    name: str
    device: str
    bandwidth_bytes_per_s: float
    copied_bytes: int
    rates: tuple[Rate, ...]
    disturbed: bool

    @property
    def peaks(self) -> Peaks:
        """The figures as findings are measured against."""
        teraflops = {rate.dtype: rate.flops_per_s / 1e12 for rate in self.rates}
        return Peaks(self.bandwidth_bytes_per_s / 1e9, 0, teraflops, measured=True)

    @property
    def toml(self) -> str:
        """The figures as a table for `pyproject.toml`."""
        return peaks_as_toml(self.name, self.peaks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "toml": self.toml}


def measure_peaks(device: str | None = None, *, timed_s: float = TIMED_S) -> tuple[DevicePeaks, ...]:
    """Measure the processor and the accelerator in use, or the one device that is named.

    The fastest run of each counts: a peak is the device's best rate, not the usual one.

    Args:
        device: as `torch.device` takes it.
        timed_s: seconds for each size and type.

    Raises:
        ArgumentError: the device is not here.
    """
    names = [device] if device else list(dict.fromkeys(["cpu", default_device()]))
    return tuple(_peaks(require_device(name), timed_s) for name in names)


def _peaks(device: torch.device, timed_s: float) -> DevicePeaks:
    copied = min(COPIED.get(device.type, COPIED_ON_DEVICES), (free_bytes(device) or COPIED_ON_DEVICES) // 4)
    copy = measure_copy(str(device), copied, timed_s)
    rates, disturbed = [], busy(copy)
    for dtype in TYPES:
        if dtype == "tf32" and device.type != "cuda":
            continue
        rate, was_busy = _fastest(device, dtype, timed_s)
        rates += [rate] if rate else []
        disturbed = disturbed or was_busy
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    # What a copy reads and what it writes both go through the memory.
    return DevicePeaks(name, str(device), 2 * copied / copy.min_s, copied, tuple(rates), disturbed)


def _fastest(device: torch.device, dtype: str, timed_s: float) -> tuple[Rate | None, bool]:
    """Try ever larger products until they last long enough; None where the device lacks the type."""
    best: Rate | None = None
    disturbed = False
    size = SMALLEST
    while size <= LARGEST and 3 * size**2 * TYPES[dtype].itemsize < (free_bytes(device) or 1 << 33) // 2:
        try:
            a = torch.randn(size, size, device=device).to(TYPES[dtype])
            b, out = torch.randn(size, size, device=device).to(TYPES[dtype]), torch.empty_like(a)
            with _precision("high" if dtype == "tf32" else "highest"):
                found = measure(partial(torch.mm, a, b, out=out), max_time_s=timed_s)
        except (RuntimeError, TypeError):  # no kernel of the type: float64 on Apple's GPUs, float16 on some processors
            return best, disturbed
        disturbed = disturbed or busy(found)
        rate = Rate(dtype, size, found.min_s, 2 * size**3 / found.min_s)
        best = rate if best is None or rate.flops_per_s > best.flops_per_s else best
        if found.min_s >= LONG_ENOUGH_S:
            break
        size *= 2
    return best, disturbed


@contextmanager
def _precision(name: str) -> Iterator[None]:
    """Let products of float32 run as they are ("highest") or as TF32 ("high")."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
