"""What rocprofv3 writes with `--output-format json`.

Its fields: generateJSON.cpp and rocprofiler-sdk/cxx/serialization.hpp in github.com/ROCm/rocprofiler-sdk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from torchwhy.errors import TraceError
from torchwhy.trace.file.recorders import ROCPROFILER_KEY
from torchwhy.trace.file.recorders.recorder import Numbering
from torchwhy.trace.file.recorders.rocm import ROCPROFILER, Streams, blocks, copied_way
from torchwhy.trace.file.recorders.trace_text import (
    broken_event,
    copy_name,
    event,
    integer,
    label,
    stream_names,
    trace_text,
)

__all__ = ["looks_like_rocprofiler", "translated_json"]

LARGEST: Final = 2 << 30
"""Bytes of text; it is read as a whole, which takes several times the memory."""

_GPU: Final = 2
"""`rocprofiler_agent_type_t` of GPUs."""


def looks_like_rocprofiler(head: bytes) -> bool:
    """Whether a file begins as rocprofv3's JSON does."""
    return head.lstrip()[:1] == b"{" and ROCPROFILER_KEY in head[:64]


def translated_json(name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text of the trace in rocprofv3's JSON.

    Args:
        name: how messages call the file.
        chunks: its bytes, unpacked.

    Raises:
        TraceError: the JSON is cut or damaged, too large, or lacks the records.
    """
    parts, size = [], 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > LARGEST:
            raise TraceError(f"{name} cannot be read: it has more than {LARGEST:,} bytes; record with the format rocpd")
    try:
        found = json.loads(b"".join(parts))[json.loads(ROCPROFILER_KEY)]
    except (RecursionError, ValueError, KeyError) as error:
        raise TraceError(f"{name} cannot be read: the JSON of rocprofv3 is cut or damaged ({error})") from None
    processes = [_Process(each) for each in _list(found)]
    if not any(isinstance(process.data.get("buffer_records"), dict) for process in processes):
        raise TraceError(f"{name} cannot be read: the JSON of rocprofv3 has no buffer_records")
    numbering = Numbering({process: process.highest() for process in processes})
    top: dict[str, Any] = {"hip_runtime_version": 0}
    devices = [device for process in processes[:1] for device in process.devices()]
    events = (text for process in processes for text in process.events(numbering))
    yield from trace_text(
        ROCPROFILER.name, ROCPROFILER.operators, top | ({"deviceProperties": devices} if devices else {}), events
    )


class _Process:
    """One process of the file, with the names that its records refer to by number."""

    def __init__(self, data: object) -> None:
        self.data = _dictionary(data)
        strings = _dictionary(self.data.get("strings"))
        self.names = [_dictionary(each) for each in _list(strings.get("buffer_records"))]
        self.messages = {
            _hashable(each.get("key")): str(each.get("value")) for each in _dictionaries(strings, "marker_api")
        }
        self.kernels = {_hashable(each.get("kernel_id")): each for each in _dictionaries(self.data, "kernel_symbols")}
        gpus = [each for each in _dictionaries(self.data, "agents") if each.get("type") == _GPU]
        gpus.sort(key=lambda agent: integer(agent.get("node_id")) or 0)
        self.gpus = {_handle(agent, "id"): (number, agent) for number, agent in enumerate(gpus)}
        self.streams: Streams = {}
        self.pid = integer(_dictionary(self.data.get("metadata")).get("pid"))

    def devices(self) -> list[dict[str, Any]]:
        """The GPUs, numbered as HIP does."""
        return [
            {"id": number, "name": str(agent.get("product_name", "")), "numSms": integer(agent.get("cu_count"))}
            for number, agent in self.gpus.values()
        ]

    def records(self, kind: str) -> list[dict[str, Any]]:
        """The records of one sort."""
        return _dictionaries(_dictionary(self.data.get("buffer_records")), kind)

    def highest(self) -> int:
        """The highest correlation id."""
        return max(
            (_correlation(record) or 0 for kind in ("hip_api", "kernel_dispatch") for record in self.records(kind)),
            default=0,
        )

    def events(self, numbering: Numbering) -> Iterator[str]:
        """Every event of the process."""
        for read, kind in (
            (self._call, "hip_api"),
            (self._marker, "marker_api"),
            (self._kernel, "kernel_dispatch"),
            (self._copy, "memory_copy"),
        ):
            for record in self.records(kind):
                times = integer(record.get("start_timestamp")), integer(record.get("end_timestamp"))
                correlation = numbering.of(self, _correlation(record))
                yield read(record, times, correlation) if times[0] is not None else broken_event()
        yield from stream_names(self.streams)

    def _operation(self, record: dict[str, Any]) -> str:
        kind, operation = integer(record.get("kind")), integer(record.get("operation"))
        names = _list(self.names[kind].get("operations")) if kind is not None and 0 <= kind < len(self.names) else []
        return str(names[operation]) if operation is not None and 0 <= operation < len(names) else ""

    def _call(self, record: dict[str, Any], times: tuple[int | None, int | None], correlation: int | None) -> str:
        thread = integer(record.get("thread_id"))
        return event("hip_runtime", self._operation(record), self.pid, thread, *times, {"correlation": correlation})

    def _marker(self, record: dict[str, Any], times: tuple[int | None, int | None], _: int | None) -> str:
        text = self.messages.get(_correlation(record), "") or self._operation(record)
        return label(text, self.pid, integer(record.get("thread_id")), *times)

    def _kernel(self, record: dict[str, Any], times: tuple[int | None, int | None], correlation: int | None) -> str:
        info = _dictionary(record.get("dispatch_info"))
        device = self.gpus.get(_handle(info, "agent_id"), (None,))[0]
        stream = _handle(record, "stream_id")
        stream = _handle(info, "queue_id") if stream is None else stream
        self.streams[device, stream] = None
        symbol = self.kernels.get(_hashable(info.get("kernel_id")), {})
        name = str(symbol.get("formatted_kernel_name") or symbol.get("kernel_name") or "")
        arguments: dict[str, Any] = {"device": device, "stream": stream, "correlation": correlation}
        arguments |= blocks(_sizes(info.get("grid_size")), _sizes(info.get("workgroup_size")))
        arguments["shared memory"] = integer(info.get("group_segment_size"))
        return event("kernel", name, device, stream, *times, arguments)

    def _copy(self, record: dict[str, Any], times: tuple[int | None, int | None], correlation: int | None) -> str:
        ends = [self.gpus.get(_handle(record, side), (None,))[0] for side in ("src_agent_id", "dst_agent_id")]
        device = ends[1] if ends[0] is None else ends[0]
        stream = _handle(record, "stream_id")
        self.streams[device, stream] = None
        arguments = {
            "device": device,
            "stream": stream,
            "bytes": integer(record.get("bytes")),
            "correlation": correlation,
        }
        return event("gpu_memcpy", copy_name(copied_way(self._operation(record))), device, stream, *times, arguments)


def _dictionary(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dictionaries(data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [each for each in _list(data.get(key)) if isinstance(each, dict)]


def _hashable(value: object) -> object:
    return value if isinstance(value, int | str) else None


def _handle(data: dict[str, Any], key: str) -> int | None:
    return integer(_dictionary(data.get(key)).get("handle"))


def _correlation(record: dict[str, Any]) -> int | None:
    return integer(_dictionary(record.get("correlation_id")).get("internal"))


def _sizes(value: object) -> list[int | None]:
    return [integer(_dictionary(value).get(axis)) for axis in "xyz"]
