"""The devices of this machine: which there are, and how much memory is free on them."""

from __future__ import annotations

from pathlib import Path

import torch

from torchwhy.errors import ArgumentError

__all__ = ["default_device", "free_bytes", "require_device"]


def default_device() -> str:
    """Return the type of the accelerator that PyTorch can use, or `cpu`."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return "cpu" if accelerator is None else accelerator.type


def require_device(name: str) -> torch.device:
    """Return the device; ArgumentError, with those there are, if PyTorch cannot use it here.

    >>> require_device("cpu")
    device(type='cpu')
    """
    present = ", ".join(dict.fromkeys(["cpu", default_device()]))
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ArgumentError(f"device must be one of {present}, got {name!r}") from error
    if device.type not in present.split(", "):
        raise ArgumentError(
            f"device {name!r} is not here: PyTorch {torch.__version__} can use {present} on this machine"
        )
    if device.type != "cpu" and (device.index or 0) >= torch.accelerator.device_count():
        raise ArgumentError(f"device {name!r} is not here: there are {torch.accelerator.device_count()} {device.type}")
    return device


def free_bytes(device: torch.device) -> int | None:
    """Return the memory still free on a device, or None where that cannot be asked."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    meminfo = Path("/proc/meminfo")  # Linux; other systems have no such number
    if device.type == "cpu" and meminfo.exists():
        fields = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    return None
