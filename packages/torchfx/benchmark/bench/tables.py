"""Reports as tables of text: the cells that the terminal and the documents show."""

from __future__ import annotations

from collections.abc import Iterator

from bench.report import LatencyRow, Report, Row, TargetRow, ThresholdRow, ThroughputRow
from bench.threshold import crossover
from torchwhy.wording import seconds

__all__ = ["HEADERS", "as_text", "cells", "machine", "remarks"]

THROUGHPUT = (
    "signal", "contender", "time", "quartiles", "ns/sample", "GB/s", "of copy", "speed-up", "quartiles", "deviation",
)  # fmt: skip

HEADERS: dict[type[Row], tuple[str, ...]] = {
    ThroughputRow: THROUGHPUT,
    LatencyRow: ("block", "contender", "p50", "p99", "p99.9", "max", "block lasts", "deviation"),
    ThresholdRow: ("signal", "samples", "whole", "split", "whole/split", "quartiles"),
    TargetRow: ("claim", "target", "measured", "quartiles", "this", "other", "deviation", ""),
}


BUSY = 0.05
"""Share of the processors that other programs may take before a report warns: waiting threads then wait for them."""


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as text, one cell for each header of its kind."""
    if isinstance(row, ThroughputRow):
        return (
            f"{row.channels} x {row.duration_s:g} s",
            row.contender,
            seconds(row.time_s),
            f"{seconds(row.low_s)} to {seconds(row.high_s)}",
            f"{row.ns_per_sample:.3f}",
            f"{row.gb_per_s:.2f}",
            "" if row.of_copy is None else f"{row.of_copy:.0%}",
            "" if row.speedup is None else f"{row.speedup:.2f}",
            "" if row.speedup_low is None else f"{row.speedup_low:.2f} to {row.speedup_high:.2f}",
            deviation(row.deviation),
        )
    if isinstance(row, LatencyRow):
        times = (row.p50_us, row.p99_us, row.p999_us, row.max_us, row.deadline_us)
        return (str(row.block), row.contender, *(f"{time:,.1f} us" for time in times), deviation(row.deviation))
    if isinstance(row, ThresholdRow):
        return (
            row.kind,
            str(row.samples),
            f"{row.whole_us:,.1f} us",
            f"{row.split_us:,.1f} us",
            f"{row.gain:.2f}",
            f"{row.gain_low:.2f} to {row.gain_high:.2f}",
        )
    return (
        row.claim,
        f"{row.relation} {row.target:g}",
        f"{row.ratio:.2f}",
        f"{row.low:.2f} to {row.high:.2f}",
        seconds(row.time_s),
        seconds(row.other_s),
        deviation(row.deviation),
        "pass" if row.passed else "FAIL",
    )


def deviation(value: float | None) -> str:
    """Return a deviation, or nothing for what filters nothing."""
    return "" if value is None else f"{value:.0e}"


def as_text(report: Report) -> str:
    """Return a report's rows in aligned columns, as wide as they need to be."""
    rows = [HEADERS[type(report.rows[0])], *map(cells, report.rows)] if report.rows else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def machine(report: Report) -> str:
    """Return on what the report was measured, in one line."""
    facts = report.hardware
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    gpu = facts["gpu"] or "no GPU"
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['threads']} threads, "
        f"instruction set {facts['instruction_set']}, {facts['memory_gib']} GiB, {gpu}; "
        f"{facts['system']}; {versions}"
    )


def remarks(report: Report) -> Iterator[str]:
    """Yield what else there is to say about a report: a busy machine, refusals, crossovers, how to read it."""
    others = report.hardware["others"]
    if others is not None and others > BUSY:
        yield f"the machine was busy: other programs took {others:.0%} of its processors; don't trust these figures"
    for refusal in report.refused:
        yield f"not timed: {refusal.contender}, {refusal.case}: {refusal.reason}"
    thresholds = [row for row in report.rows if isinstance(row, ThresholdRow)]
    for kind in dict.fromkeys(row.kind for row in thresholds):
        found = crossover([row for row in thresholds if row.kind == kind])
        where = "nowhere in this range" if found is None else f"from {found} samples on"
        yield f"{kind}: splitting pays {where}"
    targets = [row for row in report.rows if isinstance(row, TargetRow)]
    if targets:
        yield f"{sum(row.passed for row in targets)} of {len(targets)} targets met"
    yield from report.notes
