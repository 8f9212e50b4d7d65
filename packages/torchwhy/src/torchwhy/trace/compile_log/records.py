"""The records of a log that PyTorch writes for TORCH_TRACE: a prefix, an object of JSON, and an indented payload.

    V1128 06:50:01.123456 4711 torch/_dynamo/exc.py:589] {"artifact": {...}, "frame_id": 0, "has_payload": "..."}
        the payload's lines, each after a tab

`torch/_logging/_internal.py` (TorchLogsFormatter, trace_structured) writes it. A log may hold gigabytes of graphs and
generated code: only records that give reasons and times are kept, and nothing is read beyond the limits below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

__all__ = ["MOST_BYTES", "Record", "Scan", "names_process", "scan"]

MOST_BYTES: Final = 256 << 20
"""Bytes of a log that are read; more than 100 compilations with all their graphs and code fit in."""

LONGEST_LINE: Final = 1 << 20
"""Bytes of a line; of a longer one the rest is skipped. PyTorch writes less than 1 MB of metadata."""

LONGEST_PAYLOAD: Final = 1 << 16
"""Bytes of a payload that are kept."""

MOST_RECORDS: Final = 100_000
"""Records that are kept."""

_PREFIX: Final = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ (\d+) [^\t\n]*?:\d+\] (?=\{)")

_KINDS: Final = (
    "str", "dynamo_start", "artifact", "compilation_metrics", "bwd_compilation_metrics", "compilation_metrics_runtime",
    "inductor_output_code",
)  # fmt: skip

_ARTIFACTS: Final = (
    "dynamo_graph_break_reason",
    "recompile_reasons",
    "torch_version",
    "inductor_provenance_tracking_kernel_stack_traces",
)

_WANTED: Final = re.compile(
    rb'\{"(?:' + "|".join((*_KINDS[:2], *_KINDS[3:])).encode() + rb')": |\{"artifact": \{"name": "(?:'
    + "|".join(_ARTIFACTS).encode() + rb')"'
)  # fmt: skip
"""How the object of a kept record begins: PyTorch writes what it is first."""


@dataclass(frozen=True)
class Record:
    """One record of PyTorch's log.

    Attributes:
        kind: one of `_KINDS`.
        fields: the object, with `kind` and the ids of the compilation among its names.
        payload: the indented lines, joined; cut after `LONGEST_PAYLOAD` bytes.
    """

    kind: str
    fields: dict[str, Any]
    payload: str


@dataclass
class Scan:
    """How reading a log went.

    Attributes:
        process: the number of the process that wrote it; -1 before the first record.
        records: how many it has, kept or not.
        unread: lines that are no record and no payload, or whose object is no JSON: damage, or another program's.
        cut: whether it is longer than what was read.
    """

    process: int = -1
    records: int = 0
    unread: int = 0
    cut: bool = False


def names_process(path: Path) -> int:
    """Return the process that wrote a log, as its first line has it; -1 where that is no record."""
    with path.open("rb") as file:
        found = _PREFIX.match(file.readline(LONGEST_LINE))
    return int(found[1]) if found else -1


def scan(path: Path, state: Scan) -> Iterator[Record]:
    """Yield the records of a log that give reasons and times, in order; `state` is filled meanwhile.

    Raises:
        OSError: it cannot be read.
    """
    record: tuple[str, dict[str, Any]] | None = None
    payload: list[bytes] = []
    size = read = kept = 0
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            read += len(line)
            while not line.endswith(b"\n") and len(line) >= LONGEST_LINE and (rest := file.readline(LONGEST_LINE)):
                read += len(rest)
                if rest.endswith(b"\n"):
                    break
            if line.startswith(b"\t") and state.records:
                if record is not None and size < LONGEST_PAYLOAD:
                    payload.append(line[1:])
                    size += len(line) - 1
                continue
            if record is not None:
                yield _record(*record, payload)
                kept += 1
            record, payload, size = _begun(line, state), [], 0
            if read > MOST_BYTES or kept >= MOST_RECORDS:
                state.cut = True
                return
    if record is not None:
        yield _record(*record, payload)


def _record(kind: str, fields: dict[str, Any], payload: list[bytes]) -> Record:
    return Record(kind, fields, b"".join(payload)[:LONGEST_PAYLOAD].decode("utf-8", "replace").rstrip("\n"))


def _begun(line: bytes, state: Scan) -> tuple[str, dict[str, Any]] | None:
    """The kind and object of a line that begins a record to be kept; None for any other."""
    prefix = _PREFIX.match(line)
    if prefix is None:
        state.unread += bool(line.strip())
        return None
    state.records += 1
    if state.process < 0:
        state.process = int(prefix[1])
    if not _WANTED.match(line, prefix.end()):
        return None
    try:
        fields = msgspec.json.decode(line[prefix.end() :])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        state.unread += 1
        return None
    kind = next((kind for kind in _KINDS if kind in fields), "")
    return (kind, fields) if kind else None
