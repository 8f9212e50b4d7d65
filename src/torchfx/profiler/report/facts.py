"""What a trace holds, in plain values with microseconds: file, window, devices, launches."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np

from torchfx.profiler.report.repairs import repairs
from torchfx.profiler.trace.model.device import DeviceWork
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["gpu_of", "launches_of", "trace_of", "window_of"]


def trace_of(trace: Trace, name: str = "") -> dict[str, Any]:
    """The file and what it says about itself; `name`: what to call it, its own name where empty."""
    info = trace.info
    return {
        "file": trace.file,
        "name": name or PurePath(trace.file).name or trace.file,
        "events": len(trace),
        "bytes": trace.size,
        "start_us": trace.span[0] / 1000,
        "devices": [{"id": device.id, "name": device.name} for device in info.devices],
        "vendor": info.vendor,
        "backend": info.backend,
        "rank": info.rank,
        "world_size": info.world_size,
        "recorded": sorted(info.flags),
        "repairs": repairs(trace),
    }


def window_of(trace: Trace) -> dict[str, Any]:
    """The time the findings and the breakdown speak of, and the steps in it."""
    window, steps = trace.window, trace.steps_found
    return {
        "name": window.name,
        "start_us": window.start / 1000,
        "duration_us": window.us,
        "gpu_span_us": trace.gpu.span_ns / 1000,
        "steps": [
            {
                "name": step.name,
                "start_us": step.start / 1000,
                "duration_us": step.duration / 1000,
                "until_device_idle_us": (step.device_end - step.start) / 1000,
            }
            for step in steps
        ],
        "inferred": bool(steps) and steps[0].inferred,
    }


def gpu_of(trace: Trace) -> list[dict[str, Any]]:
    """One entry for each device that worked: times between its first and last piece of work in the whole file."""
    return [_device(work, trace.info.device_name(work.device)) for work in trace.gpus]


def _device(work: DeviceWork, name: str) -> dict[str, Any]:
    times = {
        "span_us": work.span_ns,
        "busy_us": work.busy.total,
        "idle_us": work.idle.total,
        "compute_us": work.compute.total,
        "communication_us": work.communication.total,
        "exposed_communication_us": work.exposed_communication.total,
        "memcpy_us": work.copies.total,
        "exposed_memcpy_us": work.exposed_copies.total,
    }
    return {
        "device": work.device,
        "name": name,
        **{name: value / 1000 for name, value in times.items()},
        "kernels": len(work.kernels),
        "streams": len(work.streams),
    }


def launches_of(trace: Trace) -> dict[str, int]:
    """How the calls that launch kernels and the kernels fit together in the whole file."""
    links = trace.links
    kernels = trace.gpu.kernels
    return {
        "count": len(links.launches),
        "without_kernel": int(np.count_nonzero(links.work_count[links.launches] == 0)),
        "kernels_without_launch": int(np.count_nonzero(links.of(kernels) < 0)),
        "graph_launches": len(links.graph_launches),
    }
