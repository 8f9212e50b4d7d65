"""Nsight Systems' SQLite export: `nsys export --type sqlite`.

Tables and columns are those of NVIDIA's "SQLite Schema Reference" (Nsight Systems User Guide). Both differ from version
to version, and a table exists where it has a row: what is there is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from torchwhy.errors import TraceError
from torchwhy.trace.file.recorders.database import Database
from torchwhy.trace.file.recorders.recorder import DatabaseRecorder, Numbering
from torchwhy.trace.file.recorders.trace_text import copy_name, event, fill_name, integer, label, metadata, stream_names

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

DEVICES: Final = "TARGET_INFO_GPU"
OF_DEVICE: Final = (
    "id", "name", "totalMemory", "computeMajor", "computeMinor", "smCount", "maxWarpsPerSm", "threadsPerWarp"
)  # fmt: skip
NAME: Final = "demangledName|shortName|name"
SIZES: Final = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
MEMORY: Final = ("staticSharedMemory", "dynamicSharedMemory")
OF_GRAPH: Final = ("graphNodeId", "graphId")

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
            f"{database.name} is an export of Nsight Systems without CUDA events and NVTX ranges (it lacks "
            f"{', '.join(READ)}): record with nsys profile --trace=cuda,nvtx"
        )


def _top(database: Database) -> dict[str, Any]:
    found: dict[str, Any] = {}
    devices = [
        {
            "id": integer(number),
            "name": str(name),
            "totalGlobalMem": integer(memory),
            "computeMajor": integer(major),
            "computeMinor": integer(minor),
            "numSms": integer(multiprocessors),
            "maxThreadsPerMultiprocessor": (integer(warps) or 0) * (integer(threads) or 0),
        }
        for number, name, memory, major, minor, multiprocessors, warps, threads in database.rows(DEVICES, OF_DEVICE)
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
        self.streams: dict[tuple[int | None, int | None], None] = {}
        self.threads: set[object] = set()
        self.devices = {
            (process, number): integer(device)  # a process may see some of the devices, and numbers them from 0
            for process, number, device in database.rows("TARGET_INFO_CUDA_DEVICE", ("pid", "cudaId", "gpuId"))
        }
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
        """The text of a cell that holds a number of StringIds or, in some versions, the text itself."""
        if isinstance(value, str):
            return value
        return self.texts.get(value, "") if isinstance(value, int) else ""

    def work(self, row: Sequence[object]) -> tuple[int | None, int | None, dict[str, Any]]:
        """Device, stream and arguments of a piece of device work, from the columns in `WHERE`."""
        device, context, stream, number, process = (integer(value) for value in row)
        device = self.devices.get((_thread(process)[0], device), device)
        self.streams[device, stream] = None
        correlation = self.numbering.of(_process(process), number)
        return device, stream, {"device": device, "context": context, "stream": stream, "correlation": correlation}

    def thread(self, identifier: object) -> tuple[int | None, int | None]:
        """Process and thread of a globalTid, which then is one of the trace's."""
        self.threads.add(identifier)
        return _thread(identifier)

    def kernels(self) -> Iterator[str]:
        """Kernels with their sizes."""
        columns = (*TIMES, NAME, *WHERE, *SIZES, *MEMORY, "registersPerThread", *OF_GRAPH)
        for row in self.database.rows(KERNELS, columns, (*TIMES, NAME)):
            device, stream, arguments = self.work(row[3:8])
            static, dynamic, registers, node, graph = (integer(value) for value in row[14:])
            arguments |= {"grid": _sizes(row[8:11]), "block": _sizes(row[11:14]), "registers per thread": registers}
            arguments |= {"shared memory": None if static is None else static + (dynamic or 0)}
            arguments |= {"graph node id": node or None, "graph id": graph or None}
            yield event("kernel", self.text(row[2]), device, stream, *_times(row), arguments)

    def copies(self) -> Iterator[str]:
        columns = (*TIMES, "copyKind", *WHERE, "bytes", "srcKind", "dstKind", "graphNodeId")
        for row in self.database.rows(COPIES, columns, TIMES):
            device, stream, arguments = self.work(row[3:8])
            arguments |= {"bytes": integer(row[8]), "graph node id": integer(row[11]) or None}
            way = _WAYS.get(row[2], "")
            if row[2] in _UNIFIED:  # without a call: no launch, no stream
                way, stream = _UNIFIED[row[2]], None
            name = copy_name(way, self.memory.get(row[9], ""), self.memory.get(row[10], ""))
            yield event("gpu_memcpy", name, device, stream, *_times(row), arguments)

    def fills(self) -> Iterator[str]:
        for row in self.database.rows(FILLS, (*TIMES, "memKind", *WHERE, "bytes", "graphNodeId"), TIMES):
            device, stream, arguments = self.work(row[3:8])
            arguments |= {"bytes": integer(row[8]), "graph node id": integer(row[9]) or None}
            yield event("gpu_memset", fill_name(self.memory.get(row[2], "")), device, stream, *_times(row), arguments)

    def graphs(self) -> Iterator[str]:
        """Replays of whole graphs, which the recorder's default notes instead of their kernels."""
        for row in self.database.rows(GRAPHS, (*TIMES, "graphId", *WHERE), TIMES):
            device, stream, arguments = self.work(row[3:8])
            arguments["graph id"] = integer(row[2])
            name = f"CUDA graph {row[2]}, recorded as a whole"
            yield event("kernel", name, device, stream, *_times(row), arguments)

    def calls(self) -> Iterator[str]:
        for row in self.database.rows(CALLS, (*TIMES, "nameId", "globalTid", "correlationId"), (*TIMES, "nameId")):
            name = _VERSION.sub("", self.text(row[2]))
            category = "cuda_driver" if _DRIVER.match(name) else "cuda_runtime"
            arguments = {"correlation": self.numbering.of(_process(row[3]), integer(row[4]))}
            yield event(category, name, *self.thread(row[3]), *_times(row), arguments)

    def waits(self) -> Iterator[str]:
        for row in self.database.rows(SYNCS, (*TIMES, "syncType", *WHERE), TIMES):
            device, stream, arguments = self.work(row[3:8])
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
            yield label(text, *self.thread(row[4]), *_times(row))

    def system(self) -> Iterator[str]:
        """Calls of the operating system's libraries: shown, but part of nothing."""
        for row in self.database.rows(SYSTEM, (*TIMES, "nameId", "globalTid"), TIMES):
            yield event("os_call", self.text(row[2]), *self.thread(row[3]), *_times(row))

    def names(self) -> Iterator[str]:
        """The names of the processes, threads and streams of the events, of many more in the file."""
        processes = {_process(thread) for thread in self.threads}
        for process, name in self.database.rows("PROCESSES", ("globalPid", "name")):
            if _process(process) in processes and isinstance(name, str):
                yield metadata("process_name", _thread(process)[0], None, name)
        for thread, name in self.database.rows("ThreadNames", ("globalTid", "nameId")):
            if thread in self.threads and self.text(name):
                yield metadata("thread_name", *_thread(thread), self.text(name))
        yield from stream_names(self.streams)

    def events(self) -> Iterator[str]:
        """Every event of the file, table by table."""
        yield from self.ranges()
        yield from self.calls()
        yield from self.kernels()
        yield from self.graphs()
        yield from self.copies()
        yield from self.fills()
        yield from self.waits()
        yield from self.system()
        yield from self.names()  # of those that the others met


def _process(identifier: object) -> int | None:
    """The process in a globalPid or globalTid: all but the thread in its lowest 24 bits."""
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
