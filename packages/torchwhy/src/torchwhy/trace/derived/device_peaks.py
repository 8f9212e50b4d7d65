"""Peak rates of the devices of a trace."""

from __future__ import annotations

from typing import Final

import numpy as np

from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.peaks import Peaks, assumed_peaks, peaks_of

__all__ = ["data_sheet", "device_name", "used_peaks"]

_NAMELESS: Final = ("", "AMD Radeon Graphics", "NVIDIA Graphics Device")
"""Drivers' names for a device that they don't know."""


def data_sheet(trace: Trace) -> Peaks | None:
    """The data sheet's figures of the devices in use; None if they differ or aren't known.

    Where the file has no name for them, those of the device that usually has the chip in the kernels' names. ROCm
    counts processors too when it numbers the devices of kernels, so these may not be among the file's devices.
    """
    name = device_name(trace)
    if name not in _NAMELESS:
        return peaks_of(name)
    if len({device.name for device in trace.info.devices}) > 1:
        return None
    events = trace.events
    return assumed_peaks(events.texts[i] for i in np.unique(events.name[events.rows(Kind.KERNEL)]).tolist() if i >= 0)


def used_peaks(trace: Trace) -> Peaks | None:
    """The figures that findings are measured against: those the trace was given, else the data sheet's."""
    return trace.given_peaks or data_sheet(trace)


def device_name(trace: Trace) -> str:
    """The name of the devices that worked; "" if the file gives no name, or several."""
    used = {gpu.device for gpu in trace.gpus}
    names = {device.name for device in trace.info.devices if device.id in used}
    names = names or {device.name for device in trace.info.devices}
    return names.pop() if len(names) == 1 else ""
