"""Operator tables: what was recorded, added up by name, by input shapes or by the Python lines that called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torchwhy.wording import duration, percent, shortened, size_text

__all__ = ["OperatorRow", "OperatorsFile", "read_rows", "table"]

NAME_WIDTH = 52


@dataclass(frozen=True)
class OperatorRow:
    """One line of a table; times in microseconds, memory in bytes, both summed over all calls.

    Attributes:
        name: operator, annotation or kernel.
        kind: "operator", "annotation" (a `record_function` range; its own time is Python), or "kernel" (on a device).
        calls: how often it ran in the recorded windows.
        self_cpu_us: time on the CPU outside the operators it calls.
        cpu_us: time on the CPU, including them; nested calls of the same operator count once.
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


class OperatorsFile(msgspec.Struct, frozen=True):
    """`operators.json` and similar files."""

    schema: int
    operators: tuple[OperatorRow, ...]


def read_rows(folder: Path) -> tuple[OperatorRow, ...]:
    """Return the table by name in a run's folder; () if the folder has no such table."""
    file = folder / "operators.json"
    return msgspec.json.decode(file.read_bytes(), type=OperatorsFile).operators if file.is_file() else ()


def table(rows: Sequence[OperatorRow], limit: int | None = None) -> str:
    """Rows as text; columns that are empty throughout are left out.

    Args:
        rows: the most expensive first.
        limit: how many to show; None shows all.
    """
    shown = [row for row in rows if row.kind != "annotation"][:limit] if limit else list(rows)
    if not shown:
        return ""
    whole = sum(row.self_cpu_us for row in rows if row.kind == "operator")
    header, *lines = _cells(shown, whole)
    keep = [column for column in range(len(header)) if any(line[column] for line in lines)]
    widths = [max(len(line[column]) for line in (header, *lines)) for column in range(len(header))]
    return "\n".join(_line([line[c] for c in keep], [widths[c] for c in keep]) for line in (header, *lines))


def _cells(rows: Sequence[OperatorRow], whole: float) -> list[list[str]]:
    header = ["name", "calls", "self CPU", "%", "CPU total", "self GPU", "GPU total", "self CPU mem", "self GPU mem"]
    cells = [[*header, "FLOPs", "kind", "shapes", "called from"]]
    for row in rows:
        share = percent(row.self_cpu_us / whole) if whole and row.kind == "operator" else ""
        times = [duration(row.self_cpu_us), share, duration(row.cpu_us)]
        cells.append([
            shortened(row.name, NAME_WIDTH),
            f"{row.calls}",
            *(times if row.kind != "kernel" else ["", "", ""]),
            *(duration(time) if time else "" for time in (row.self_device_us, row.device_us)),
            *(size_text(size) if size else "" for size in (row.self_cpu_bytes, row.self_device_bytes)),
            f"{row.flops:.3g}" if row.flops else "",
            row.kind if row.kind != "operator" else "",
            row.shapes,
            " < ".join(row.stack),
        ])  # fmt: skip
    return cells


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if index == 0 or len(cell) > 24 or index > 10 else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
