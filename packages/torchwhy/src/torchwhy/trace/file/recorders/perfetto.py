"""Perfetto's protobuf: `.pftrace`, `.perfetto-trace`; rocprofv3 writes it with `--output-format pftrace`.

Messages and numbers of fields: protos/perfetto/trace in github.com/google/perfetto (TracePacket, TrackEvent,
TrackDescriptor, InternedData, ClockSnapshot, GpuRenderStageEvent).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from torchwhy.errors import TraceError
from torchwhy.trace.file.limits import LIMITS
from torchwhy.trace.file.recorders.rocm import copied_way
from torchwhy.trace.file.recorders.trace_text import (
    Ended,
    broken_event,
    copy_name,
    event,
    integer,
    label,
    metadata,
    trace_text,
)
from torchwhy.trace.file.recorders.wire import Malformed, double, fields, signed, text, top_level

__all__ = ["looks_like_packets", "translated_packets"]

# Fields of TracePacket.
_TIMESTAMP, _CLOCK_SNAPSHOT, _SEQUENCE, _EVENT, _INTERNED, _FLAGS = 8, 6, 10, 11, 12, 13
_CLEARED, _DROPPED, _COMPRESSED, _GPU_STAGE, _CLOCK, _DEFAULTS, _TRACK, _ZSTD = 41, 42, 50, 53, 58, 59, 60, 133

# TracePacketDefaults.track_event_defaults; `track_uuid` of TrackEvent and of these defaults.
_EVENT_DEFAULTS, _TRACK_OF_EVENT = 11, 11

# Extensions: InternedData.compute_kernels, TrackEvent.gpu_correlation, TrackEvent.gpu_api.
_COMPUTE_KERNELS, _GPU_CORRELATION, _GPU_API = 1000, 3000, 3001
_APIS: Final = {4: "cuda_runtime", 5: "hip_runtime"}

# Values of TrackEvent.type.
_BEGIN, _END = 1, 2

_TRACE_CLOCK: Final = 6
"""BOOTTIME, on which times without a clock are."""

_OF_SEQUENCE: Final = range(64, 128)
"""Clocks that each sequence of packets defines for itself."""

OPERATORS: Final = "record with torch.profiler, whose traces hold them"

_DEEPEST: Final = 20
"""Dictionaries and lists inside each other that are read of an argument."""

# What rocprofv3 and rocprofiler-systems (which puts rocm_ before it) call what PyTorch's profiler calls otherwise.
_CATEGORIES: Final = {
    "kernel_dispatch": "kernel",
    "memory_copy": "gpu_memcpy",
    "hip_api": "hip_runtime",
    "marker_api": "user_annotation",
}
_ARGUMENTS: Final = {"corr_id": "correlation", "copy_bytes": "bytes"}


def looks_like_packets(head: bytes) -> bool:
    """Whether a file begins with a packet: field 1, its length, and fields that a packet has."""
    if head[:1] != b"\n":
        return False
    try:
        packet = next(_packets(iter((head,))), None)
        if packet is None:  # longer than what is at hand: no text has such characters
            return min(head[1:16], default=32) < 9
        return all(number > 0 for number, _ in fields(packet))
    except Malformed:
        return min(head[1:16], default=32) < 9


def translated_packets(name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text of the trace in a file of packets.

    Args:
        name: how messages call the file.
        chunks: its bytes, unpacked.

    Raises:
        TraceError: no packet can be read, or the packets are packed with zstd.
    """
    return trace_text("Perfetto", OPERATORS, {}, _Reader(name).events(chunks))


@dataclass
class _Clock:
    """A clock that a snapshot defined: what it showed when the trace's clock showed `at`, nanoseconds both."""

    unit: int
    incremental: bool
    shown: int
    at: int


@dataclass
class _Sequence:
    """What packets of one writer refer to; `complete`: nothing that they may refer to was lost."""

    names: dict[int, dict[int, str]] = field(default_factory=dict)
    clocks: dict[int, _Clock] = field(default_factory=dict)
    track: int = 0
    clock: int = 0
    complete: bool = True


@dataclass
class _Track:
    """A row of the timeline; `pid`, `tid`: where it is a process's or a thread's."""

    parent: int = 0
    name: str = ""
    pid: int | None = None
    tid: int | None = None


@dataclass
class _Edge:
    """Where a slice begins or ends. Arguments may come with either."""

    time: int
    begins: bool
    category: str
    name: str
    arguments: dict[str, Any]


class _Reader:
    """Goes over packets, and then over the slices of each track in the order of time, which packets don't have."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sequences: dict[int, _Sequence] = {}
        self.clocks: dict[int, _Clock] = {}
        self.tracks: dict[int, _Track] = {}
        self.edges: dict[int, list[_Edge]] = {}
        self.put_by: dict[int, int] = {}  # the first work of the call that put each piece of work on the device
        self.last = 0

    def events(self, chunks: Iterator[bytes]) -> Iterator[str]:
        """Yield the events of a file."""
        given = False
        try:
            for packet in _packets(chunks):
                given = True
                yield from self._of_packet(packet)
        except (Malformed, zlib.error) as error:
            if not given:
                raise TraceError(
                    f"{self.name} is not a trace: it begins like a protobuf trace and then isn't one"
                ) from error
            yield from self._slices()
            raise Ended from error
        yield from self._slices()

    def _of_packet(self, packet: bytes) -> Iterator[str]:
        try:
            found = dict(fields(packet))
            if _COMPRESSED in found:
                yield from self._unpacked(found[_COMPRESSED])
                return
            if _ZSTD in found:
                raise TraceError(
                    f"{self.name} has packets that are packed with zstd: record without, or unpack it with Perfetto's "
                    "`traceconv decompress_packets`"
                )
            yield from self._read(found)
        except Malformed:
            yield broken_event()

    def _unpacked(self, data: int | bytes) -> Iterator[str]:
        unpacking = zlib.decompressobj()
        packed = data if isinstance(data, bytes) else b""
        plain = unpacking.decompress(packed, LIMITS.element)
        if unpacking.unconsumed_tail:
            raise TraceError(f"{self.name} cannot be read: a packet unpacks to more than {LIMITS.element:,} bytes")
        for packet in _packets(iter((plain,))):
            found = dict(fields(packet))
            if _COMPRESSED not in found:  # packets are packed once
                yield from self._read(found)

    def _read(self, packet: dict[int, int | bytes]) -> Iterator[str]:
        sequence = self._sequence(packet)
        if _CLOCK_SNAPSHOT in packet:
            self._snapshot(sequence, packet[_CLOCK_SNAPSHOT])
        if _TRACK in packet:
            yield from self._describe(packet[_TRACK])
        if _number(packet.get(_FLAGS, 0)) & 2 and not sequence.complete:
            return  # it refers to what was lost
        if _EVENT in packet:
            self._event(sequence, packet[_EVENT], self._time(sequence, packet))
        elif _GPU_STAGE in packet:
            yield self._stage(sequence, packet[_GPU_STAGE], self._time(sequence, packet))

    def _sequence(self, packet: dict[int, int | bytes]) -> _Sequence:
        number = _number(packet.get(_SEQUENCE, 0))
        flags = _number(packet.get(_FLAGS, 0))
        if _number(packet.get(_DROPPED, 0)) and number in self.sequences:
            self.sequences[number].complete = False
        if flags & 1 or _number(packet.get(_CLEARED, 0)):
            self.sequences[number] = _Sequence(clocks=self.sequences.get(number, _Sequence()).clocks)
        sequence = self.sequences.setdefault(number, _Sequence(complete=not flags & 2))
        if _DEFAULTS in packet:
            for key, value in fields(_bytes(packet[_DEFAULTS])):
                if key == _CLOCK:
                    sequence.clock = _number(value)
                elif key == _EVENT_DEFAULTS:
                    sequence.track = _number(dict(fields(_bytes(value))).get(_TRACK_OF_EVENT, 0))
        if _INTERNED in packet:
            for kind, value in fields(_bytes(packet[_INTERNED])):
                entry = dict(fields(value)) if isinstance(value, bytes) else {}
                if 1 in entry and isinstance(entry.get(2), bytes):
                    shown = 3 if kind == _COMPUTE_KERNELS and 3 in entry else 2  # the demangled name
                    sequence.names.setdefault(kind, {})[_number(entry[1])] = text(entry[shown])
        return sequence

    # Time

    def _snapshot(self, sequence: _Sequence, data: int | bytes) -> None:
        # ClockSnapshot: clocks 1 (number 1, time 2, incremental 3, nanoseconds of a unit 4).
        shown: dict[int, tuple[int, bool, int]] = {}
        for key, value in fields(_bytes(data)):
            if key == 1:
                clock = dict(fields(_bytes(value)))
                unit = _number(clock.get(4, 0)) or 1
                shown[_number(clock.get(1, 0))] = (_number(clock.get(2, 0)) * unit, bool(clock.get(3)), unit)
        for number, (time, incremental, unit) in shown.items():
            known = sequence.clocks if number in _OF_SEQUENCE else self.clocks
            at = shown[_TRACE_CLOCK][0] if _TRACE_CLOCK in shown else time
            known[number] = _Clock(unit, incremental, time, at)

    def _time(self, sequence: _Sequence, packet: dict[int, int | bytes]) -> int:
        value, number = _number(packet.get(_TIMESTAMP, 0)), _number(packet.get(_CLOCK, sequence.clock))
        clock = (sequence.clocks if number in _OF_SEQUENCE else self.clocks).get(number)
        if clock is None or number in (0, _TRACE_CLOCK):
            return value
        if clock.incremental:
            clock.at += value * clock.unit
            return clock.at
        return value * clock.unit - clock.shown + clock.at

    # Tracks

    def _describe(self, data: int | bytes) -> Iterator[str]:
        # TrackDescriptor: number 1, parent 5, name 2, 10 or 13, process 3 (pid 1, name 6), thread 4 (pid 1, tid 2,
        # name 5).
        found = dict(fields(_bytes(data)))
        track = self.tracks.setdefault(_number(found.get(1, 0)), _Track())
        track.parent = _number(found.get(5, 0))
        track.name = next((text(found[key]) for key in (2, 10, 13) if key in found), track.name)
        if 3 in found:
            process = dict(fields(_bytes(found[3])))
            track.pid = signed(process.get(1, 0))
            if 6 in process:
                yield metadata("process_name", track.pid, None, text(process[6]))
        if 4 in found:
            thread = dict(fields(_bytes(found[4])))
            track.pid, track.tid = signed(thread.get(1, 0)), signed(thread.get(2, 0))
            name = text(thread[5]) if 5 in thread else track.name
            if name:
                yield metadata("thread_name", track.pid, track.tid, name)

    def _place(self, number: int) -> tuple[object, object]:
        """Process and thread of a track; its name, or its number, where it is no thread's."""
        track = self.tracks.get(number, _Track())
        if track.tid is not None:
            return track.pid, track.tid
        own, seen = track.name or str(number), {number}
        while track.pid is None and track.parent in self.tracks and track.parent not in seen:
            seen.add(track.parent)
            track = self.tracks[track.parent]
        return track.pid, own

    # Events

    def _event(self, sequence: _Sequence, data: int | bytes, time: int) -> None:
        # TrackEvent: category 3 (interned) or 22, annotation 4, type 9, name 10 (interned) or 23.
        found: dict[int, int | bytes] = {}
        category, arguments = "", {}
        for key, value in fields(_bytes(data)):
            if key == 4:
                name, argument = self._annotation(sequence, _bytes(value), 0)
                arguments[name] = argument
            elif key in (3, 22):
                category = category or (text(value) if key == 22 else self._interned(sequence, 1, value))
            else:
                found[key] = value
        if _GPU_API in found:
            category = _APIS.get(_number(found[_GPU_API]), category)
        if _GPU_CORRELATION in found:
            put = [_number(value) for key, value in fields(_bytes(found[_GPU_CORRELATION])) if key == 1]
            self.put_by.update(dict.fromkeys(put, put[0] if put else 0))
            arguments["correlation"] = put[0] if put else None
        number = _number(found.get(_TRACK_OF_EVENT, sequence.track))
        kind = found.get(9)
        if kind in (_BEGIN, _END):
            name = text(found[23]) if 23 in found else self._interned(sequence, 2, found.get(10, 0))
            self.edges.setdefault(number, []).append(_Edge(time, kind == _BEGIN, category, name, arguments))
            self.last = max(self.last, time)

    def _slices(self) -> Iterator[str]:
        """The slices of every track; what still ran when recording ended lasts until then."""
        for number, edges in self.edges.items():
            edges.sort(key=lambda edge: edge.time)
            begun: list[_Edge] = []
            for edge in edges:
                if edge.begins:
                    begun.append(edge)
                elif begun:
                    begun[-1].arguments |= edge.arguments
                    yield self._slice(number, begun.pop(), edge.time)
            for edge in begun:
                yield self._slice(number, edge, self.last)

    def _slice(self, number: int, begun: _Edge, end: int) -> str:
        pid, tid = self._place(number)
        category, name, start = begun.category.removeprefix("rocm_"), begun.name, begun.time
        arguments = {_ARGUMENTS.get(key, key): value for key, value in begun.arguments.items()}
        if category not in _CATEGORIES:
            return event(begun.category, name, pid, tid, start, end, arguments)
        times = integer(arguments.pop("begin_ns", None)), integer(arguments.pop("end_ns", None))
        if None not in times:  # of slices that overlap on a track, the wrong ones would end
            start, end = times  # type: ignore[assignment]
        if category == "marker_api":
            return label(name, pid, tid, start, end)
        if category == "memory_copy":
            way = copied_way(name)
            name = copy_name(way)
            arguments["device"] = _agent(arguments, "src_agent" if way == "DtoH" else "dst_agent")
        elif category == "kernel_dispatch":
            arguments["device"] = _agent(arguments, "agent")
        if "device" in arguments:
            arguments["stream"] = integer(arguments.get("stream_ID", arguments.get("queue")))
            pid = pid if arguments["device"] is None else arguments["device"]
            tid = tid if arguments["stream"] is None else arguments["stream"]
        return event(_CATEGORIES[category], name, pid, tid, start, end, arguments)

    def _stage(self, sequence: _Sequence, data: int | bytes, time: int) -> str:
        """Work of a device, as drivers note it."""
        # GpuRenderStageEvent: event 1, duration 2, GPU 11, queue 13, name 17 or 20, kernel 19, stage 14, launch 21.
        found = dict(fields(_bytes(data)))
        device, queue = signed(found.get(11, 0)), self._interned(sequence, 24, found.get(13, 0))
        name = next(
            (
                text(found[key]) if kind is None else self._interned(sequence, kind, found[key])
                for key, kind in ((17, None), (20, 2), (19, _COMPUTE_KERNELS), (14, 24))
                if key in found
            ),
            "",
        )
        launch = dict(fields(_bytes(found.get(21, b""))))
        arguments = {"device": device, "grid": _sizes(launch.get(1)), "block": _sizes(launch.get(2))}
        identifier = _number(found.get(1, 0))
        arguments["correlation"] = self.put_by.get(identifier, identifier)
        category = "kernel" if 19 in found or 21 in found else "gpu_stage"
        return event(category, name, device, queue or "queue", time, time + _number(found.get(2, 0)), arguments)

    # Values

    def _interned(self, sequence: _Sequence, kind: int, number: int | bytes) -> str:
        return sequence.names.get(kind, {}).get(_number(number), "")

    def _annotation(self, sequence: _Sequence, data: bytes, depth: int) -> tuple[str, Any]:
        # DebugAnnotation: name 1 (interned) or 10, entries 11 of a dictionary, 12 of a list, interned text 17.
        name, value = "", cast("Any", None)
        members: list[tuple[str, Any]] = []
        is_list = False
        for key, found in fields(data):
            if key == 10:
                name = text(found)
            elif key == 1:
                name = self._interned(sequence, 3, found)
            elif key in (11, 12):
                if depth < _DEEPEST:
                    members.append(self._annotation(sequence, _bytes(found), depth + 1))
                is_list = key == 12
            elif key == 17:
                value = self._interned(sequence, 29, found)
            elif key in _VALUES:
                value = _VALUES[key](found)
        if members:
            value = [member for _, member in members] if is_list else dict(members)
        return name, value


def _packets(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The packets of a trace."""
    return top_level(chunks, 1, LIMITS.element)


def _number(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Malformed
    return value


def _finite(value: int | bytes) -> float | None:
    number = double(value)
    return number if number is not None and abs(number) < float("inf") else None


# The fields of DebugAnnotation that hold a value.
_VALUES: Final[dict[int, Callable[[int | bytes], Any]]] = {
    2: bool,
    3: _number,
    4: signed,
    5: _finite,
    6: text,
    7: _number,
    9: text,
}


def _sizes(data: int | bytes | None) -> list[int] | None:
    if not isinstance(data, bytes):
        return None
    found = dict(fields(data))
    return [_number(found.get(axis, 1)) for axis in (1, 2, 3)]


def _agent(arguments: dict[str, Any], key: str) -> int | None:
    """The number of an agent, which versions write as a number or as a text such as "GPU-0"."""
    found = re.search(r"\d{1,9}", str(arguments.get(key, "")))
    return int(found[0]) if found else None
