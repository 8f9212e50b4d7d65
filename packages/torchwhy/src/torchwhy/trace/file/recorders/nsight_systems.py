"""Nsight Systems' SQLite export: `nsys export --type sqlite`.

Tables and columns are those of NVIDIA's "SQLite Schema Reference" (Nsight Systems User Guide). Both differ from version
to version, and a table exists where it has a row: what is there is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from torchwhy.errors import TraceError
from torchwhy.trace.file.recorders.database import Database
from torchwhy.trace.file.recorders.recorder import DatabaseRecorder, Numbering
from torchwhy.trace.file.recorders.trace_text import copy_name, event, fill_name, integer, label, metadata

__all__ = ["NSIGHT_SYSTEMS"]

KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
SYNCS: Final = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
RANGES: Final = "NVTX_EVENTS"
SYSTEM: Final = "OSRT_API"
READ: Final = (KERNELS, COPIES, FILLS, GRAPHS, CALLS, RANGES)

TIMES: Final = ("start", "end")
WHERE: Final = ("deviceId", "contextId", "streamId", "correlationId", "globalPid")

PUSH_POP: Final = 59
START_END: Final = 60
"""`NVTX_EVENTS.eventType` of ranges; others are marks, domains and categories."""

# CUpti_ActivityMemcpyKind, which copyKind holds, by number.
_WAYS: Final = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}
_UNIFIED: Final = {11: "HtoD", 12: "DtoH", 13: "DtoD"}
"""Pages of unified memory that moved: ENUM_CUDA_MEMCPY_OPER names them CUDA_MEMCPY_KIND_UVM_..."""

_MEMORY: Final = ("Pageable", "Pinned", "Device", "Array", "Managed")

# CUpti_ActivitySynchronizationType.
_WAITS: Final = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}

_VERSION: Final = re.compile(r"_v\d{4,5}$")
"""The version of the interface behind a call's name: cudaLaunchKernel_v7000, cuMemAlloc_v2_v3020."""

_DRIVER: Final = re.compile(r"cu[A-Z]")


def _check(database: Database) -> None:
    if not database.tables & set(READ):
        raise TraceError(
            f"{database.name} is an export of Nsight Systems without CUDA events and NVTX ranges (it has none of "
            f"{', '.join(READ)}): record with nsys profile --trace=cuda,nvtx"
        )


def _top(database: Database) -> dict[str, Any]:
    found: dict[str, Any] = {}
    devices = [
        {
            "id": integer(ordinal) if integer(ordinal) is not None else integer(number),
            "name": str(name),
            "totalGlobalMem": integer(memory),
            "computeMajor": integer(major),
            "computeMinor": integer(minor),
            "numSms": integer(multiprocessors),
            "maxThreadsPerMultiprocessor": (integer(warps) or 0) * (integer(threads) or 0),
        }
        for number, ordinal, name, memory, major, minor, multiprocessors, warps, threads in database.rows(
            "TARGET_INFO_GPU",
            (
                *("id", "cuDevice", "name", "totalMemory", "computeMajor", "computeMinor", "smCount"),
                *("maxWarpsPerSm", "threadsPerWarp"),
            ),
        )
    ]
    if devices:
        found["deviceProperties"] = devices
    for (start,) in database.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)):
        if integer(start):
            found["baseTimeNanoseconds"] = start
    return found


class _Export:
    """One file's texts and numbers, looked up while its tables are read."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.texts = database.texts("StringIds", "id", "value")
        self.memory = {
            number: kind
            for number, name in database.texts("ENUM_CUDA_MEM_KIND", "id", "name").items()
            for kind in _MEMORY
            if name.upper().endswith(f"_{kind.upper()}")
        }
        highest: dict[object, int] = {}
        for thread, number in database.rows(CALLS, ("globalTid", "correlationId")):
            process, last = _process(thread), integer(number)
            if last is not None and last > highest.get(process, -1):
                highest[process] = last
        self.numbering = Numbering(highest)

    def text(self, value: object) -> str:
        """What a column means that holds a number of StringIds, or, in some versions, the text."""
        if isinstance(value, str):
            return value
        return self.texts.get(value, "") if isinstance(value, int) else ""

    def work(self, row: tuple[object, ...]) -> tuple[int | None, int | None, dict[str, Any]]:
        """Device, stream and arguments of a piece of device work, from the columns in `WHERE`."""
        device, context, stream, number, process = (integer(value) for value in row)
        correlation = self.numbering.of(_process(process), number)
        return device, stream, {"device": device, "context": context, "stream": stream, "correlation": correlation}

    def kernels(self) -> Iterator[str]:
        columns = (
            *TIMES,
            "demangledName|shortName|name",
            *WHERE,
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
        )
        columns += ("registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId", "graphId")
        for row in self.database.rows(KERNELS, columns, (*TIMES, "demangledName|shortName|name")):
            device, stream, arguments = self.work(tuple(row[3:8]))
            arguments |= {
                "grid": _sizes(row[8:11]),
                "block": _sizes(row[11:14]),
                "registers per thread": integer(row[14]),
            }
            if integer(row[15]) is not None:
                arguments["shared memory"] = (integer(row[15]) or 0) + (integer(row[16]) or 0)
            arguments |= {"graph node id": integer(row[17]) or None, "graph id": integer(row[18]) or None}
            yield event("kernel", self.text(row[2]), device, stream, *_times(row), arguments)

    def copies(self) -> Iterator[str]:
        columns = (*TIMES, "copyKind", *WHERE, "bytes", "srcKind", "dstKind", "graphNodeId")
        for row in self.database.rows(COPIES, columns, TIMES):
            device, stream, arguments = self.work(tuple(row[3:8]))
            arguments |= {"bytes": integer(row[8]), "graph node id": integer(row[11]) or None}
            way = _WAYS.get(row[2], "")
            if row[2] in _UNIFIED:  # nobody called for them: no launch, no stream
                way, stream = _UNIFIED[row[2]], None
            name = copy_name(way, self.memory.get(row[9], ""), self.memory.get(row[10], ""))
            yield event("gpu_memcpy", name, device, stream, *_times(row), arguments)

    def fills(self) -> Iterator[str]:
        for row in self.database.rows(FILLS, (*TIMES, "memKind", *WHERE, "bytes", "graphNodeId"), TIMES):
            device, stream, arguments = self.work(tuple(row[3:8]))
            arguments |= {"bytes": integer(row[8]), "graph node id": integer(row[9]) or None}
            yield event("gpu_memset", fill_name(self.memory.get(row[2], "")), device, stream, *_times(row), arguments)

    def graphs(self) -> Iterator[str]:
        """Replays of whole graphs, which the recorder's default notes instead of their kernels."""
        for row in self.database.rows(GRAPHS, (*TIMES, "graphId", *WHERE), TIMES):
            device, stream, arguments = self.work(tuple(row[3:8]))
            arguments["graph id"] = integer(row[2])
            name = f"CUDA graph {row[2]}, recorded as a whole"
            yield event("kernel", name, device, stream, *_times(row), arguments)

    def calls(self) -> Iterator[str]:
        for row in self.database.rows(CALLS, (*TIMES, "nameId", "globalTid", "correlationId"), (*TIMES, "nameId")):
            name = _VERSION.sub("", self.text(row[2]))
            category = "cuda_driver" if _DRIVER.match(name) else "cuda_runtime"
            arguments = {"correlation": self.numbering.of(_process(row[3]), integer(row[4]))}
            yield event(category, name, *_thread(row[3]), *_times(row), arguments)

    def waits(self) -> Iterator[str]:
        for row in self.database.rows(SYNCS, (*TIMES, "syncType", *WHERE), TIMES):
            device, stream, arguments = self.work(tuple(row[3:8]))
            name = _WAITS.get(row[2], "")
            arguments["cuda_sync_kind"] = name
            yield event("cuda_sync", name, device, stream, *_times(row), arguments)

    def ranges(self) -> Iterator[str]:
        for row in self.database.rows(
            RANGES, (*TIMES, "text", "textId", "globalTid", "eventType", "endGlobalTid"), TIMES
        ):
            kind = integer(row[5])
            if kind not in (None, PUSH_POP, START_END) or (kind is None and row[1] is None):
                continue
            if kind == START_END and row[6] not in (None, 0, row[4]):
                continue  # ends on another thread: it is around nothing
            text = row[2] if isinstance(row[2], str) else self.text(row[3])
            yield label(text, *_thread(row[4]), *_times(row))

    def system(self) -> Iterator[str]:
        """Calls of the operating system's libraries: shown, but part of nothing."""
        for row in self.database.rows(SYSTEM, (*TIMES, "nameId", "globalTid"), TIMES):
            yield event("os_call", self.text(row[2]), *_thread(row[3]), *_times(row))

    def names(self) -> Iterator[str]:
        for process, name in self.database.rows("PROCESSES", ("globalPid", "name")):
            if integer(process) is not None and isinstance(name, str):
                yield metadata("process_name", _thread(process)[0], None, name)
        for thread, name in self.database.rows("ThreadNames", ("globalTid", "nameId")):
            if integer(thread) is not None and self.text(name):
                yield metadata("thread_name", *_thread(thread), self.text(name))

    def events(self) -> Iterator[str]:
        """Every event of the file, table by table."""
        for part in (
            self.names,
            self.ranges,
            self.calls,
            self.kernels,
            self.graphs,
            self.copies,
            self.fills,
            self.waits,
        ):
            yield from part()
        yield from self.system()


def _process(identifier: object) -> int | None:
    """What tells processes apart in a globalPid or globalTid: all but the thread in its lowest 24 bits."""
    number = integer(identifier)
    return None if number is None else number >> 24


def _thread(identifier: object) -> tuple[int | None, int | None]:
    """Process and thread of a globalTid, 24 bits each."""
    number = integer(identifier)
    return (None, None) if number is None else ((number >> 24) & 0xFFFFFF, number & 0xFFFFFF)


def _times(row: Any) -> tuple[int | None, int | None]:
    return integer(row[0]), integer(row[1])


def _sizes(values: Any) -> list[int | None] | None:
    found = [integer(value) for value in values]
    return None if None in found else found


NSIGHT_SYSTEMS: Final = DatabaseRecorder(
    name="Nsight Systems",
    operators="record with nsys profile --pytorch=autograd-nvtx, or inside torch.autograd.profiler.emit_nvtx()",
    knows=lambda database: bool(database.tables & {"StringIds", *READ}),
    check=_check,
    top=_top,
    events=lambda database: _Export(database).events(),
)
