"""Metadata of a trace: the program's devices, its rank, which events were recorded, and the recorder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Device", "Info", "read_info"]

_FLAGS: Final = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")


@dataclass(frozen=True)
class Device:
    """A GPU as `deviceProperties` describes it; 0 where a number is missing."""

    id: int
    name: str
    memory_bytes: int = 0
    capability: tuple[int, int] = (0, 0)
    multiprocessors: int = 0
    max_threads_per_multiprocessor: int = 0


@dataclass(frozen=True)
class Info:
    """The top level of a trace file.

    Attributes:
        devices: every GPU of the machine, used or not.
        rank, world_size, backend: from `distributedInfo`; None where it isn't recorded.
        flags: what was asked of the profiler, such as "with_stack".
        vendor: "nvidia", "amd" or "" where the file doesn't show it.
        recorder: what recorded the program, where it wasn't PyTorch's profiler, such as "Nsight Systems".
        recording_operators: how that recorder records the operators of PyTorch.
        base_ns: what to add to the times to get nanoseconds since 1970; 0 where times are absolute already.
        top: all top-level values, decoded.
    """

    devices: tuple[Device, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    flags: frozenset[str] = frozenset()
    vendor: str = ""
    recorder: str = ""
    recording_operators: str = ""
    base_ns: int = 0
    top: dict[str, Any] = field(default_factory=dict)

    def device_name(self, number: int) -> str:
        """The name of the device that work is filed under, "" where the file doesn't show it.

        ROCm numbers the processors too, so that its first GPU can be device 2: then no device of the file has that
        number, and the name is known only if all have the same.
        """
        names = {device.name for device in self.devices if device.id == number}
        names = names or {device.name for device in self.devices}
        return names.pop() if len(names) == 1 else ""

    @property
    def driver_version(self) -> int | None:
        """CUDA's version of the driver, such as 12040 for 12.4."""
        return _integer(self.top.get("cuda_driver_version"))

    @property
    def runtime_version(self) -> int | None:
        """CUDA's version of the runtime, such as 12040 for 12.4."""
        return _integer(self.top.get("cuda_runtime_version"))


def read_info(top: dict[str, str]) -> Info:
    """Read the top-level values, given as JSON text; what makes no sense is left out."""
    values = {key: _decoded(text) for key, text in top.items()}
    found = values.get("deviceProperties")
    devices = tuple(_device(item) for item in found if isinstance(item, dict)) if isinstance(found, list) else ()
    job = values.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    backend = job.get("backend")
    recorder = values.get("recorder")
    recorder = recorder if isinstance(recorder, dict) else {}
    return Info(
        devices,
        _integer(job.get("rank")),
        _integer(job.get("world_size")),
        str(backend) if backend else None,
        frozenset(flag for flag in _FLAGS if _integer(values.get(flag))),
        _vendor(values, devices),
        str(recorder.get("name", "")),
        str(recorder.get("operators", "")),
        _integer(values.get("baseTimeNanoseconds")) or 0,
        values,
    )


def _decoded(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (RecursionError, ValueError):
        return text


def _device(item: dict[str, Any]) -> Device:
    return Device(
        _integer(item.get("id")) or 0,
        str(item.get("name", "")),
        _integer(item.get("totalGlobalMem")) or 0,
        (_integer(item.get("computeMajor")) or 0, _integer(item.get("computeMinor")) or 0),
        _integer(item.get("numSms")) or 0,
        _integer(item.get("maxThreadsPerMultiprocessor")) or 0,
    )


def _vendor(values: dict[str, Any], devices: tuple[Device, ...]) -> str:
    names = " ".join(device.name for device in devices).upper()
    if "hip_runtime_version" in values or "roctracer_version" in values or "AMD" in names or "INSTINCT" in names:
        return "amd"
    if "cuda_runtime_version" in values or "cupti_version" in values or "NVIDIA" in names or "TESLA" in names:
        return "nvidia"
    return ""


def _integer(value: object) -> int | None:
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        return None
