"""A job's tables as text: what filled each rank's time, its collectives, and who came last."""

from __future__ import annotations

from typing import Any, Final

from torchfx.profiler.report.style import Style
from torchfx.profiler.wording import counted, duration, percent, size_text

__all__ = ["job_tables"]

_RANKS: Final = 16
_COLLECTIVES: Final = 5
Rows = list[tuple[str, ...]]


def job_tables(report: dict[str, Any], style: Style, verbose: bool) -> list[list[str]]:
    """Return the tables, each as lines.

    Args:
        report: what `describe_job` returns.
        style: of the text around.
        verbose: all rows.
    """
    tables = [_ranks(report, style, verbose), _collectives(report, style, verbose)]
    return [table for table in tables if table]


def _ranks(report: dict[str, Any], style: Style, verbose: bool) -> list[str]:
    rows = report["ranks"]
    shown = rows if verbose else rows[:_RANKS]
    last = {row["rank"]: (row["last"], row["of"]) for row in report["stragglers"]}
    cells: Rows = [("rank", "window", "a step", "computes", "only comm.", "idle", "came last")]
    for row in shown:
        came, of = last.get(row["rank"], (0, 0))
        cells.append(
            (
                str(row["rank"]),
                duration(row["window_us"]),
                duration(row["step_us"]) if row["step_us"] is not None else "",
                _share(row["compute_us"], row),
                _share(row["exposed_us"], row),
                _share(row["window_us"] - row["busy_us"], row),
                f"{percent(came / of)} of {of:,}" if of else "",
            )
        )
    more = [f"  and {counted(len(rows) - len(shown), 'more rank')}"] if len(rows) > len(shown) else []
    return [style.paint("Ranks", "bold"), *_aligned(cells), *more]


def _collectives(report: dict[str, Any], style: Style, verbose: bool) -> list[str]:
    rows = report["collectives"]
    if not rows:
        return []
    shown = rows if verbose else rows[:_COLLECTIVES]
    cells: Rows = [("collective", "ranks", "a rank's", "time", "of it waiting", "size", "bus GB/s")]
    for row in shown:
        cells.append(
            (
                style.shorten(style.plain(row["name"]), 24),
                str(row["group_size"] or ""),
                f"{row['count']:,.0f}",
                duration(row["time_us"]),
                percent(row["waiting_us"] / row["time_us"]) if row["time_us"] else "",
                size_text(row["median_bytes"]) if row["median_bytes"] is not None else "",
                f"{row['bus_gb_s']:.1f}" if row["bus_gb_s"] is not None else "",
            )
        )
    more = [f"  and {len(rows) - len(shown)} more"] if len(rows) > len(shown) else []
    return [style.paint("Collectives", "bold"), *_aligned(cells), *more]


def _share(time_us: float, row: dict[str, Any]) -> str:
    return percent(time_us / row["window_us"]) if row["window_us"] else ""


def _aligned(cells: Rows) -> list[str]:
    """The first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        rest = "  ".join(text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        lines.append(f"  {first:<{widths[0]}}  {rest}".rstrip())
    return lines
