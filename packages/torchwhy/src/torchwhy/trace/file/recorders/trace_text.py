"""The text of a trace as PyTorch's profiler would write it: what readers of other recorders' files produce."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

__all__ = [
    "Ended",
    "broken_event",
    "copy_name",
    "event",
    "fill_name",
    "integer",
    "label",
    "metadata",
    "stream_names",
    "trace_text",
]

PIECE: Final = 1 << 18
"""Characters of events handed out at a time, about."""

INT64: Final = 1 << 63

_ANNOUNCED: Final = ("input_op_ids", "sizes", "op_id", "seq")
"""What follows an operator's name, from the end, in a range of `torch.autograd.profiler.emit_nvtx`: `getNvtxStr` in
torch/csrc/profiler/util.cpp."""

_OPERATOR: Final = re.compile(r"[^ ]*::|(\w+Backward\d+|detach_?|triton_\w+|record_param_comms)$")
"""Names of operators, kernels that Inductor made, and nodes of the backward pass."""


class Ended(Exception):  # noqa: N818 -- caught by `trace_text`
    """The file ends early or cannot be read any further; what came before was handed out."""


def trace_text(recorder: str, operators: str, top: Mapping[str, Any], events: Iterable[str]) -> Iterator[bytes]:
    """Yield the JSON of a trace in pieces.

    Where `events` raises `Ended`, the list of events stays open: whoever reads it sees that the file ends early.

    Args:
        recorder: what wrote the file, for people.
        operators: how to record the operators of PyTorch with it.
        top: the values besides the events.
        events: their JSON, as `event` and similar functions return it.
    """
    head = json.dumps({"schemaVersion": 1, "recorder": {"name": recorder, "operators": operators}, **top})
    yield f'{head[:-1]}, "traceEvents": [\n'.encode()
    batch, size, first = [], 0, True
    whole = True
    try:
        for text in events:
            batch.append(text if first else ",\n" + text)
            first = False
            size += len(text)
            if size > PIECE:
                yield "".join(batch).encode()
                batch, size = [], 0
    except Ended:
        whole = False
    yield "".join(batch).encode()
    if whole:
        yield b"\n]}\n"


def event(
    category: str,
    name: str,
    pid: object,
    tid: object,
    start: int | None,
    end: int | None,
    arguments: Mapping[str, Any] | None = None,
) -> str:
    """Return a complete event; what is None is left out.

    Args:
        category: one of `torch.profiler`'s.
        name: of the event.
        pid, tid: process and thread; device and stream of device work. Numbers or texts.
        start, end: nanoseconds.
        arguments: of the event.
    """
    head = f'{{"ph": "X", "cat": {json.dumps(category)}, "name": {json.dumps(name)}{_place(pid, tid)}'
    if start is not None:
        head += f', "ts": {_microseconds(start)}'
        if end is not None:
            head += f', "dur": {_microseconds(end - start)}'
    known = {key: value for key, value in (arguments or {}).items() if value is not None}
    return f'{head}, "args": {json.dumps(known)}}}' if known else head + "}"


def label(text: str, pid: object, tid: object, start: int | None, end: int | None) -> str:
    """Return a range that the program announced (NVTX, roctx): an operator or a label.

    `emit_nvtx` announces labels as it does operators. Those have no sequence number, no shapes and another name.
    """
    name, said = text, {}
    for key in _ANNOUNCED:
        before, there, value = name.rpartition(f", {key} = ")
        if there:
            name, said[key] = before, value
    numbers = {key: int(said[key]) for key in ("op_id", "seq") if re.fullmatch(r"[0-9]{1,18}", said.get(key, ""))}
    if not numbers:
        return event("cpu_op" if text.startswith("aten::") else "user_annotation", text, pid, tid, start, end)
    arguments = {
        "External id": numbers.get("op_id"),
        "Sequence number": numbers.get("seq"),
        "Input Dims": _list(said.get("sizes")),
    }
    is_operator = "seq" in numbers or "sizes" in said or _OPERATOR.match(name)
    return event("cpu_op" if is_operator else "user_annotation", name, pid, tid, start, end, arguments)


def metadata(what: str, pid: object, tid: object, name: str) -> str:
    """Return the name of a process or thread; `what`: "process_name" or "thread_name"."""
    return f'{{"ph": "M", "name": "{what}", "ts": 0{_place(pid, tid)}, "args": {{"name": {json.dumps(name)}}}}}'


def stream_names(streams: Iterable[tuple[int | None, int | None]]) -> Iterator[str]:
    """Yield the names of streams: pairs of device and stream."""
    for device, stream in streams:
        if stream is not None:
            yield metadata("thread_name", device, stream, f"stream {stream}")


def broken_event() -> str:
    """Return what stands for a record of which nothing can be made: it is counted as damaged."""
    return "0"


def copy_name(way: str, source: str = "", target: str = "") -> str:
    """Return PyTorch's name of a copy.

    >>> copy_name("HtoD", "Pageable", "Device"), copy_name("DtoH")
    ('Memcpy HtoD (Pageable -> Device)', 'Memcpy DtoH')
    """
    places = f" ({source} -> {target})" if source and target else ""
    return f"Memcpy {way}".rstrip() + places


def fill_name(target: str = "") -> str:
    """Return PyTorch's name of a fill."""
    return f"Memset ({target or 'Unknown'})"


def integer(value: object) -> int | None:
    """Return a number that a file has, if it is an integer of 64 bits; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and -INT64 < value < INT64 else None


def _place(pid: object, tid: object) -> str:
    shown = "" if pid is None else f', "pid": {json.dumps(pid)}'
    return shown if tid is None else f'{shown}, "tid": {json.dumps(tid)}'


def _microseconds(time_ns: int) -> str:
    whole, rest = divmod(abs(time_ns), 1000)
    return f"{'-' if time_ns < 0 else ''}{whole}.{rest:03d}"


def _list(text: str | None) -> list[Any] | None:
    try:
        found = json.loads(text) if text else None
    except (RecursionError, ValueError):
        return None
    return found if isinstance(found, list) else None
