"""Tables of a run: operators, call paths for flame graphs, memory over time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from torchwhy.capture.folder import add_file
from torchwhy.capture.operators import OperatorRow, OperatorsFile, table
from torchwhy.capture.step_counts import FlopsFile
from torchwhy.loading.trace import LoadedTrace
from torchwhy.schema import SCHEMA
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.meaning.annotations import STEP
from torchwhy.trace.meaning.frames import INSIDE_PYTORCH, program_path
from torchwhy.trace.meaning.kinds import GPU_WORK, Kind
from torchwhy.trace.tables.grouping import Groups, us

__all__ = ["MemoryTimeline", "write_tables"]

STACK_DEPTH: Final = 5
"""Frames of the program that are kept by stack."""

_DEEPEST: Final = 1000
"""Frames in which those of the program are looked for."""

_NUMBERS: Final = [field.name for field in fields(OperatorRow) if field.name not in {"name", "kind", "shapes", "stack"}]


@dataclass(frozen=True)
class MemoryTimeline:
    """Memory of one device in one window.

    Attributes:
        device: such as "cpu" or "cuda:0".
        window: number of the window, from 1.
        peak_bytes: peak of allocated memory. On the CPU, memory allocated before the window does not count, so totals
            can be negative when it is released.
        time_us: microseconds since the first event of the window.
        allocated_bytes: in use after each event.
        reserved_bytes: held by the caching allocator after each event; 0 without a caching allocator.
    """

    device: str
    window: int
    peak_bytes: int
    time_us: tuple[float, ...]
    allocated_bytes: tuple[int, ...]
    reserved_bytes: tuple[int, ...]


class MemoryFile(msgspec.Struct, frozen=True):
    """`memory.json`."""

    schema: int
    timelines: tuple[MemoryTimeline, ...]


def write_tables(folder: Path, traces: Sequence[LoadedTrace]) -> tuple[OperatorRow, ...]:
    """Write the tables for the recorded data, summed over windows; return the rows by name.

    `operators.json` and `.txt`; `operators_by_shape` with shapes; `operators_by_stack`, `stacks_cpu.folded` and
    `stacks_gpu.folded` with stacks; `memory.json` with memory.

    Args:
        folder: of the run.
        traces: its windows.

    Raises:
        OSError: a file cannot be written.
    """
    flops = _flops(folder / "flops.json")
    by_shape = [row for trace in traces for row in _operators(trace, by_shape=True)]
    by_shape = [replace(row, flops=flops[row.name, row.shapes]) for row in _summed(by_shape)]
    others = [row for trace in traces for row in (*_labels(trace), *_kernels(trace))]
    by_name = [row for trace in traces for row in _operators(trace)]
    sums: Counter[str] = Counter()
    for (name, _), number in flops.items():
        sums[name] += number
    rows = _write(folder, "operators", [replace(row, flops=sums[row.name]) for row in _summed([*by_name, *others])])
    if any(row.shapes for row in by_shape):
        _write(folder, "operators_by_shape", [*by_shape, *_summed(others)])
    if any(trace.has_stacks for trace in traces):
        by_stack = [row for trace in traces for row in _operators(trace, by_stack=_DEEPEST)]
        _write(folder, "operators_by_stack", [*_summed(by_stack), *_summed(others)])
        add_file(folder / "stacks_cpu.folded", _folded(traces, "host"))
        if any(trace.has_gpu for trace in traces):
            add_file(folder / "stacks_gpu.folded", _folded(traces, "device"))
    timelines = [line for number, trace in enumerate(traces, 1) for line in _timelines(trace, number)]
    if timelines:
        _write_json(folder / "memory.json", MemoryFile(SCHEMA, tuple(timelines)))
    return rows


def _write(folder: Path, name: str, rows: Iterable[OperatorRow]) -> tuple[OperatorRow, ...]:
    """Write rows, the most expensive first: by self time on a device, then on the CPU."""
    found = tuple(sorted(rows, key=lambda row: (-row.self_device_us, -row.self_cpu_us, row.name)))
    _write_json(folder / f"{name}.json", OperatorsFile(SCHEMA, found))
    add_file(folder / f"{name}.txt", table(found) + "\n")
    return found


def _write_json(path: Path, content: OperatorsFile | MemoryFile) -> None:
    data = msgspec.json.encode(content)
    add_file(path, msgspec.json.format(data, indent=1 if len(data) < 1 << 20 else 0).decode() + "\n")


def _flops(file: Path) -> Counter[tuple[str, str]]:
    if not file.is_file():
        return Counter()
    read = msgspec.json.decode(file.read_bytes(), type=FlopsFile)
    return Counter({(row.name, row.shapes): row.flops for row in read.flops})


def _operators(trace: LoadedTrace, *, by_shape: bool = False, by_stack: int = 0) -> Iterator[OperatorRow]:
    for row in trace.ops(by_shape=by_shape, by_stack=by_stack):
        shapes = row.get("input_dims", "").replace(",", ", ")
        yield OperatorRow(
            row["name"], "operator", row["calls"], row["host_self_us"], row["host_total_us"],
            row["device_self_us"], row["device_total_us"], row.get("host_self_bytes", 0),
            row.get("device_self_bytes", 0), 0, shapes, _program_frames(row.get("stack", "")),
        )  # fmt: skip


def _labels(trace: LoadedTrace) -> Iterator[OperatorRow]:
    """Annotations except for steps, and calls of the device's runtime."""
    events, tree, time = trace.events, trace.calls, trace.derived(device_time)
    for kind, named in ((Kind.ANNOTATION, "annotation"), (Kind.RUNTIME, "operator")):
        rows = events.rows(kind)
        rows = rows[~events.are(STEP, rows)]
        groups = Groups(events.name[rows])
        outer = np.zeros(len(events), np.bool_)
        outer[tree.outermost_of_name(rows)] = True
        own, whole = groups.sum(tree.self_time[rows]), groups.sum(np.where(outer[rows], events.dur[rows], 0))
        device, total = groups.sum(time.own[rows]), groups.sum(np.where(outer[rows], time.total[rows], 0))
        columns = (us(own), us(whole), us(device), us(total))
        for place, first in enumerate(rows[groups.first].tolist()):
            a, b, c, d = (float(column[place]) for column in columns)
            yield OperatorRow(trace.name(first), named, int(groups.count[place]), a, b, c, d, 0, 0, 0)


def _kernels(trace: LoadedTrace) -> Iterator[OperatorRow]:
    """Work of devices."""
    events = trace.events
    rows = events.rows(*GPU_WORK)
    groups = Groups(events.name[rows])
    spent = us(groups.sum(events.dur[rows])).tolist()
    for first, calls, time in zip(rows[groups.first].tolist(), groups.count.tolist(), spent, strict=True):
        yield OperatorRow(trace.name(first), "kernel", calls, 0.0, 0.0, time, time, 0, 0, 0)


def _summed(rows: Iterable[OperatorRow]) -> list[OperatorRow]:
    """Rows of one name, kind, shapes and stack as one."""
    sums: dict[tuple[str, str, str, tuple[str, ...]], OperatorRow] = {}
    for row in rows:
        key = (row.name, row.kind, row.shapes, row.stack)
        known = sums.get(key)
        if known is None:
            sums[key] = row
        else:
            sums[key] = replace(known, **{name: getattr(known, name) + getattr(row, name) for name in _NUMBERS})
    return list(sums.values())


def _timelines(trace: LoadedTrace, window: int) -> Iterator[MemoryTimeline]:
    memory = trace.memory()
    if not len(memory):
        return
    devices, start = np.array(memory["device"]), np.asarray(memory["start_us"])
    allocated, reserved = np.asarray(memory["allocated_bytes"]), np.asarray(memory["reserved_bytes"])
    for device in sorted(set(devices.tolist())):
        at = devices == device
        yield MemoryTimeline(
            device,
            window,
            int(allocated[at].max()),
            tuple((start[at] - start[0]).tolist()),
            tuple(allocated[at].tolist()),
            tuple(reserved[at].tolist()),
        )


def _folded(traces: Sequence[LoadedTrace], metric: str) -> str:
    """Lines `outermost;...;innermost microseconds`, the most first, from the program's first frame on."""
    totals: Counter[str] = Counter()
    for trace in traces:
        for row in trace.stacks(metric):
            totals[re.sub(r"\s", "_", row["stack"])] += row["time_us"]
    return "".join(f"{path} {time:.0f}\n" for path, time in totals.most_common() if round(time) > 0)


def _program_frames(stack: str) -> tuple[str, ...]:
    """The innermost frames outside PyTorch, innermost first; those inside it where there are no others."""
    path = program_path(stack.split(" < ")[::-1])[::-1] if stack else []
    outside = [frame for frame in path if not frame.startswith(INSIDE_PYTORCH)]
    return tuple((outside or path)[:STACK_DEPTH])
