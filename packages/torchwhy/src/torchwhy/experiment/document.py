"""The answers of experiments, as documents."""

from __future__ import annotations

from collections.abc import Sequence

from torchwhy.experiment.limits import Limits
from torchwhy.experiment.peaks import DevicePeaks
from torchwhy.experiment.reading import Step
from torchwhy.experiment.study import CaseResult, Point, crossover
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
from torchwhy.schema import SCHEMA
from torchwhy.wording import digits, duration, percent, seconds, size_text

__all__ = ["peaks_document", "study_document", "sweep_document"]

SHOWN = 20  # steps
SLOW_FIRST = 1.5  # times the usual step
COLD_DEAD_US = 50.0  # a wait before the first operator as long as this is preparation; a warm one is about 5 us
MISLEADING_MEAN = 1.25  # times the median
_LOOKS: dict[str, Look] = {"overhead-bound": "bad", "compute-bound": "good"}


def study_document(results: Sequence[CaseResult]) -> Document:
    """Return what one or several cases of an experiment showed; of several, a summary first."""
    name, several = results[0].case.workload, len(results) > 1
    blocks: list[Block] = [_summary(results)] if several else []
    for result in results:
        blocks += [Heading(str(result.case))] if several else []
        blocks += _case(result)
    data = {
        "schema": SCHEMA,
        "kind": "experiment",
        "experiment": name,
        "cases": [result.to_dict() for result in results],
    }
    title = f"{name}: {len(results)} cases" if several else f"{name} {results[0].case}"
    return Document(title, tuple(blocks), data, command="experiment")


def _summary(results: Sequence[CaseResult]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            str(r.case),
            duration(r.reading.steps[0].host_us),
            duration(r.reading.host_us),
            seconds(r.limits.call_s),
            duration(r.reading.device_us) if r.reading.kernels else "-",
            r.limits.regime,
        )
        for r in results
    ]
    titles = ("first step", "median step", "fastest call", "device")
    columns = (Column("case"), *(Column(title, number=True) for title in titles), Column("a warm call is"))
    return Table(columns, rows_of(rows), title="Summary", noun=("case", "cases"))


def _case(result: CaseResult) -> list[Block]:
    reading, case, limits = result.reading, result.case, result.limits
    schedule = f"wait {case.wait}, warmup {case.warmup}, active {case.active}"
    titles = ("host", "to first operator", "device", "launches", "launch to start")
    columns = (Column("step"), *(Column(title, number=True) for title in titles))
    steps = rows_of([_step(step) for step in reading.steps], limit=SHOWN)
    blocks: list[Block] = [
        VerdictBlock(limits.regime, _why(limits), look=_LOOKS.get(limits.regime, "warning")),
        Table(columns, steps, title=f"Recorded steps ({schedule})", noun=("step", "steps")),
        *(Caveat("note", text) for text in _notes(result)),
    ]
    if reading.calls:
        calls = tuple("  " * c.depth + c.name + (f"  x {c.n}" if c.n > 1 else "") for c in reading.calls)
        blocks.append(Code(calls, title="Calls of the last step"))
    if reading.kernels:
        kernels: list[tuple[Cell, ...]] = [
            (Name(k.name), str(k.n), *map(duration, (k.median_us, k.mean_us, k.min_us, k.max_us)))
            for k in reading.kernels
        ]
        heads = (Column(title, number=True) for title in ("times", "median", "mean", "min", "max"))
        blocks.append(Table((Column("kernel"), *heads), rows_of(kernels)))
    return [*blocks, Facts((("trace", str(result.trace)), ("table", str(result.table))))]


def _step(step: Step) -> tuple[Cell, ...]:
    dead = "-" if step.dead_us is None else duration(step.dead_us)
    device = duration(step.device_us) if step.launches else "-"
    delay = "-" if step.delay_us is None else duration(step.delay_us)
    return (f"#{step.number}", duration(step.host_us), dead, device, str(step.launches), delay)


def _why(limits: Limits) -> str:
    shares = limits.shares
    text = (
        f"a warm call takes {seconds(limits.call_s)} at its fastest: {percent(shares['overhead'])} overhead, "
        f"{percent(shares['compute'])} arithmetic at the rate of a large product, {percent(shares['memory'])} memory "
        "at the rate of a copy"
    )
    return text + ("; other processes took the processors" if limits.disturbed else "")


def _notes(result: CaseResult) -> list[str]:
    """Return what stands out: a slow first step, a wait before the first operator, a kernel whose mean misleads."""
    steps, said = result.reading.steps, []
    first, rest = steps[0], sorted(step.host_us for step in steps[1:])
    usual_us = rest[len(rest) // 2] if rest else first.host_us
    if first.host_us > SLOW_FIRST * usual_us:
        remedy = "preparation that happens once" if result.case.warm else "a warm run keeps that out of the trace"
        said.append(f"step #{first.number} takes {first.host_us / usual_us:.1f} times the usual one: {remedy}")
    if first.dead_us is not None and first.dead_us > COLD_DEAD_US:
        passes = f"{duration(first.dead_us)} pass before its first operator"
        said.append(f"{passes}: preparation that happens once, not work")
    said += [
        f"a kernel takes {duration(k.mean_us)} on average, but {duration(k.median_us)} usually: trust the median"
        for k in result.reading.kernels
        if k.mean_us > MISLEADING_MEAN * k.median_us
    ]
    return said


def sweep_document(points: Sequence[Point]) -> Document:
    """Return a sweep: a bar for each size, the share of its time that is not overhead."""
    case = points[0].case
    bars = tuple(
        Bar(
            f"size {point.case.size}",
            1 - point.limits.shares["overhead"],
            percent(1 - point.limits.shares["overhead"]),
            seconds(point.limits.median_s),
            f"{digits(point.case.flops / point.limits.call_s / 1e9)} GFLOP/s, {point.limits.regime}",
            _LOOKS.get(point.limits.regime, "warning"),
        )
        for point in points
    )
    decided = [(p.case.size, p.limits.shares["overhead"]) for p in points if p.limits.regime != "undecided"]
    size = crossover(decided)
    if not decided:
        found = "undecided at every size: other processes took the processors, or threads wait"
    elif size is not None:
        found = f"overhead-bound below size {size:.0f}; above it, more than half the time is work"
    elif points[-1].limits.regime == "overhead-bound":
        found = f"overhead-bound up to size {points[-1].case.size}: more than half of every time is overhead"
    else:
        found = "the sizes do not enclose an end of the overhead-bound ones"
    blocks = (Bars("Share of the time that is not overhead", bars), Text(found, look="strong"))
    batch = f"batch {case.batch}, " if case.batch is not None else ""
    title = f"{case.workload} {batch}{case.dtype}, {case.variant}, on {case.device}"
    data = {"schema": SCHEMA, "kind": "sweep", "experiment": case.workload, "crossover_size": size}
    return Document(title, blocks, {**data, "points": [p.to_dict() for p in points]}, command="experiment")


def peaks_document(devices: Sequence[DevicePeaks]) -> Document:
    """Return measured peaks, and the tables that `pyproject.toml` takes."""
    blocks: list[Block] = []
    for found in devices:
        rows: list[tuple[Cell, ...]] = [
            (
                f"product of {one.dtype}",
                f"{digits(one.flops_per_s / 1e12)} TFLOP/s",
                f"{one.size} rows",
                seconds(one.time_s),
            )
            for one in found.rates
        ]
        bandwidth, copied = found.bandwidth_bytes_per_s, found.copied_bytes
        copy = ("copy in memory", f"{digits(bandwidth / 1e9)} GB/s", size_text(copied), seconds(2 * copied / bandwidth))
        columns = (Column(found.name), *(Column(title, number=True) for title in ("reached", "size", "time")))
        blocks.append(Table(columns, rows_of([*rows, copy])))
        if found.disturbed:
            text = f"other processes took the processors: the figures of {found.device} are too low"
            blocks.append(Caveat("busy-machine", f"{text}; repeat it on an idle machine"))
    lines = "\n\n".join(found.toml for found in devices).split("\n")
    blocks.append(Code(tuple(lines), language="toml", title="For pyproject.toml, to measure findings against"))
    data = {"schema": SCHEMA, "kind": "peaks", "devices": [found.to_dict() for found in devices]}
    return Document("Measured peaks", tuple(blocks), data, command="experiment")
