"""Whether a case can run on this machine, before anything runs and without warming anything up."""

from __future__ import annotations

from pathlib import Path

import torch

from torchwhy.errors import ArgumentError
from torchwhy.experiment.case import Case
from torchwhy.experiment.workload import Workload

__all__ = ["free_bytes", "require_device", "require_runnable"]


def require_runnable(workload: Workload, case: Case) -> None:
    """Raise ArgumentError, in one line, if the device is missing, lacks the dtype, or the size exceeds its memory."""
    device = require_device(case.device)
    if case.dtype == "fp64" and device.type == "mps":
        raise ArgumentError("dtype fp64 is not supported on mps; use fp32")
    if case.dtype == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise ArgumentError(f"dtype bf16 is not supported on {torch.cuda.get_device_name(device)}; use fp16 or fp32")
    needed = workload.tensors * case.torch_dtype.itemsize * (case.batch or 1) * case.size**2
    free = free_bytes(device)
    if free is not None and needed > free:
        raise ArgumentError(
            f"size {case.size} needs {needed / 2**30:,.1f} GiB, {case.device} has {free / 2**30:,.1f} GiB free"
        )


def require_device(name: str) -> torch.device:
    """Return the device; ArgumentError, with those there are, if PyTorch cannot use it here.

    >>> require_device("cpu")
    device(type='cpu')
    """
    present = _devices_here()
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ArgumentError(f"device must be one of {', '.join(present)}, got {name!r}") from error
    if device.type not in present:
        raise ArgumentError(
            f"device {name!r} is not here: PyTorch {torch.__version__} can use {', '.join(present)} on this machine"
        )
    if device.index is not None and device.type != "cpu" and device.index >= torch.accelerator.device_count():
        raise ArgumentError(f"device {name!r} is not here: there are {torch.accelerator.device_count()} {device.type}")
    return device


def free_bytes(device: torch.device) -> int | None:
    """Return the memory still free on a device, or None where that cannot be asked."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    meminfo = Path("/proc/meminfo")  # what Linux can free for us; other systems have no such number
    if device.type == "cpu" and meminfo.exists():
        fields = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    return None


def _devices_here() -> list[str]:
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return ["cpu"] if accelerator is None else ["cpu", accelerator.type]
