"""The machine and the settings a capture ran under, so that two captures can be compared or refused."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from torchwhy.capture.cuda_graphs import driver_version
from torchwhy.processors import usable_processors

__all__ = ["describe"]

# Variables that change speed; others, which may hold secrets, are left out.
PREFIXES = ("CUDA_", "CUBLAS_", "CUDNN_", "KMP_", "MKL_", "NCCL_", "OMP_", "PYTORCH_", "TORCHDYNAMO_", "TORCHINDUCTOR_")
NAMES = ("DISABLE_CUPTI_LAZY_REINIT", "TEARDOWN_CUPTI", "RANK", "LOCAL_RANK", "WORLD_SIZE", "PYTHONOPTIMIZE")
CLOCKS = ("name", "clocks.sm", "clocks.max.sm", "clocks.mem", "clocks.max.mem", "power.limit", "persistence_mode")
QUERY_SECONDS = 10


def describe() -> dict[str, Any]:
    """Versions, devices, clocks, settings of PyTorch and the environment variables that change speed."""
    import torch

    return {
        "versions": {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version() if torch.cuda.is_initialized() else None,
            "driver": driver_version(),
            "platform": platform.platform(),
        },
        "host": platform.node(),
        "cpu": {"name": _cpu_name(), "cores": os.cpu_count(), "usable": usable_processors(), "governor": _governor()},
        "gpus": _gpus() if torch.cuda.is_initialized() else [],
        "settings": _settings(),
        "variables": {name: value for name, value in sorted(os.environ.items()) if _matters(name)},
        "executable": sys.executable,
    }


def _settings() -> dict[str, Any]:
    import torch

    return {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "default_dtype": str(torch.get_default_dtype()),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "anomaly_detection": torch.is_anomaly_enabled(),
    }


def _gpus() -> list[dict[str, str]]:
    """What nvidia-smi says of each GPU: clocks in MHz now and at most, power limit in W."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, f"--query-gpu={','.join(CLOCKS)}", "--format=csv,noheader,nounits"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=QUERY_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = ran.stdout.splitlines() if ran.returncode == 0 else []
    return [dict(zip(CLOCKS, (value.strip() for value in line.split(",")), strict=False)) for line in lines]


def _matters(name: str) -> bool:
    return name.startswith(PREFIXES) or name in NAMES


def _cpu_name() -> str:
    file = Path("/proc/cpuinfo")
    if file.is_file():
        for line in file.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _governor() -> str | None:
    file = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return file.read_text().strip() if file.is_file() else None
