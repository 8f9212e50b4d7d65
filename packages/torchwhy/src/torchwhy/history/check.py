"""Whether the newest runs of each series are slower than those before: the gate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from torchwhy.errors import ArgumentError
from torchwhy.history.changes import Change, Series
from torchwhy.history.runs import STEP
from torchwhy.wording import counted, duration, percent

__all__ = ["SeriesCheck", "amount", "check_series", "short", "title_of"]


@dataclass(frozen=True)
class SeriesCheck:
    """The gate's result for a series.

    Attributes:
        series: the compared runs: the newest.
        kind: "slower", "no slowdown" or "too few runs".
        sentence: the same for people, with numbers.
        changes: all changes among them.
        since: the first commit of those whose runs take longer; None without one.
    """

    series: Series
    kind: str
    sentence: str
    changes: tuple[Change, ...]
    since: Change | None = None

    @property
    def passed(self) -> bool:
        """Whether no slowdown was found; with too few runs none can be."""
        return self.kind != "slower"


def check_series(all_series: Iterable[Series], *, allowed: float = 0.01, since: str = "") -> tuple[SeriesCheck, ...]:
    """Look for a slowdown in the newest runs of each series that was not undone.

    Args:
        all_series: of the store.
        allowed: the fraction by which runs may take longer; 0.05 allows 5%.
        since: the first commit whose runs are compared, such as that of an intended slowdown; series without it are
            compared in full.

    Raises:
        ArgumentError: no run is of the commit `since`.
    """
    chosen = list(all_series)
    if since and chosen and not any(one.has(since) for one in chosen):
        raise ArgumentError(f"--since must be a commit of a run in the history, got {since!r}")
    if since:
        chosen = [one.since(since) if one.has(since) else one for one in chosen]
    return tuple(_check(one.newest, allowed) for one in chosen)


def _check(series: Series, allowed: float) -> SeriesCheck:
    found = series.changes()
    guilty, left = None, 1.0 + allowed
    later = 1.0
    for change in reversed(found):
        if change.shift.low * later > left:
            guilty, left = change, change.shift.low * later
        later *= change.shift.ratio
    if guilty is not None:
        return SeriesCheck(series, "slower", _slower(series, guilty, found), found, guilty)
    runs = counted(len(series.runs), "run")
    if not series.can_be_judged:
        be = "is" if len(series.runs) == 1 else "are"
        text = f"{runs} of {counted(len(series.starts) + 1, 'commit')} {be} too few to detect a change."
        return SeriesCheck(series, "too few runs", text, found)
    spread = percent(_spread(series))
    text = (
        f"No slowdown of more than {percent(allowed)} beyond the noise in the last {runs}, which begin with "
        f"{_commit(series, 0)}; the middle half of them differs by {spread}."
    )
    return SeriesCheck(series, "no slowdown", text, found)


def _slower(series: Series, change: Change, found: tuple[Change, ...]) -> str:
    shift, values = change.shift, series.values
    after, before = values[change.at : change.at + change.after], values[change.at - change.before : change.at]
    medians = [amount(series, float(np.median(part))) for part in (before, after)]
    text = (
        f"{percent(shift.ratio - 1)} more ({percent(shift.low - 1)} to {percent(shift.high - 1)}) since "
        f"{_commit(series, change.at)}: {medians[0]} in {counted(len(before), 'run')} before, "
        f"{medians[1]} in {counted(len(after), 'run')} from there on."
    )
    others = len([each for each in found if each.at > change.at])
    return text + (f" {counted(others, 'later change')} did not undo it." if others else "")


def _spread(series: Series) -> float:
    low, middle, high = np.quantile(series.values, (0.25, 0.5, 0.75))
    return float((high - low) / middle) if middle > 0 else 0.0


def _commit(series: Series, at: int) -> str:
    run = series.runs[at]
    return short(run.commit.id) if run.commit.id else f"the run of {run.run.source}"


def short(commit: str) -> str:
    """The first characters of a commit's name, and whether files differed from it."""
    name, dash, dirty = commit.partition("-dirty")
    is_hash = len(name) >= 40 and all(digit in "0123456789abcdef" for digit in name)
    return (name[:10] if is_hash else name) + dash + dirty


def amount(series: Series, value: float) -> str:
    """Return a value of the series with its unit."""
    return duration(value) if series.runs[0].run.metric == STEP else f"{value:,.6g}"


def title_of(series: Series) -> str:
    """The common properties of a series' runs, in one line."""
    name, metric, machine, configuration = series.runs[0].series
    measured = "" if metric == STEP else metric
    return ", ".join(filter(None, (name, measured, configuration, f"on {machine}" if machine else "")))
