"""Reports as PNG files."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from bench.report import LatencyRow, Report, ReportError, TargetRow, ThresholdRow, ThroughputRow
from bench.tables import machine

__all__ = ["save"]


PERCENTILES = {"p50_us": "p50", "p99_us": "p99", "p999_us": "p99.9", "max_us": "max"}


def save(report: Report, path: Path) -> None:
    """Draw a report and write a PNG.

    Raises:
        ReportError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    FigureCanvasAgg(figure)
    first = report.rows[0] if report.rows else None
    if isinstance(first, ThroughputRow):
        _throughput(figure, [row for row in report.rows if isinstance(row, ThroughputRow)])
    elif isinstance(first, LatencyRow):
        _latency(figure, [row for row in report.rows if isinstance(row, LatencyRow)])
    elif isinstance(first, ThresholdRow):
        _threshold(figure, [row for row in report.rows if isinstance(row, ThresholdRow)])
    elif isinstance(first, TargetRow):
        _targets(figure, [row for row in report.rows if isinstance(row, TargetRow)])
    figure.suptitle(f"{report.title}\n{textwrap.fill(report.work, 150)}", fontsize=9)
    figure.supxlabel(machine(report), fontsize=6)
    try:
        figure.savefig(path, dpi=110, format="png")
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error


def _throughput(figure: Any, rows: list[ThroughputRow]) -> None:
    """Time per sample over the duration, one panel per number of channels, quartiles as bars."""
    counts = sorted({row.channels for row in rows})
    panels = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    for axes, channels in zip(panels, counts, strict=True):
        for contender in dict.fromkeys(row.contender for row in rows):
            found = [row for row in rows if (row.contender, row.channels) == (contender, channels)]
            times = [row.ns_per_sample for row in found]
            below = [row.ns_per_sample * (1 - row.low_s / row.time_s) for row in found]
            above = [row.ns_per_sample * (row.high_s / row.time_s - 1) for row in found]
            durations = [row.duration_s for row in found]
            axes.errorbar(durations, times, [below, above], label=contender, marker="o", markersize=3, capsize=2)
        axes.set(xscale="log", yscale="log", xlabel="duration, s", title=f"{channels} ch")
        axes.grid(visible=True, which="both", alpha=0.25)
    panels[0].set_ylabel("ns per sample")
    panels[0].legend(fontsize=7)


def _latency(figure: Any, rows: list[LatencyRow]) -> None:
    """Percentiles over the block size, and the histogram of the smallest block."""
    percentiles, histogram = figure.subplots(1, 2)
    smallest = min(row.block for row in rows)
    for i, contender in enumerate(dict.fromkeys(row.contender for row in rows)):
        found = [row for row in rows if row.contender == contender]
        for (name, label), style in zip(PERCENTILES.items(), ("-", "--", "-.", ":"), strict=True):
            times = [getattr(row, name) for row in found]
            percentiles.plot([row.block for row in found], times, style, color=f"C{i}", label=f"{contender} {label}")
        first = next(row for row in found if row.block == smallest)
        histogram.stairs(first.counts, first.edges_us, color=f"C{i}", label=contender, fill=True, alpha=0.5)
    deadlines = {row.block: row.deadline_us for row in rows}
    percentiles.plot(list(deadlines), list(deadlines.values()), color="black", linewidth=0.8, label="the block lasts")
    percentiles.set(xscale="log", yscale="log", xlabel="samples per block", ylabel="time per call, us")
    histogram.set(xscale="log", yscale="log", xlabel="time per call, us", ylabel=f"calls, blocks of {smallest}")
    for axes in (percentiles, histogram):
        axes.grid(visible=True, which="both", alpha=0.25)
        axes.legend(fontsize=7)


def _threshold(figure: Any, rows: list[ThresholdRow]) -> None:
    """What splitting gains over the length, with quartiles."""
    axes = figure.subplots()
    for kind in dict.fromkeys(row.kind for row in rows):
        found = [row for row in rows if row.kind == kind]
        samples = [row.samples for row in found]
        axes.plot(samples, [row.gain for row in found], marker="o", markersize=3, label=kind)
        axes.fill_between(samples, [row.gain_low for row in found], [row.gain_high for row in found], alpha=0.2)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="samples", ylabel="time whole / time split")
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend()


def _targets(figure: Any, rows: list[TargetRow]) -> None:
    """Measured ratios with quartiles, and the promises."""
    axes = figure.subplots()
    places = range(len(rows))
    spreads = [[row.ratio - row.low for row in rows], [row.high - row.ratio for row in rows]]
    colours = ["C2" if row.passed else "C3" for row in rows]
    axes.barh(places, [row.ratio for row in rows], xerr=spreads, color=colours, alpha=0.7)
    axes.plot([row.target for row in rows], places, "k|", markersize=16, label="target")
    axes.set_yticks(places, [f"{row.claim} ({row.relation} {row.target:g})" for row in rows])
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="ratio")
    axes.legend()
