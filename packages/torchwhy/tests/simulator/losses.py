"""What a recording may lack: each function takes a trace apart as profilers, filters and exporters do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

__all__ = ["LOSSES"]

Record = dict[str, Any]

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "ac2g"}
HOST = {"cpu_op", "python_function", "cuda_runtime", "user_annotation", "fwdbwd", "ac2g"}


def _keeping(trace: Record, kept: Callable[[Record], bool]) -> Record:
    return trace | {"traceEvents": [event for event in trace["traceEvents"] if kept(event)]}


def _span(trace: Record) -> tuple[float, float]:
    steps = [event for event in trace["traceEvents"] if event["name"].startswith("ProfilerStep#")]
    return min(event["ts"] for event in steps), max(event["ts"] + event["dur"] for event in steps)


def no_device(trace: Record) -> Record:
    """Activities without the device: launches are there, what they launched isn't."""
    return _keeping(trace, lambda event: event.get("cat") not in DEVICE)


def no_host(trace: Record) -> Record:
    """The device's work alone, as filters for viewers leave it."""
    return _keeping(trace, lambda event: event.get("cat") not in HOST)


def no_operators(trace: Record) -> Record:
    """Runtime calls and device work without operators, labels and frames."""
    return _keeping(trace, lambda event: event.get("cat") not in {"cpu_op", "python_function", "fwdbwd"})


def no_autograd_thread(trace: Record) -> Record:
    """The thread that runs the backward pass is missing."""
    main = next(event["tid"] for event in trace["traceEvents"] if event["name"].startswith("ProfilerStep#"))
    return _keeping(trace, lambda event: event.get("cat") not in HOST or event["tid"] == main)


def sampled(trace: Record) -> Record:
    """One of ten operators and pieces of work, chosen by chance."""
    drawn = {"cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset"}
    return _keeping(
        trace,
        lambda event: event.get("cat") not in drawn or crc32(f"{event['ts']} {event['name']}".encode()) % 10 == 0,
    )


def device_cut_at_the_end(trace: Record) -> Record:
    """The device's buffers of the second half are lost."""
    begin, end = _span(trace)
    return _keeping(trace, lambda event: event.get("cat") not in DEVICE or event["ts"] < (begin + end) / 2)


def device_cut_at_the_start(trace: Record) -> Record:
    """The device's buffers of the first half are lost."""
    begin, end = _span(trace)
    return _keeping(trace, lambda event: event.get("cat") not in DEVICE or event["ts"] >= (begin + end) / 2)


def device_cut_in_the_middle(trace: Record) -> Record:
    """The device's buffers of the middle third are lost, but for copies: they come in buffers of their own."""
    begin, end = _span(trace)
    first, last = (2 * begin + end) / 3, (begin + 2 * end) / 3
    lost = DEVICE - {"gpu_memcpy"}
    return _keeping(trace, lambda event: event.get("cat") not in lost or not first <= event["ts"] < last)


LOSSES = {
    loss.__name__: loss
    for loss in (
        no_device,
        no_host,
        no_operators,
        no_autograd_thread,
        sampled,
        device_cut_at_the_end,
        device_cut_at_the_start,
        device_cut_in_the_middle,
    )
}
