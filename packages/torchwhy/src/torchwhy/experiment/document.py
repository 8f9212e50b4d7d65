"""What experiments answer, as documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchwhy.experiment.cases import disagreements
from torchwhy.experiment.observations import notes, why
from torchwhy.experiment.peaks import DevicePeaks
from torchwhy.experiment.reading import Reading, Step
from torchwhy.experiment.study import CaseResult
from torchwhy.experiment.sweep import Sweep, finding
from torchwhy.present.document import (
    Bar,
    Bars,
    Block,
    Caveat,
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Heading,
    Look,
    Name,
    Table,
    Text,
    VerdictBlock,
    rows_of,
)
from torchwhy.wording import duration, percent, seconds, size_text

__all__ = ["peaks_document", "study_document", "sweep_document"]

SHOWN = 20  # steps
_LOOKS: dict[str, Look] = {"overhead-bound": "bad", "mixed": "warning", "compute-bound": "good"}


def study_document(results: Sequence[CaseResult]) -> Document:
    """Return what one or several cases of an experiment showed."""
    name = results[0].experiment
    blocks = [block for result in results for block in _case(result, alone=len(results) == 1)]
    disagree = disagreements(results)
    blocks += [Caveat("disagreement", text) for text in disagree]
    data = {
        "schema": 1,
        "kind": "experiment",
        "experiment": name,
        "cases": [result.to_dict() for result in results],
        "disagreements": disagree,
    }
    title = f"{name} {results[0].case}" if len(results) == 1 else f"{name}: {len(results)} cases"
    return Document(title, tuple(blocks), data, command="experiment")


def _case(result: CaseResult, alone: bool) -> list[Block]:
    reading, case = result.reading, result.case
    reason = why(reading, result.work_share, result.fastest_s, result.floor_s)
    reason += ", or waiting: other processes took the processors" if result.disturbed else ""
    blocks: list[Block] = [] if alone else [Heading(str(case))]
    blocks += [VerdictBlock(result.regime, reason, look=_LOOKS.get(result.regime, ""))]
    schedule = f"wait {case.schedule.wait}, warmup {case.schedule.warmup}, active {case.schedule.active}"
    blocks += [_steps(reading, schedule)]
    blocks += [Caveat("note", text) for text in notes(reading, case, result.fastest_s)]
    if reading.calls:
        calls = tuple("  " * c.depth + c.name + (f"  x {c.n}" if c.n > 1 else "") for c in reading.calls)
        blocks.append(Code(calls, title="What the last step calls"))
    if reading.kernels:
        blocks.append(_kernels(reading))
    if reading.profiler_us:
        own = ", ".join(f"{name} {duration(us)}" for name, us in reading.profiler_us)
        blocks.append(Text(f"{own}: the profiler's own, not the program's.", look="dim"))
    return [*blocks, Facts((("trace", str(result.trace)), ("table", str(result.table))))]


def _steps(reading: Reading, schedule: str) -> Table:
    titles = ("host", "to first operator", "device", "launches", "launch to start")
    columns = (Column("step"), *(Column(title, number=True) for title in titles))
    return Table(
        columns,
        rows_of([_step(step) for step in reading.steps], limit=SHOWN),
        title=f"Recorded steps ({schedule})",
        noun=("step", "steps"),
    )


def _step(step: Step) -> tuple[Cell, ...]:
    dead = "-" if step.dead_us is None else duration(step.dead_us)
    device = duration(step.device_us) if step.launches else "-"
    delay = "-" if step.delay_us is None else duration(step.delay_us)
    return (f"#{step.number}", duration(step.host_us), dead, device, str(step.launches), delay)


def _kernels(reading: Reading) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (Name(k.name), str(k.n), *map(duration, (k.median_us, k.mean_us, k.min_us, k.max_us))) for k in reading.kernels
    ]
    titles = ("times", "median", "mean", "min", "max")
    return Table((Column("kernel"), *(Column(title, number=True) for title in titles)), rows_of(rows))


def sweep_document(found: Sweep, files: Sequence[Path] = ()) -> Document:
    """Return a sweep: a bar for each size, the share of its time that is work."""
    case = found.case
    batch = f"batch {case.batch}, " if case.batch is not None else ""
    bars = tuple(
        Bar(
            f"size {point.size}",
            point.work_share,
            percent(point.work_share),
            seconds(point.median_s),
            f"{point.flops_per_s / 1e9:,.0f} GFLOP/s, {point.regime}",
            _LOOKS.get(point.regime, "warning"),
        )
        for point in found.points
    )
    blocks: list[Block] = [
        Bars("Share of the time that is work, not overhead", bars),
        Text(finding(found), look="strong"),
    ]
    blocks += [Facts(tuple(("file", str(path)) for path in files))] if files else []
    title = f"{found.experiment} {batch}{case.dtype}, {case.variant}, on {case.device}"
    return Document(title, tuple(blocks), {"schema": 1, "kind": "sweep", **found.to_dict()}, command="experiment")


def peaks_document(devices: Sequence[DevicePeaks]) -> Document:
    """Return measured peaks, and the tables that `pyproject.toml` takes."""
    blocks: list[Block] = []
    for found in devices:
        rows: list[tuple[Cell, ...]] = [
            (
                f"product of {one.dtype}",
                f"{one.flops_per_s / 1e12:,.3g} TFLOP/s",
                f"{one.size} rows",
                seconds(one.time_s),
            )
            for one in found.rates
        ]
        bandwidth, copied = found.bandwidth_bytes_per_s, found.copied_bytes
        copy = ("copy in memory", f"{bandwidth / 1e9:,.3g} GB/s", size_text(copied), seconds(2 * copied / bandwidth))
        columns = (Column(found.name), *(Column(title, number=True) for title in ("reached", "size", "time")))
        blocks.append(Table(columns, rows_of([*rows, copy])))
        if found.disturbed:
            text = f"other processes took the processors: the figures of {found.device} are too low"
            blocks.append(Caveat("busy-machine", f"{text}; repeat it on an idle machine"))
    lines = "\n\n".join(found.toml for found in devices).split("\n")
    blocks.append(Code(tuple(lines), language="toml", title="For pyproject.toml, to measure findings against"))
    data = {"schema": 1, "kind": "peaks", "devices": [found.to_dict() for found in devices]}
    return Document("Measured peaks", tuple(blocks), data, command="experiment")
