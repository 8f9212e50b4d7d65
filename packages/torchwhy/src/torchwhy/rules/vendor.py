"""What the makers of devices call one thing, for advice that fits the device."""

from __future__ import annotations

from torchwhy.trace.model.trace import Trace

__all__ = ["loading_at_start", "matrix_units", "profilers"]


def loading_at_start(trace: Trace) -> str:
    """Return the setting that loads all kernels when the process starts, instead of each at its first use."""
    return "HIP_ENABLE_DEFERRED_LOADING=0" if trace.info.vendor == "amd" else "CUDA_MODULE_LOADING=EAGER"


def matrix_units(trace: Trace) -> str:
    """Return what the units for matrix products are called."""
    return "matrix cores" if trace.info.vendor == "amd" else "tensor cores"


def profilers(trace: Trace) -> str:
    """Return tools that take the tracing interface for themselves."""
    return "rocprofv3" if trace.info.vendor == "amd" else "Nsight Compute, DCGM"
