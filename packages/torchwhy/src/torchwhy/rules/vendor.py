"""Vendors' names of the same thing, for advice that fits the device."""

from __future__ import annotations

from torchwhy.trace.meaning.kernels.name import function_name
from torchwhy.trace.model.trace import Trace

__all__ = ["counters_of", "loading_at_start", "matrix_units", "profilers"]


def loading_at_start(trace: Trace) -> str:
    """Return the setting that loads all kernels when the process starts, instead of each at its first use."""
    return "HIP_ENABLE_DEFERRED_LOADING=0" if trace.info.vendor == "amd" else "CUDA_MODULE_LOADING=EAGER"


def matrix_units(trace: Trace) -> str:
    """Return what the units for matrix products are called."""
    return "matrix cores" if trace.info.vendor == "amd" else "tensor cores"


def profilers(trace: Trace) -> str:
    """Return tools that take the tracing interface for themselves."""
    return "rocprofv3" if trace.info.vendor == "amd" else "Nsight Compute, DCGM"


def counters_of(trace: Trace, kernel: str) -> str:
    """Return the command that reads the device's counters while a kernel of this name runs; "" for an odd name."""
    function = function_name(kernel)
    if not function:
        return ""
    if trace.info.vendor == "amd":
        return f"rocprof-compute profile -n {function[:20]} -k {function} -- python PROGRAM"
    return f"ncu --set full -k {function} -c 1 python PROGRAM" if trace.info.vendor == "nvidia" else ""
