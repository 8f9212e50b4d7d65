"""ROCm's rocpd databases, which rocprofv3 writes by default (`*_results.db`).

The schema is projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd in github.com/ROCm/rocm-systems. Its tables
change between versions 3 and 4; its views `kernels`, `memory_copies` and `regions` are in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from torchwhy.errors import TraceError
from torchwhy.trace.file.recorders.database import Database
from torchwhy.trace.file.recorders.recorder import DatabaseRecorder, Numbering
from torchwhy.trace.file.recorders.trace_text import copy_name, event, integer, label, stream_names

__all__ = ["ROCPROFILER", "Streams", "blocks", "copied_way"]

KERNELS: Final = "kernels"
COPIES: Final = "memory_copies"
CALLS: Final = "regions"
AGENTS: Final = "rocpd_info_agent"
SIZES: Final = ("grid_x", "grid_y", "grid_z", "workgroup_x", "workgroup_y", "workgroup_z")
OLDER: Final = {"rocpd_api", "rocpd_op"}
"""Tables of rocmProfileData (rpd), which has another schema."""

Streams = dict[tuple[int | None, int | None], None]
"""Pairs of device and stream, in their order."""

_PLACES: Final = {"HOST": "H", "DEVICE": "D"}


def copied_way(name: str) -> str:
    """Return "HtoD" for "MEMORY_COPY_HOST_TO_DEVICE"; "" where the name doesn't show it."""
    source, _, target = name.removeprefix("MEMORY_COPY_").partition("_TO_")
    return f"{_PLACES[source]}to{_PLACES[target]}" if source in _PLACES and target in _PLACES else ""


def blocks(threads: Sequence[int | None], block: Sequence[int | None]) -> dict[str, list[int]]:
    """Return grid and block of a kernel; AMD's recorder counts the grid in threads, PyTorch's profiler in blocks.

    >>> blocks([1024, 2, 1], [256, 1, 1])
    {'grid': [4, 2, 1], 'block': [256, 1, 1]}
    """
    known = [part for part in block if part is not None and part > 0]
    whole = [size for size in threads if size is not None]
    if len(known) != len(block) or len(whole) != len(threads):
        return {}
    return {"grid": [-(-size // part) for size, part in zip(whole, known, strict=True)], "block": known}


def _check(database: Database) -> None:
    if database.tables >= OLDER:
        raise TraceError(
            f"{database.name} is a database of rocmProfileData, which is not read: rpd2tracing.py makes JSON of it"
        )
    missing = [view for view in (KERNELS, CALLS) if view not in database.tables]
    if missing:
        raise TraceError(f"{database.name} is a rocpd database without the view {' and the view '.join(missing)}")


def _top(database: Database) -> dict[str, Any]:
    devices = [
        {"id": integer(index), "name": str(product or name), "numSms": _extra(extra, "cu_count")}
        for kind, index, product, name, extra in database.rows(
            AGENTS, ("type", "type_index", "product_name", "name", "extdata")
        )
        if kind == "GPU"
    ]
    found: dict[str, Any] = {"hip_runtime_version": 0}
    return found | ({"deviceProperties": devices} if devices else {})


def _events(database: Database) -> Iterator[str]:
    highest: dict[object, int] = {}
    for process, number in database.rows(CALLS, ("guid|pid", "stack_id")):
        last = integer(number)
        if last is not None and last > highest.get(process, -1):
            highest[process] = last
    numbering = Numbering(highest)
    streams: Streams = {}
    yield from _regions(database, numbering)
    yield from _kernels(database, numbering, streams)
    yield from _copies(database, numbering, streams)
    yield from stream_names(streams)


def _regions(database: Database, numbering: Numbering) -> Iterator[str]:
    columns = ("start", "end", "name", "category", "pid", "tid", "stack_id", "guid|pid", "extdata")
    for row in database.rows(CALLS, columns, ("start", "end", "name")):
        category, where = str(row[3]), (integer(row[4]), integer(row[5]))
        times = integer(row[0]), integer(row[1])
        if category.startswith("MARKER"):
            yield label(str(_extra(row[8], "message") or row[2]), *where, *times)
            continue
        arguments = {"correlation": numbering.of(row[7], integer(row[6]))}
        known = "hip_runtime" if category.startswith("HIP") else category.lower()
        yield event(known, str(row[2]), *where, *times, arguments)


def _kernels(database: Database, numbering: Numbering, streams: Streams) -> Iterator[str]:
    columns = ("start", "end", "name", "guid|pid", "agent_type_index", "stream_id", "queue_id", "stack_id")
    for row in database.rows(KERNELS, (*columns, "lds_size|lds_block_size", *SIZES), ("start", "end", "name")):
        device, stream, queue, correlation, shared = (integer(value) for value in row[4:9])
        streams[device, stream] = None
        arguments = {
            "device": device,
            "stream": stream,
            "queue": queue,
            "correlation": numbering.of(row[3], correlation),
            "shared memory": shared,
            **blocks([integer(value) for value in row[9:12]], [integer(value) for value in row[12:]]),
        }
        yield event("kernel", str(row[2]), device, stream, integer(row[0]), integer(row[1]), arguments)


def _copies(database: Database, numbering: Numbering, streams: Streams) -> Iterator[str]:
    columns = ("start", "end", "name", "src_agent_type", "src_agent_type_index", "dst_agent_type_index", "stream_id")
    for row in database.rows(COPIES, (*columns, "size", "stack_id", "guid|pid"), ("start", "end", "name")):
        device, stream = integer(row[4] if row[3] == "GPU" else row[5]), integer(row[6])
        streams[device, stream] = None
        arguments = {
            "device": device,
            "stream": stream,
            "bytes": integer(row[7]),
            "correlation": numbering.of(row[9], integer(row[8])),
        }
        way = copied_way(str(row[2]))
        yield event("gpu_memcpy", copy_name(way), device, stream, integer(row[0]), integer(row[1]), arguments)


def _extra(text: object, key: str) -> Any:
    """A value of the JSON that columns `extdata` hold."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (RecursionError, ValueError):
        return None
    return found.get(key) if isinstance(found, dict) else None


ROCPROFILER: Final = DatabaseRecorder(
    name="rocprofv3",
    operators="record with rocprofv3 --marker-trace inside torch.autograd.profiler.emit_nvtx()",
    knows=lambda database: any(table.startswith("rocpd_") for table in database.tables),
    check=_check,
    top=_top,
    events=_events,
)
