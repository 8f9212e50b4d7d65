"""Where counts were taken: what else would change them besides the program."""

from __future__ import annotations

import platform

__all__ = ["environment"]


def environment() -> dict[str, str]:
    """Return versions, processor kind and device: counts compare only where these agree.

    >>> sorted(environment())
    ['device', 'machine', 'python', 'runtime', 'system', 'torch']
    """
    import torch

    version = torch.version
    used = torch.cuda.is_initialized()
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "torch": str(torch.__version__),
        "runtime": f"CUDA {version.cuda}" if version.cuda else f"ROCm {version.hip}" if version.hip else "none",
        "device": torch.cuda.get_device_name() if used else "cpu",
        "system": platform.system(),
        "machine": platform.machine(),
    }
