"""One warning per kind of device when a GPU tensor is served by the plain PyTorch reference."""

from __future__ import annotations

import warnings

import torch

__all__ = ["warn_once"]

_warned: set[str] = set()


def warn_once(device: torch.device) -> None:
    """Warn the first time a device other than the CPU runs the reference path."""
    if device.type in {"cpu", "meta"} or device.type in _warned:
        return
    _warned.add(device.type)
    warnings.warn(
        f"torchfx has no native kernel for {device.type!r} tensors here: the plain PyTorch reference runs, which is "
        f"exact but slow; `torchfx info` shows what is in use",
        RuntimeWarning,
        stacklevel=3,
    )
