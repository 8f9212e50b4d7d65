"""The answers of `torchwhy history` and `torchwhy bisect`, as documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Literal

from torchwhy.history.bisecting import Bisection
from torchwhy.history.changes import ALARMS, WINDOW, Change, Series
from torchwhy.history.check import SeriesCheck, amount, short, title_of
from torchwhy.history.store import StoredRun
from torchwhy.present.document import (
    Amount,
    Cell,
    Check,
    Checks,
    Column,
    Document,
    Look,
    Name,
    Table,
    Text,
    VerdictBlock,
    rows_of,
)
from torchwhy.schema import SCHEMA
from torchwhy.wording import percent

__all__ = ["added_document", "bisection_document", "check_document", "series_table"]


_LOOKS: Final[dict[str, Look]] = {"failed": "bad", "passed": "good", "not judged": "warning"}


def added_document(store: Path, runs: Sequence[StoredRun], new: Sequence[bool]) -> Document:
    """Return which runs were added, and which were there."""
    columns = (
        Column("run", below=True),
        Column("steps", number=True),
        Column("median", number=True),
        Column("commit"),
        Column(),
    )
    rows: list[tuple[Cell, ...]] = []
    for each, is_new in zip(runs, new, strict=True):
        one = Series((each,))
        said = "added" if is_new else "was there already"
        value = Amount(amount(one, each.run.value), each.run.value)
        rows.append((Name(title_of(one)), str(len(each.run.samples)), value, short(each.commit.id), said))
    data = {
        "schema": SCHEMA,
        "store": str(store),
        "runs": [{**_run(each), "added": is_new} for each, is_new in zip(runs, new, strict=True)],
    }
    return Document(
        str(store), (Table(columns, rows_of(rows), noun=("run", "runs")),), data, command="history", file=str(store)
    )


def check_document(store: Path, checks: Sequence[SeriesCheck]) -> Document:
    """Return the gate's verdict, and a line for each series."""
    failed = sum(not check.passed for check in checks)
    few = sum(check.kind == "too few runs" for check in checks)
    judged = len(checks) - few
    kind: Literal["failed", "passed", "not judged"] = "failed" if failed else "passed" if judged else "not judged"
    of_all = {
        "failed": f"{failed} of {len(checks)} series slower",
        "passed": f"no slowdown in {judged} series",
        "not judged": f"too few runs in each of {len(checks)} series",
    }[kind]
    caveats = (f"{few} of {len(checks)} have too few runs to be judged.",) if few and judged else ()
    outcomes = {"slower": "failed", "no slowdown": "passed", "too few runs": "skipped"}
    items = tuple(
        Check(title_of(check.series), outcomes[check.kind], f"{title_of(check.series)}: {check.sentence}")  # type: ignore[arg-type]
        for check in checks
    )
    note = (
        f"The newest {WINDOW} runs of each series are compared at most. A series of independent runs that never "
        f"changed fails with a probability of {percent(ALARMS)} at most in one check."
    )
    data = {
        "schema": SCHEMA,
        "store": str(store),
        "passed": {"failed": False, "passed": True, "not judged": None}[kind],
        "failed": failed,
        "judged": judged,
        "series": [_check(check) for check in checks],
    }
    blocks = (
        VerdictBlock(kind, of_all, caveats, look=_LOOKS[kind]),
        Checks(items),
        Text(note, look="dim"),
    )
    return Document(str(store), blocks, data, command="history", file=str(store))


def series_table(series: Series, changes: Sequence[Change]) -> Table:
    """Return the changes of a series, the newest first."""
    columns = (
        Column("since"),
        Column("change", number=True),
        Column("95% interval", number=True),
        Column("runs", number=True),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            short(series.runs[change.at].commit.id) or series.runs[change.at].run.source,
            f"{change.shift.ratio - 1:+.1%}",
            f"{change.shift.low - 1:+.1%} .. {change.shift.high - 1:+.1%}",
            f"{change.before} before, {change.after} after",
        )
        for change in reversed(changes)
    ]
    return Table(columns, rows_of(rows), noun=("change", "changes"))


def bisection_document(found: Bisection) -> Document:
    """Return the commit that made the program slower, and how sure that is."""
    columns = (
        Column("commit"),
        Column("verdict"),
        Column("ratio to good", number=True),
        Column("99% interval", number=True),
        Column("runs", number=True),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            short(each.commit), each.verdict, f"{each.shift.ratio:.3f}" if each.runs else "-",
            f"{each.shift.low:.3f} .. {each.shift.high:.3f}" if each.shift.judged else "-", str(each.runs),
        )
        for each in found.tried
    ]  # fmt: skip
    blocks = (
        VerdictBlock(found.kind, found.sentence, look="good" if found.kind == "found" else "warning"),
        Table(columns, rows_of(rows), "Commits measured", noun=("commit", "commits")),
    )
    return Document(found.command, blocks, {"schema": SCHEMA, **asdict(found)}, command="bisect")


def _run(each: StoredRun) -> dict[str, Any]:
    run = each.run
    return {
        "name": run.name, "metric": run.metric, "machine": run.machine, "configuration": each.configuration,
        "commit": each.commit.id, "committed_s": each.commit.when_s, "added_s": each.added_s, "source": run.source,
        "value": run.value, "samples": len(run.samples),
    }  # fmt: skip


def _check(check: SeriesCheck) -> dict[str, Any]:
    name, metric, machine, configuration = check.series.runs[0].series
    runs = check.series.runs
    return {
        "name": name, "metric": metric, "machine": machine, "configuration": configuration, "kind": check.kind,
        "sentence": check.sentence, "runs": len(runs), "first_commit": runs[0].commit.id,
        "last_commit": runs[-1].commit.id, "slower_since": runs[check.since.at].commit.id if check.since else None,
        "changes": [_change(check.series, change) for change in check.changes],
    }  # fmt: skip


def _change(series: Series, change: Change) -> dict[str, Any]:
    shift = change.shift
    return {
        "commit": series.runs[change.at].commit.id, "source": series.runs[change.at].run.source, "ratio": shift.ratio,
        "low": shift.low, "high": shift.high, "runs_before": change.before, "runs_after": change.after,
    }  # fmt: skip
