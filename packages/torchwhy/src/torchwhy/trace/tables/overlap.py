"""Overlap of computation, communication and copies: `trace.overlap()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.device import DeviceWork
    from torchwhy.trace.model.trace import Trace

__all__ = ["overlap"]

COLUMNS: Final = (
    "device",
    "window_us",
    "busy_us",
    "idle_us",
    "compute_us",
    "communication_us",
    "copies_us",
    "compute_and_communication_us",
    "compute_and_copies_us",
    "communication_and_copies_us",
    "exposed_communication_us",
    "exposed_copies_us",
)


def overlap(trace: Trace) -> Table:
    """Return the overlap of computation, communication and copies on each device, within the window.

    Returns:
        `device`; `window_us`; `busy_us`: anything ran; `idle_us`: nothing; `compute_us`, `communication_us` and
        `copies_us`: kernels and fills, kernels that exchange data between ranks, copies;
        `compute_and_communication_us`, `compute_and_copies_us` and `communication_and_copies_us`: both at once;
        `exposed_communication_us`: communication without computing; `exposed_copies_us`: copies with neither.
    """
    return Table.of([_row(trace, gpu) for gpu in trace.gpus], COLUMNS)


def _row(trace: Trace, gpu: DeviceWork) -> dict[str, object]:
    start, end = trace.window.start, trace.window.end
    compute, communication, copies = (part.clip(start, end) for part in (gpu.compute, gpu.communication, gpu.copies))
    busy = gpu.busy.clip(start, end).total
    return {
        "device": gpu.device,
        "window_us": trace.window.us,
        "busy_us": busy / 1000,
        "idle_us": (end - start - busy) / 1000,
        "compute_us": compute.total / 1000,
        "communication_us": communication.total / 1000,
        "copies_us": copies.total / 1000,
        "compute_and_communication_us": (compute & communication).total / 1000,
        "compute_and_copies_us": (compute & copies).total / 1000,
        "communication_and_copies_us": (communication & copies).total / 1000,
        "exposed_communication_us": (communication - compute).total / 1000,
        "exposed_copies_us": (copies - (compute | communication)).total / 1000,
    }
