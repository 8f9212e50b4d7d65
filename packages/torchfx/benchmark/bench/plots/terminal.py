"""Reports drawn with plain characters: bars on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bench.report import LatencyRow, Report, TargetRow, ThresholdRow, ThroughputRow

__all__ = ["bars", "draw"]

WIDTH = 50

Bars = list[tuple[str, float]]


def bars(title: str, values: Sequence[tuple[str, float]], unit: str, width: int = WIDTH) -> list[str]:
    """Draw labelled positive values; one step of the scale is a constant factor, the smallest value one mark.

    Examples:
        >>> print(*bars("time", [("fast", 1.0), ("slow", 100.0)], "ms", width=9), sep="\\n")
        time, ms
          fast  #          1
          slow  #########  100
    """
    if not values:
        return []
    low, high = min(value for _, value in values), max(value for _, value in values)
    span = math.log(high / low) or 1.0
    name = max(len(label) for label, _ in values)
    lines = [f"{title}, {unit}"]
    for label, value in values:
        length = 1 + round((width - 1) * math.log(value / low) / span)
        lines.append(f"  {label:<{name}}  {'#' * length:<{width}}  {value:,.4g}")
    return lines


def draw(report: Report) -> str:
    """Draw a report; one group of bars for each signal, and for each contender at the smallest block."""
    return "\n\n".join("\n".join(bars(title, values, unit)) for title, values, unit in _groups(report))


def _groups(report: Report) -> Iterator[tuple[str, Bars, str]]:
    throughput = [row for row in report.rows if isinstance(row, ThroughputRow)]
    for size in dict.fromkeys((row.channels, row.duration_s) for row in throughput):
        found = [row for row in throughput if (row.channels, row.duration_s) == size]
        title = f"{size[0]} x {size[1]:g} s"
        yield title, [(row.contender, row.ns_per_sample) for row in found], "ns/sample (shorter is faster)"
    latencies = [row for row in report.rows if isinstance(row, LatencyRow)]
    smallest = min((row.block for row in latencies), default=0)
    for row in latencies:
        if row.block == smallest:
            yield f"{row.contender}, blocks of {row.block}", _histogram(row), "calls by time"
    thresholds = [row for row in report.rows if isinstance(row, ThresholdRow)]
    for kind in dict.fromkeys(row.kind for row in thresholds):
        gains = [(str(row.samples), row.gain) for row in thresholds if row.kind == kind]
        yield kind, gains, "time whole / time split, by samples"
    targets = [row for row in report.rows if isinstance(row, TargetRow)]
    if targets:
        yield "margin", [(row.claim, _margin(row)) for row in targets], "1 = just met, longer is better"


def _margin(row: TargetRow) -> float:
    return row.ratio / row.target if row.relation == ">=" else row.target / row.ratio


def _histogram(row: LatencyRow) -> Bars:
    filled = [i for i, count in enumerate(row.counts) if count]
    return [(f"{row.edges_us[i]:,.1f} to {row.edges_us[i + 1]:,.1f} us", float(row.counts[i])) for i in filled]
