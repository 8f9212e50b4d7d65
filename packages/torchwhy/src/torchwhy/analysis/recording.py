"""The recording, in plain values with microseconds: file, window, devices, launches."""

from __future__ import annotations

from pathlib import PurePath

import msgspec
import numpy as np

from torchwhy.analysis.repairs import Repair, repairs
from torchwhy.trace.derived.idle import shown_from
from torchwhy.trace.meaning.annotations import mark_of, step_label
from torchwhy.trace.model.device import DeviceWork
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import shared_path

__all__ = [
    "DeviceName",
    "DeviceTimes",
    "Launches",
    "StepTimes",
    "TraceFile",
    "WindowTimes",
    "devices_of",
    "launches_of",
    "trace_of",
    "window_of",
]


class DeviceName(msgspec.Struct, frozen=True):
    """A device as the file lists it."""

    id: int
    name: str


class TraceFile(msgspec.Struct, frozen=True):
    """The file and what it says about itself.

    Attributes:
        file: its path.
        name: what to call it.
        bytes: of the decompressed file.
        start_us: the first event, in the file's own time.
        recorder: what recorded the program where it wasn't PyTorch's profiler; "" otherwise.
        recorded: flags of the recording, such as "with_stack".
        repairs: what had to be repaired or left out.
    """

    file: str
    name: str
    events: int
    bytes: int
    start_us: float
    devices: tuple[DeviceName, ...]
    vendor: str
    backend: str | None
    rank: int | None
    world_size: int | None
    recorder: str
    recorded: tuple[str, ...]
    repairs: tuple[Repair, ...]


class StepTimes(msgspec.Struct, frozen=True):
    """A step on the host, and until the device has done the work begun in it."""

    name: str
    start_us: float
    duration_us: float
    until_device_idle_us: float

    @property
    def label(self) -> str:
        """The number of a step that the profiler's schedule knows of; the name of another one."""
        return step_label(self.name)

    @property
    def title(self) -> str:
        """The step for people: "step 5", or its name."""
        return self.name if self.label == self.name else f"step {self.label}"

    @property
    def mark(self) -> str:
        """The label or call that repeats, of an inferred step."""
        return mark_of(self.name)[0]

    @property
    def between(self) -> bool:
        """Whether the step was inferred from one mark to the next."""
        return mark_of(self.name)[1]


class WindowTimes(msgspec.Struct, frozen=True):
    """The time range of the findings and the breakdown, and its steps.

    Attributes:
        unshown_us: how much of its beginning the shares leave out, because the device's work was not recorded.
        inferred: whether the steps were found from repetition.
    """

    name: str
    start_us: float
    duration_us: float
    unshown_us: float
    gpu_span_us: float
    steps: tuple[StepTimes, ...]
    inferred: bool


class DeviceTimes(msgspec.Struct, frozen=True):
    """A device between its first and last piece of work in the whole file; exposed: nothing else ran meanwhile."""

    device: int
    name: str
    span_us: float
    busy_us: float
    idle_us: float
    compute_us: float
    communication_us: float
    exposed_communication_us: float
    memcpy_us: float
    exposed_memcpy_us: float
    kernels: int
    streams: int


class Launches(msgspec.Struct, frozen=True):
    """How the calls that launch kernels and the kernels fit together in the whole file."""

    count: int
    without_kernel: int
    kernels_without_launch: int
    graph_launches: int


def trace_of(trace: Trace, name: str = "") -> TraceFile:
    """Return what is known of the file; `name`: what to call it, its own name where empty."""
    info = trace.info
    return TraceFile(
        shared_path(_text(trace.file)),
        _text(name or PurePath(trace.file).name or trace.file),
        len(trace),
        trace.size,
        trace.span[0] / 1000,
        tuple(DeviceName(device.id, device.name) for device in info.devices),
        info.vendor,
        info.backend,
        info.rank,
        info.world_size,
        info.recorder,
        tuple(sorted(info.flags)),
        repairs(trace),
    )


def _text(path: str) -> str:
    """A path as text that can be encoded: a file's name may hold bytes that are not UTF-8."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def window_of(trace: Trace) -> WindowTimes:
    """Return the window's times, microseconds in the file's own time."""
    window, steps = trace.window, trace.steps_found
    return WindowTimes(
        window.name,
        window.start / 1000,
        window.us,
        (trace.derived(shown_from) - window.start) / 1000,
        trace.gpu.span_ns / 1000,
        tuple(
            StepTimes(step.name, step.start / 1000, step.duration / 1000, (step.device_end - step.start) / 1000)
            for step in steps
        ),
        bool(steps) and steps[0].inferred,
    )


def devices_of(trace: Trace) -> tuple[DeviceTimes, ...]:
    """Return the times of each device that worked."""
    return tuple(_device(work, trace.info.device_name(work.device)) for work in trace.gpus)


def _device(work: DeviceWork, name: str) -> DeviceTimes:
    return DeviceTimes(
        device=work.device,
        name=name,
        span_us=work.span_ns / 1000,
        busy_us=work.busy.total / 1000,
        idle_us=work.idle.total / 1000,
        compute_us=work.compute.total / 1000,
        communication_us=work.communication.total / 1000,
        exposed_communication_us=work.exposed_communication.total / 1000,
        memcpy_us=work.copies.total / 1000,
        exposed_memcpy_us=work.exposed_copies.total / 1000,
        kernels=len(work.kernels),
        streams=len(work.streams),
    )


def launches_of(trace: Trace) -> Launches:
    """Return the counts of launches and of kernels that fit no launch."""
    links, kernels = trace.links, trace.gpu.kernels
    return Launches(
        len(links.launches),
        int(np.count_nonzero(links.work_count[links.launches] == 0)),
        int(np.count_nonzero(links.of(kernels) < 0)),
        len(links.graph_launches),
    )
