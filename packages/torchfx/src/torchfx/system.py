"""The parts of this installation: versions, threads, instruction set, GPU, and which path serves which device."""

from __future__ import annotations

import os
import platform
from importlib import metadata

import torch

from torchfx._ops import rows

__all__ = ["describe"]

PACKAGES = ("torchfx", "torch", "numpy", "scipy", "soundfile")


def describe() -> dict[str, str]:
    """Return facts about the installation by name, as text, in the order to show them."""
    facts = {package: _version(package) for package in PACKAGES}
    facts["python"] = f"{platform.python_version()} ({platform.system()} {platform.machine()})"
    facts["threads"] = f"{torch.get_num_threads()} of {os.cpu_count()} processors"
    forward = next(row for row in rows if row.operator == "sos_forward")
    facts["cpu path"] = forward.text("cpu")
    facts["gpu"] = _gpu()
    facts["gpu path"] = forward.text("cuda")
    for row in rows:
        facts[row.operator] = ", ".join(f"{device}: {file}" for device, file in row.backends.items())
    return facts


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _gpu() -> str:
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        stack = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
        return f"{', '.join(names)} ({stack})"
    return "none that PyTorch can use"
