"""The page of a history: for each series its runs over time, with the changes found: `torchwhy history page`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

import numpy as np

from torchwhy.history.changes import Change, Series
from torchwhy.history.check import amount, check_series, short, title_of
from torchwhy.history.document import check_document, series_table
from torchwhy.page.assemble import page
from torchwhy.page.report_page import framed
from torchwhy.present.html import View, blocks_as_html, escaped
from torchwhy.wording import counted

__all__ = ["history_page"]

_VIEW: Final = View(verbose=True, level=3)
_WIDTH: Final = 960
_HEIGHT: Final = 160
_LABELS: Final = 20
_POINT: Final = 5
_MOST: Final = 500
"""Runs that are drawn, the newest."""


def history_page(store: Path, all_series: Sequence[Series]) -> str:
    """Return the page as the text of an HTML file that fetches nothing.

    Args:
        store: where the runs are from.
        all_series: to be shown; at least one.
    """
    checks = check_series(all_series)
    document = check_document(store, checks)
    order = sorted(range(len(checks)), key=lambda i: checks[i].passed)
    lines = [line for i in order for line in _trend(all_series[i])]
    return page(framed(document, {"verdict": blocks_as_html(document.blocks, _VIEW), "trends": lines}), document.title)


def _trend(series: Series) -> list[str]:
    changes = series.changes()
    about = f"{counted(len(series.runs), 'run')}, {counted(len(series.starts) + 1, 'commit')}"
    lines = [f"<h3>{escaped(title_of(series))}</h3>", f'<p class="note">{escaped(about)}</p>', *_chart(series, changes)]
    return lines + (blocks_as_html([series_table(series, changes)], _VIEW) if changes else [])


def _chart(series: Series, changes: Sequence[Change]) -> list[str]:
    """Runs as points from left to right, the medians between changes as lines. The scale does not begin at 0."""
    values, skipped = series.values[-_MOST:], max(len(series.runs) - _MOST, 0)
    low, high = float(values.min()), float(values.max())
    room = (high - low) or abs(high) or 1.0
    scale, across = (_HEIGHT - 2 * _POINT) / room, _WIDTH / len(values)

    def y(value: float) -> float:
        return _HEIGHT - _POINT - (value - low) * scale

    span = f"{amount(series, low)} to {amount(series, high)}; {_days(series, skipped)}"
    said = f"{title_of(series)}: {span}"
    lines = [
        f'<svg class="steps" viewBox="0 0 {_WIDTH} {_HEIGHT + _LABELS}" role="img" aria-label="{escaped(said)}">',
        f'<rect class="free" width="{_WIDTH}" height="1" y="{_HEIGHT}"/>',
    ]
    edges = [0, *(change.at - skipped for change in changes if change.at > skipped), len(values)]
    kinds = ["used", *("part-communication" if each.slower else "part-optimizer" for each in changes)][1 - len(edges) :]
    for left, right, kind in zip(edges, edges[1:], kinds, strict=False):
        middle = y(float(np.median(values[left:right])))
        lines.append(
            f'<rect class="{kind}" x="{left * across:.1f}" y="{middle - 1:.1f}" width="{(right - left) * across:.1f}" '
            'height="2"/>'
        )
    for i, value in enumerate(values.tolist()):
        text = escaped(_said(series, skipped + i))
        x = (i + 0.5) * across - _POINT / 2
        lines.append(
            f'<rect class="part-computing" x="{x:.1f}" y="{y(value) - _POINT / 2:.1f}" width="{_POINT}" '
            f'height="{_POINT}"><title>{text}</title></rect>'
        )
    lines += [
        f'<text x="{_WIDTH / 2:.0f}" y="{_HEIGHT + 14}">{escaped(span)}</text>',
        "</svg>",
    ]
    return lines + ([f'<p class="note">The newest {_MOST} runs are drawn.</p>'] if skipped else [])


def _said(series: Series, at: int) -> str:
    run = series.runs[at]
    parts = (
        short(run.commit.id),
        _day(series, at),
        amount(series, run.run.value),
        run.run.torch and f"PyTorch {run.run.torch}",
    )
    return ", ".join(filter(None, parts))


def _days(series: Series, first: int) -> str:
    days = _day(series, first), _day(series, len(series.runs) - 1)
    return days[0] if days[0] == days[1] else f"{days[0]} to {days[1]}"


def _day(series: Series, at: int) -> str:
    run = series.runs[at]
    when_s = run.added_s if run.commit.when_s is None else run.commit.when_s
    return datetime.fromtimestamp(when_s, timezone.utc).strftime("%Y-%m-%d")
