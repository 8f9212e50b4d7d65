"""Operator tables: recorded events added up by name, by input shapes and by the Python line that called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchfx.profiler.capture.frames import program_frames

__all__ = ["GROUPINGS", "OperatorRow", "is_on_cpu", "is_step", "kind_of", "tabulate"]

STACK_DEPTH = 5  # frames of the program kept by stack


@dataclass(frozen=True)
class OperatorRow:
    """One line of a table; times in microseconds, memory in bytes, both summed over all calls.

    Attributes:
        name: operator, annotation or kernel.
        kind: "operator", "annotation" (a `record_function` range; its own time is Python), or "kernel" (on a device).
        calls: how often it ran in the recorded windows.
        self_cpu_us: time on the CPU outside the operators it calls.
        cpu_us: time on the CPU, including them. Recursive operators count twice.
        self_device_us: time of the kernels it launched itself, or of the kernel itself.
        device_us: the same including the operators it calls.
        self_cpu_bytes: allocated minus released on the CPU, by itself; 0 where memory was not recorded.
        self_device_bytes: the same on the device.
        flops: estimated floating point operations; 0 where not recorded or not known.
        shapes: input sizes, in the table by shape.
        stack: Python frames outside PyTorch, innermost first, in the table by stack.
    """

    name: str
    kind: str
    calls: int
    self_cpu_us: float
    cpu_us: float
    self_device_us: float
    device_us: float
    self_cpu_bytes: int
    self_device_bytes: int
    flops: int
    shapes: str = ""
    stack: tuple[str, ...] = ()


class _Key(NamedTuple):
    name: str
    kind: str
    shapes: str
    stack: tuple[str, ...]


@dataclass
class _Sum:
    calls: int = 0
    times: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    counts: tuple[int, int, int] = (0, 0, 0)

    def add(self, event: Any, kind: str) -> None:
        self.calls += 1
        if kind == "kernel":
            _, _, own, whole = self.times
            duration = event.time_range.elapsed_us()
            self.times = 0.0, 0.0, own + duration, whole + duration
            return
        self_cpu, cpu, self_device, device = self.times
        self.times = (
            self_cpu + event.self_cpu_time_total,
            cpu + event.cpu_time_total,
            self_device + event.self_device_time_total,
            device + event.device_time_total,
        )
        on_cpu, on_device, flops = self.counts
        self.counts = (
            on_cpu + event.self_cpu_memory_usage,
            on_device + event.self_device_memory_usage,
            flops + int(event.flops or 0),
        )


def _shapes(event: Any) -> str:
    return str(event.input_shapes) if event.input_shapes else ""


def _stack(event: Any) -> tuple[str, ...]:
    return program_frames(event.stack, STACK_DEPTH) if event.stack else ()


GROUPINGS: dict[str, Callable[[Any], tuple[str, tuple[str, ...]]]] = {
    "name": lambda event: ("", ()),
    "shape": lambda event: (_shapes(event), ()),
    "stack": lambda event: ("", _stack(event)),
}


def is_step(event: Any) -> bool:
    """Whether an event is the frame around one step."""
    return str(event.name).startswith("ProfilerStep")


def is_on_cpu(event: Any) -> bool:
    """Whether an event happened on the CPU."""
    return bool(event.device_type.name == "CPU")


def kind_of(event: Any) -> str | None:
    """The kind of row an event belongs to; None for steps, Python frames, bare memory events and echoes on the GPU."""
    if is_step(event) or event.name == "[memory]" or getattr(event, "is_python_function", False):
        return None
    if not is_on_cpu(event):
        return None if event.is_user_annotation else "kernel"
    return "annotation" if event.is_user_annotation else "operator"


def tabulate(events: Iterable[Any], grouping: str) -> list[OperatorRow]:
    """Add events up, the most expensive first: by time of their own on a device, then on the CPU.

    Args:
        events: `FunctionEvent`s of all windows.
        grouping: "name", "shape" or "stack".
    """
    group = GROUPINGS[grouping]
    sums: dict[_Key, _Sum] = {}
    for event in events:
        kind = kind_of(event)
        if kind is not None:
            sums.setdefault(_Key(event.name, kind, *group(event)), _Sum()).add(event, kind)
    rows = [
        OperatorRow(key.name, key.kind, total.calls, *total.times, *total.counts, key.shapes, key.stack)
        for key, total in sums.items()
    ]
    return sorted(rows, key=lambda row: (-row.self_device_us, -row.self_cpu_us, row.name))
