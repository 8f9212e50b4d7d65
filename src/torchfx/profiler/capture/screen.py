"""A capture as a screen of text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from torchfx.profiler.capture.operators import OperatorRow
from torchfx.profiler.capture.result import Capture
from torchfx.profiler.capture.step_clock import Overhead
from torchfx.profiler.wording import counted, duration, percent, shortened, size_text

__all__ = ["render", "table"]

ROWS = 10
NAME_WIDTH = 52
COMMAND_WIDTH = 100


def render(capture: Capture) -> str:
    """What was recorded, the most expensive operators, what looking cost, notes, and what the trace says."""
    parts = ["\n".join(_head(capture)), table(capture.operators, ROWS), "\n".join(_cost(capture))]
    notes = [f"note: {note}" for note in (*capture.problems, *capture.hints)]
    parts += ["\n".join(notes), capture.explanation]
    return "\n\n".join(part for part in parts if part)


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


def _head(capture: Capture) -> Iterator[str]:
    command = shlex.join(capture.command)
    yield f"program    {command if len(command) <= COMMAND_WIDTH else command[:COMMAND_WIDTH] + '...'}"
    if capture.ended != "finished":
        yield f"ended      {capture.ended}"
    yield f"recorded   {_recorded(capture)}"
    if capture.folder is not None:
        yield f"folder     {capture.folder}  (trace.json.gz opens in ui.perfetto.dev)"


def _recorded(capture: Capture) -> str:
    if not capture.windows:
        return "nothing"
    devices = "CPU and GPU" if capture.cuda else "CPU"
    if capture.schedule is None:
        parts = "as one window" if capture.windows <= 1 else f"in {capture.windows} windows"
        what = "the beginning of the run" if capture.cut else "the whole run"
        return f"{what} {parts} without steps, {devices}"
    if not capture.steps_recorded:
        # Without tables, PyTorch could not read back what is in the windows.
        what = "the beginning of the run" if capture.operators else counted(capture.windows, "window")
        return f"{what}, {devices}"
    return (
        f"{counted(capture.steps_recorded, 'step')} of {capture.steps_seen}, {devices}; "
        f"steps from {capture.steps_from} ({capture.schedule})"
    )


def _cost(capture: Capture) -> Iterator[str]:
    if not capture.steps_recorded or capture.overhead is None:
        return
    yield f"profiler   {_overhead(capture.overhead)}"


def _overhead(overhead: Overhead) -> str:
    if overhead.profiled_us is None:
        return "its cost is not known: no recorded step ended"
    profiled = f"{duration(overhead.profiled_us)} recorded (median of {overhead.profiled_n})"
    if overhead.baseline_us is None or overhead.ratio is None:
        return f"{profiled}; its cost is not known: no step but the first ran without it"
    baseline = f"{duration(overhead.baseline_us)} without (median of {overhead.baseline_n})"
    cost = f"{overhead.ratio - 1:+.0%} per step" if overhead.ratio > 1 else "no cost seen"
    return f"{cost}: {profiled}, {baseline}"
