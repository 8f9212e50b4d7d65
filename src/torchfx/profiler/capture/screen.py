"""A capture as a screen of text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from torchfx.profiler.capture.operators import OperatorRow
from torchfx.profiler.capture.result import Capture
from torchfx.profiler.capture.step_clock import Overhead

__all__ = ["duration", "render", "table"]

ROWS = 10
NAME_WIDTH = 52
COMMAND_WIDTH = 100


def render(capture: Capture) -> str:
    """What was recorded, where the time went, the most expensive operators, what looking cost, and notes."""
    parts = ["\n".join(_head(capture))]
    if capture.breakdown.wall_us:
        parts += ["\n".join(_where(capture)), table(capture.operators, ROWS), "\n".join(_cost(capture))]
    notes = [f"note: {note}" for note in (*capture.problems, *capture.hints)]
    parts.append("\n".join(notes))
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
        share = f"{row.self_cpu_us / whole:.1%}" if whole and row.kind == "operator" else ""
        times = [duration(row.self_cpu_us), share, duration(row.cpu_us)]
        cells.append([
            row.name if len(row.name) <= NAME_WIDTH else row.name[: NAME_WIDTH - 3] + "...",
            f"{row.calls}",
            *(times if row.kind != "kernel" else ["", "", ""]),
            *(duration(time) if time else "" for time in (row.self_device_us, row.device_us)),
            *(_bytes(size) if size else "" for size in (row.self_cpu_bytes, row.self_device_bytes)),
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
    steps, wall = capture.breakdown.steps, duration(capture.breakdown.wall_us)
    if not capture.breakdown.wall_us:
        return f"{devices}, {capture.windows} window{'s' * (capture.windows != 1)}"
    if capture.schedule is None:
        return f"the whole run as one window without steps, {wall}, {devices}"
    if not steps:
        return f"the beginning of the run, {wall}, {devices}"
    return (
        f"{steps} step{'s' * (steps != 1)} of {capture.steps_seen}, {wall}, {devices}; "
        f"steps from {capture.steps_from} ({capture.schedule})"
    )


def _where(capture: Capture) -> Iterator[str]:
    breakdown = capture.breakdown
    each = f", per step {duration(breakdown.wall_us / breakdown.steps)}" if breakdown.steps else ""
    yield f"where the time went{each}"
    for share in breakdown.shares:
        time = share.time_us / max(breakdown.steps, 1)
        bar = "#" * round(40 * share.fraction)
        yield f"  {share.name:<18}{duration(time):>10}{share.fraction:>8.1%}  {bar}".rstrip()
    if breakdown.device_busy_us is not None and breakdown.wall_us:
        busy = breakdown.device_busy_us / breakdown.wall_us
        yield f"  GPU busy          {duration(breakdown.device_busy_us / max(breakdown.steps, 1)):>10}{busy:>8.1%}"


def _cost(capture: Capture) -> Iterator[str]:
    if not capture.breakdown.steps or capture.overhead is None:
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


def duration(time_us: float) -> str:
    """Microseconds, for people.

    >>> duration(12.3), duration(4567), duration(7.8e6)
    ('12.3 us', '4.57 ms', '7.8 s')
    """
    for limit, scale, unit in ((1e3, 1, "us"), (1e6, 1e3, "ms")):
        if abs(time_us) < limit:
            return f"{time_us / scale:.3g} {unit}"
    return f"{time_us / 1e6:.3g} s" if time_us < 1e9 else f"{time_us / 1e6:.0f} s"


def _bytes(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} GiB"
