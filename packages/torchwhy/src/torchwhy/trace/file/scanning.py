"""Read a trace file into columns, with the native scanner where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torchwhy.errors import ArgumentError, TraceError
from torchwhy.trace.file.columns import ARGUMENTS, Columns, Repairs
from torchwhy.trace.file.limits import LIMITS, Excess, Limits
from torchwhy.trace.file.scan_native import available, scan_native
from torchwhy.trace.file.scan_python import scan_python
from torchwhy.trace.file.source import Chunks, Source

__all__ = ["scan"]

KINDS: Final = ("int", "float", "text")


def scan(source: Source, keys: Mapping[str, str] = ARGUMENTS, limits: Limits = LIMITS) -> Columns:
    """Read a trace file, damaged or not, in one pass.

    Args:
        source: a path, "-" for standard input, or an open binary file; plain or gzip.
        keys: the arguments of events to keep, and as what: "int", "float" or "text" (of strings what they say, of
            everything else the JSON).
        limits: how large parts of the file may be.

    Returns:
        Its columns; `repairs` says what was wrong with the file. Every key is in `arguments`, with no rows where no
        event has it.

    Raises:
        TraceError: there is no such file, a part of it is larger than its limit, or nothing in it is an event
            and it has no list of events either.
    """
    for key, kind in keys.items():
        if kind not in KINDS:
            raise ArgumentError(f"keys[{key!r}] must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    with Chunks(source) as chunks:
        try:
            columns, has_list = (scan_native if available() else scan_python)(chunks, keys, limits)
        except Excess as error:
            raise TraceError(f"{chunks.name} cannot be read: {error.described(limits)}") from None
    columns.repairs.truncated_gzip = chunks.truncated_gzip
    if not has_list and not columns.phase.any():
        raise TraceError(f"{chunks.name} is not a trace: {_what_else(columns.repairs)}")
    return columns


def _what_else(repairs: Repairs) -> str:
    if repairs.bare_list:
        return "a JSON list without an event in it"
    if repairs.truncated:
        return "what can be read of its JSON ends before there are any traceEvents"
    return "JSON without a list of traceEvents"
