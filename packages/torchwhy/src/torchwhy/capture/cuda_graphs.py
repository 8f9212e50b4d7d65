"""Old CUDA drivers crash or lose kernels when a profiler starts after CUDA graphs; starting one early avoids it.

The limits, driver 525.85.12 and CUDA 12, are those PyTorch documents for `torch.profiler._utils._init_for_cuda_graphs`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["apply", "driver_version", "needed"]

FIRST_GOOD_DRIVER = (525, 85, 12)
FIRST_GOOD_CUDA = (12,)
DRIVER_FILE = Path("/proc/driver/nvidia/version")


def needed(driver: str | None, cuda: str | None) -> bool:
    """Whether this driver and this CUDA need the workaround; None means that none exists.

    >>> needed("525.60.13", "12.1"), needed("535.104.05", "11.8"), needed("535.104.05", "12.1"), needed(None, "11.8")
    (True, True, False, False)
    """
    if driver is None or cuda is None:
        return False
    return _numbers(driver) < FIRST_GOOD_DRIVER or _numbers(cuda) < FIRST_GOOD_CUDA


def driver_version(file: Path = DRIVER_FILE) -> str | None:
    """Version of the NVIDIA driver, read without waking the driver up; None without a driver."""
    if not file.is_file():
        return None
    found = re.search(r"\b\d+\.\d+(\.\d+)?\b", file.read_text())
    return found.group() if found else None


def apply() -> None:
    """Keep CUPTI loaded from now on, and load it, before any CUDA graph is captured."""
    from torch.autograd.profiler import profile

    os.environ["DISABLE_CUPTI_LAZY_REINIT"] = "1"
    os.environ["TEARDOWN_CUPTI"] = "0"
    with profile():
        pass


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
