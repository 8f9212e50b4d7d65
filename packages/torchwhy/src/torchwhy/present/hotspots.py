"""What takes the time and the memory, as blocks: operators, labels, modules, exchanges, the critical path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from torchwhy.analysis.critical_path import PathPart
from torchwhy.analysis.exchanges import ExchangeTimes
from torchwhy.analysis.hotspots import LabelTime, ModuleTime, OperatorTime
from torchwhy.analysis.memory_peak import MemoryPeak
from torchwhy.present.document import Cell, Column, File, Name, Table, Text, rows_of
from torchwhy.trace.meaning.frames import line_of
from torchwhy.wording import duration, percent, size_text

__all__ = ["by_label", "communication_table", "computing_table", "critical_path_table", "memory_lines", "module_table"]

_LABELS: Final = 5
_MODULES: Final = 12
_SMALL: Final = 10**6
"""Bytes; a smaller peak belongs to the full view."""


def _number(*titles: str) -> tuple[Column, ...]:
    return tuple(Column(title, number=True) for title in titles)


def _at(rows: Sequence[OperatorTime | ModuleTime]) -> tuple[Column, ...]:
    """A column for the program's lines, where any is known."""
    return (Column("at", below=True),) if any(row.line for row in rows) else ()


def _lines(lines: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """The cells of that column; a line like the one above is left out."""
    for before, line in pairwise(["", *lines]):
        yield (File("" if line == before else line_of(line)),) if any(lines) else ()


def computing_table(operators: tuple[OperatorTime, ...], *, on_gpu: bool) -> tuple[Table, ...]:
    """Return the operators that compute, with the program's lines."""
    cells: list[tuple[Cell, ...]] = [
        (Name(row.name), percent(row.share), duration(row.time_us), f"{row.calls:,}", *line)
        for row, line in zip(operators, _lines([row.line for row in operators]), strict=True)
    ]
    what = "of the GPU's work" if on_gpu else "of operators' time"
    columns = (Column("operator"), *_number(what, "time", "calls"), *_at(operators))
    return (Table(columns, rows_of(cells), "What computes", noun=("operator", "operators")),) if cells else ()


def by_label(labels: tuple[LabelTime, ...], window_us: float) -> tuple[Table, ...]:
    """Return the time by label in a window of this length; nothing where the program has none."""
    on_gpu = any(label.device_us for label in labels)
    cells: list[tuple[Cell, ...]] = [
        (
            Name(label.name),
            percent(label.share),
            duration(label.time_us),
            f"{label.calls:,}",
            *((duration(label.device_us),) if on_gpu else ()),
        )
        for label in labels
    ]
    columns = (Column("label"), *_number("share", "host", "calls", *(("GPU work",) if on_gpu else ())))
    title = f"Time by label ({duration(window_us)})"
    return (Table(columns, rows_of(cells, _LABELS), title, noun=("label", "labels")),) if cells else ()


def module_table(modules: tuple[ModuleTime, ...]) -> tuple[Table, ...]:
    """Return the time by module, the backward pass charged to the module that made it."""
    on_gpu = any(module.device_us for module in modules)
    rows = sorted(modules, key=lambda row: -max(row.host_us + row.backward_host_us, row.device_us))
    cells: list[tuple[Cell, ...]] = []
    for row, line in zip(rows, _lines([row.line for row in rows]), strict=True):
        times = [row.host_us, row.backward_host_us, *((row.device_us, row.backward_device_us) if on_gpu else ())]
        cells.append((File(row.path), f"{row.calls:,}", *map(duration, times), *line))
    gpu = ("GPU work", "GPU backward") if on_gpu else ()
    columns = (Column("module"), *_number("calls", "host", "its backward", *gpu), *_at(rows))
    return (Table(columns, rows_of(cells, _MODULES), "Time by module", noun=("module", "modules")),) if cells else ()


def communication_table(rows: tuple[ExchangeTimes, ...], window_us: float) -> tuple[Table, ...]:
    """Return the communication of a window of this length, for the full view; nothing where there is none."""
    several = len({row.device for row in rows}) > 1
    cells: list[tuple[Cell, ...]] = [
        (
            Name(row.name),
            row.library,
            *((str(row.device),) if several else ()),
            f"{row.count:,}",
            *map(duration, (row.time_us, row.hidden_us, row.exposed_us)),
            size_text(row.median_bytes) if row.median_bytes is not None else "",
        )
        for row in rows
    ]
    device = (Column("device", number=True),) if several else ()
    columns = (Column("collective"), Column("library"), *device, *_number("calls", "time", "hidden", "exposed", "size"))
    title = f"Communication ({duration(window_us)})"
    noun = ("kind", "kinds")
    return (Table(columns, rows_of(cells), title, noun=noun, when="full"),) if cells else ()


def critical_path_table(parts: tuple[PathPart, ...]) -> tuple[Table, ...]:
    """Return what each thread and stream adds to the length of the window."""
    cells: list[tuple[Cell, ...]] = [
        (
            part.where,
            part.what,
            percent(part.share),
            duration(part.time_us),
            f"{part.runs:,}",
            Name(part.mostly, f", {duration(part.mostly_us)}") if part.mostly else "",
        )
        for part in parts
    ]
    columns = (Column("where"), Column("what"), *_number("share", "time", "runs"), Column("mostly"))
    return (Table(columns, rows_of(cells), "Critical path", noun=("part", "parts")),) if cells else ()


def memory_lines(peaks: tuple[MemoryPeak, ...]) -> tuple[Text, ...]:
    """Return a line for each device: its peak, and the operator that led to it. The short view has the last one's."""
    last = peaks[-1:]
    return tuple(
        Text(_memory(p), when="always" if p in last and p.allocated_bytes >= _SMALL else "full") for p in peaks
    )


def _memory(peak: MemoryPeak) -> str:
    where = f", reached in {peak.operator}" if peak.operator else ""
    where += f" at {line_of(peak.line)}" if peak.line else ""
    what = "above the least recorded" if peak.counted else "allocated"
    reserved = f" ({size_text(peak.reserved_bytes)} reserved)" if peak.reserved_bytes else ""
    return f"Memory of the {peak.device}: at most {size_text(peak.allocated_bytes)} {what}{reserved}{where}."
