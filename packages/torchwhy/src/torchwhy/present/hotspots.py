"""The parts that take time and memory, as blocks: operators, labels, modules, exchanges, the critical path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from torchwhy.analysis.call_tree import TreeCall
from torchwhy.analysis.compiler_log import CompilerLog
from torchwhy.analysis.costly_lines import CostlyLine, LineOperator
from torchwhy.analysis.critical_path import PathPart
from torchwhy.analysis.exchanges import ExchangeTimes
from torchwhy.analysis.hotspots import KindTime, KindTimes, LabelTime, ModuleTime, OperatorTime
from torchwhy.analysis.memory_peak import MemoryPeak
from torchwhy.analysis.phase_times import PhaseTimes
from torchwhy.present.document import Cell, Column, Facts, File, Name, Row, Table, Text, When, rows_of
from torchwhy.trace.derived.run_times import RunLine, RunTimes
from torchwhy.trace.meaning.frames import line_of
from torchwhy.wording import counted, digits, duration, enumeration, percent, size_text

__all__ = [
    "by_kind",
    "by_label",
    "call_tree_table",
    "communication_table",
    "compilation_table",
    "computing_table",
    "costly_lines_block",
    "critical_path_table",
    "memory_lines",
    "module_table",
    "phase_table",
    "run_lines",
]

_LABELS: Final = 3
_WHOLE: Final = 0.99
"""A label with at least this share of the window surrounds the whole window."""

_MODULES: Final = 12
_ALL_MODULES: Final = 30
_PART: Final = 0.01
"""A module with a smaller part of the longest one's time, on the host or the device, is left to `--table modules`."""

_COMPILATIONS: Final = 30

_PHASES: Final = 6
_ALL_PHASES: Final = 30

_KINDS: Final = 4
_MINOR: Final = 0.01
"""A kind with a smaller share of the device's work belongs to the full view."""

_SMALL: Final = 10**6
"""Bytes; a smaller peak belongs to the full view."""


_OF_THE_RUN: Final = 0.1
"""A start-up of which no line takes as much of the run except for imports belongs to the full view, as do lines outside
of the recording that take less."""

_OF_THE_RUN_US: Final = 5e5
"""The same for one that takes less time."""

_RUN_LINE: Final = 0.1
"""A line with a smaller part of its stretch of the run is left to the JSON."""

_RUN_LINES: Final = 3


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


_BOUNDS: Final = {
    "arithmetic": "Arithmetic decides",
    "memory": "Memory decides",
    "overhead": "Short calls and the Python between them decide",
    "python": "Python decides",
}


def costly_lines_block(
    lines: tuple[CostlyLine, ...], steps: int, when: When = "always", *, on_gpu: bool = False
) -> tuple[Facts, ...]:
    """Return where in the program the time passes that no finding explains; nothing where no line is known.

    Args:
        lines: the most time first.
        steps: of the window.
        when: in which view.
        on_gpu: whether their time is that of the GPU's work.
    """
    rows = tuple((percent(line.share), _line_text(line, steps, on_gpu=on_gpu)) for line in lines)
    if not rows:
        return ()
    what = "the GPU's work" if on_gpu else "operators"
    whole = duration(lines[0].time_us / lines[0].share)
    return (Facts(rows, f"Where in the program (of {whole}; {what} with the backward pass)", when),)


def _line_text(line: CostlyLine, steps: int, *, on_gpu: bool) -> str:
    """A line of the program with what is known of it, as a paragraph."""
    place = f"{line.line}: {line.source}" if line.source else line.line
    place += f" (and {counted(len(line.others), 'other line', 'other lines')} there)" if line.others else ""
    runs = f", in {digits(line.runs / steps)} runs of its function a step" if steps and line.runs >= 2 * steps else ""
    caller = f": {line.caller_source}" if line.caller_source else ""
    elsewhere = line.caller.rpartition(": ")[0] != line.line.rpartition(": ")[0]  # than a nested comprehension's line
    called = f"{runs}, as in {line.caller}{caller}" if line.caller and elsewhere else runs
    parts = [f"{duration(line.backward_us)} of it in the backward pass"] if line.backward_us else []
    parts += [f"{duration(line.python_us)} in Python"] if 10 * line.python_us >= line.time_us else []
    spent = f"{duration(line.time_us)}{f' ({enumeration(parts)})' if parts else ''}"
    sized = {one.name for one in line.operators if one.shapes}
    calls = enumeration(
        [
            (f"{duration(one.time_us)} in " if on_gpu else "") + _operator_text(one, steps, others=one.name in sized)
            for one in line.operators
        ]
    )
    sentences = [f"{place}{called}.", f"{spent}{f': {calls}' if calls else ''}."]
    if line.bound:
        rate = (
            f": {_figure(line.gflop_s)} GFLOP/s"
            if line.gflop_s
            else f": {_figure(line.gb_s)} GB/s"
            if line.gb_s
            else ""
        )
        sentences.append(f"{_BOUNDS[line.bound]}{rate}.")
    return " ".join([*sentences, *line.remarks])


def _operator_text(one: LineOperator, steps: int, *, others: bool) -> str:
    sizes = " x ".join(f"({', '.join(map(str, shape))})" for shape in one.shapes[:3]) or "other sizes" * others
    every = one.calls / steps if steps else 0.0
    count = f"{digits(every)} {one.name} a step" if every >= 1 else f"{one.calls:,} {one.name}"
    return f"{count}{f' of {sizes}' if sizes else ''}"


def by_kind(kinds: KindTimes, when: When = "always", *, with_shapes: bool = False) -> tuple[Table, ...]:
    """Return the device's work by kind, and how near each is to the device's peak; () without any work.

    Args:
        kinds: what to show.
        when: in which view.
        with_shapes: whether shapes were recorded.
    """
    whole = sum(row.time_us for row in kinds.rows)
    if not whole:
        return ()
    judged = sum(row.judged_share * row.time_us for row in kinds.rows if row.kind != "transfer") / whole
    rows = [row for row in kinds.rows if row.time_us]
    cells: list[tuple[Cell, ...]] = [
        (row.kind, percent(row.share), duration(row.time_us), *(_figures(row) if judged else ())) for row in rows
    ]
    columns = (Column("kind"), *_number("share", "time"))
    if judged:
        columns += (*_number("TFLOP/s", "GB/s", "of peak"), Column("bound by"), *_number("to gain"))
    few = sum(row.share >= _MINOR for row in rows[:_KINDS])
    title = f"GPU work by kind ({duration(whole)})"
    return (
        Table(
            columns,
            rows_of(cells, few),
            title,
            (_against(kinds, judged, with_shapes=with_shapes),),
            ("kind", "kinds"),
            when=when,
        ),
    )


def _figures(row: KindTime) -> tuple[Cell, ...]:
    """The rate that a kind reaches, and the possible gain."""
    reached = "" if row.roofline_share is None else percent(row.roofline_share)
    gain = "" if row.gain_us is None else duration(row.gain_us)
    return _figure(row.tflops), _figure(row.gb_s), reached, row.bound, gain


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _against(kinds: KindTimes, judged: float, *, with_shapes: bool) -> str:
    """The reference of the figures, and the part of the work that they cover."""
    if not judged and with_shapes:
        return "Shapes were recorded, but not of operators that launched this work: how fast it could be is unknown."
    if not judged:
        return "Record shapes (record_shapes=True) to see how fast it could be."
    if not kinds.peaks:
        return f"The peaks of {kinds.device or 'this device'} are unknown: give them with --device."
    return f"To gain: at 70% of {kinds.peaks} peaks, where sizes are known ({percent(judged)})."


def by_label(labels: tuple[LabelTime, ...], window_us: float) -> tuple[Table, ...]:
    """Return the time by label in a window of this length; nothing if the program has no labels."""
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
    # A label around everything says nothing in the short view.
    parts = [i for i, label in enumerate(labels) if label.share < _WHOLE][:_LABELS]
    rows = tuple(Row(row, "always" if i in parts else "full") for i, row in enumerate(cells))
    when: When = "always" if parts else "full"
    return (Table(columns, rows, title, noun=("label", "labels"), when=when),) if cells else ()


def module_table(modules: tuple[ModuleTime, ...], labels: tuple[LabelTime, ...] = ()) -> tuple[Table, ...]:
    """Return the time by module, the backward pass charged to the module that made it.

    In a recording without modules the program's labels stand for them, and are called labels.
    """
    what = "label" if {row.path for row in modules} & {label.name for label in labels} else "module"
    on_gpu = any(module.device_us for module in modules)
    longest = max((_longest(row) for row in modules), default=0.0)
    rows = sorted(modules, key=lambda row: -_longest(row))[:_ALL_MODULES]
    rows = [row for row in rows if _longest(row) >= _PART * longest]
    left = len(modules) - len(rows)
    left_out = f"{counted(left, f'shorter {what}')} left out: torchwhy explain --table modules has all of them."
    cells: list[tuple[Cell, ...]] = []
    for row, line in zip(rows, _lines([row.line for row in rows]), strict=True):
        times = [row.host_us, row.backward_host_us, *((row.device_us, row.backward_device_us) if on_gpu else ())]
        cells.append((File(row.path), f"{row.calls:,}", *map(duration, times), *line))
    gpu = ("GPU work", "GPU backward") if on_gpu else ()
    columns = (Column(what), *_number("calls", "host", "its backward", *gpu), *_at(rows))
    sentences = (left_out,) if left else ()
    title = "Time by module" if what == "module" else "Time by label and in its backward pass"
    block = Table(columns, rows_of(cells, _MODULES), title, sentences, (what, f"{what}s"))
    return (block,) if cells else ()


def _longest(row: ModuleTime) -> float:
    """Its time on the host or the device with its backward pass, whichever is longer."""
    return max(row.host_us + row.backward_host_us, row.device_us + row.backward_device_us)


def communication_table(rows: tuple[ExchangeTimes, ...], window_us: float) -> tuple[Table, ...]:
    """Return the communication of a window of this length, for the full view; nothing without communication."""
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


def phase_table(rows: tuple[PhaseTimes, ...]) -> tuple[Table, ...]:
    """Return the rounds of an inference server by phase and batch size; nothing for other programs."""
    on_gpu = any(row.device_us for row in rows)
    cells: list[tuple[Cell, ...]] = [
        (
            row.phase,
            f"{row.requests:,}" if row.requests is not None else "",
            f"{row.steps:,}",
            *map(duration, (row.median_us, row.p90_us, *((row.device_us,) if on_gpu else ()))),
            duration(row.us_per_token) if row.us_per_token is not None else "",
            f"{row.tokens_per_s:,.0f}" if row.tokens_per_s is not None else "",
        )
        for row in rows[:_ALL_PHASES]
    ]
    columns = (
        Column("phase"),
        *_number(
            "requests", "steps", "step", "90% within", *(("GPU busy",) if on_gpu else ()), "per token", "tokens/s"
        ),
    )
    left = len(rows) - len(cells)
    sentences = (f"{counted(left, 'more row')}: torchwhy explain --table phases has all of them.",) if left else ()
    title = "Steps of the server by phase and batch size"
    return (Table(columns, rows_of(cells, _PHASES), title, sentences, ("row", "rows")),) if cells else ()


def critical_path_table(parts: tuple[PathPart, ...]) -> tuple[Table, ...]:
    """Return what each thread and stream adds to the length of the window."""
    cells: list[tuple[Cell, ...]] = [
        (
            part.where,
            "between calls" if part.what == "python" and not part.mostly else part.what,
            percent(part.share),
            duration(part.time_us),
            f"{part.runs:,}",
            Name(part.mostly, f", {duration(part.mostly_us)}") if part.mostly else "",
        )
        for part in parts
    ]
    columns = (Column("where"), Column("what"), *_number("share", "time", "runs"), Column("largest"))
    return (Table(columns, rows_of(cells), "Critical path", noun=("part", "parts")),) if cells else ()


def call_tree_table(calls: tuple[TreeCall, ...], window_us: float) -> tuple[Table, ...]:
    """Return who calls whom in a window of this length, for the full view."""
    on_gpu = any(call.device_us for call in calls)
    cells: list[tuple[Cell, ...]] = [
        (
            Name(call.name, depth=call.depth),
            percent(call.host_us / window_us) if window_us else "",
            duration(call.host_us),
            f"{call.calls:,}",
            *((duration(call.device_us),) if on_gpu else ()),
        )
        for call in calls
    ]
    columns = (Column("call"), *_number("share", "host", "calls", *(("GPU work",) if on_gpu else ())))
    title = f"Who calls whom ({duration(window_us)})"
    return (Table(columns, rows_of(cells), title, noun=("call", "calls"), when="full"),) if cells else ()


def memory_lines(peaks: tuple[MemoryPeak, ...]) -> tuple[Text, ...]:
    """Return a line for each device: its peak, and the operator that led to it. The short view has the last one's."""
    last = peaks[-1:]
    return tuple(
        Text(_memory(p), when="always" if p.allocated_bytes >= _SMALL else "full")
        if p in last
        else Text(_memory(p), when="full")
        for p in peaks
        if p in last or p.allocated_bytes >= _SMALL
    )


def run_lines(run: RunTimes | None) -> tuple[Text, ...]:
    """Return what of the run passed before its steps, and outside of the recording; nothing where that isn't known."""
    if run is None:
        return ()
    first = f"step {run.steps + 1}" if run.steps else "the first step"
    before, after = run.start_up, run.outside
    own_us = max((one.time_us - one.import_us for one in before.lines), default=0.0)
    mostly = "; ".join(map(_run_line, _long(before.lines, before.time_us)))
    passed = f"{duration(before.time_us)} of {duration(run.run_us)} passed before {first}"
    start_up = Text(
        f"{passed}{f': {mostly}' if mostly else ''}.",
        "Start-up",
        when=_when(own_us, run),
    )
    others = _long(after.lines, after.time_us)
    if not others:
        return (start_up,)
    spent = sum(one.time_us for one in others)
    text = (
        f"{'; '.join(map(_run_line, others))}, of {duration(after.time_us)}. The recorded steps have less of that, so "
        "findings do not cover it: torchwhy profile --wait N records later steps, --step-on none what is no step."
    )
    return (start_up, Text(text, "Outside of the recording", when=_when(spent, run)))


def _when(time_us: float, run: RunTimes) -> When:
    return "always" if time_us >= max(_OF_THE_RUN * run.run_us, _OF_THE_RUN_US) else "full"


def _long(lines: tuple[RunLine, ...], whole_us: float) -> list[RunLine]:
    return [one for one in lines if one.time_us >= _RUN_LINE * whole_us][:_RUN_LINES]


def _run_line(one: RunLine) -> str:
    what = " with what it imports" if 2 * one.import_us > one.time_us else ""
    return f"{duration(one.time_us)}{what} in {one.line}{f' ({one.source})' if one.source else ''}"


def _memory(peak: MemoryPeak) -> str:
    device = "the CPU" if peak.device == "CPU" else peak.device
    where = f", in {peak.operator}" if peak.operator else ""
    where += f" at {line_of(peak.line)}" if peak.line else ""
    what = "above the lowest recorded" if peak.counted else "allocated"
    reserved = f" ({size_text(peak.reserved_bytes)} reserved)" if peak.reserved_bytes else ""
    return f"Memory of {device} peaks at {size_text(peak.allocated_bytes)} {what}{reserved}{where}."


def compilation_table(log: CompilerLog | None) -> tuple[Table, ...]:
    """Return the compilations of the compiler's log with their times, those before the window included."""
    if log is None or not log.compilations:
        return ()
    cells: list[tuple[Cell, ...]] = [
        (
            one.id,
            duration(one.compile_us),
            duration(one.backward_us) if one.backward_us else "",
            f"{one.operators:,}",
            File(one.line),
            one.failed_guard or one.error,
        )
        for one in log.compilations
    ]
    columns = (
        Column("compilation"),
        *_number("forward", "backward", "operators"),
        Column("function"),
        Column("guard that failed before"),
    )
    title = f"Compilations of the whole run, by the compiler's log ({log.count:,})"
    noun = ("compilation", "compilations")
    return (Table(columns, rows_of(cells, _COMPILATIONS), title, noun=noun, when="full"),)
