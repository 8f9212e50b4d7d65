"""One finding in full, and the events it rests on."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from torchwhy.finding import Finding
from torchwhy.present.document import Block, Code, Column, Document, Facts, File, Findings, Name, Row, Table, Text
from torchwhy.present.findings import finding_item
from torchwhy.questions.opening import OpenTrace, Recording, found_by_id
from torchwhy.report.trace_report import ReportedFinding, reported
from torchwhy.rules.catalogue import all_rules
from torchwhy.rules.evidence import where
from torchwhy.schema import SCHEMA
from torchwhy.trace.derived.ownership import operators_of_work, own_line
from torchwhy.trace.file.columns import ABSENT, Int32
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.kernels import short_names
from torchwhy.wording import counted, duration_ns, size_text

__all__ = ["EvidenceEvent", "FindingAnswer", "evidence", "finding"]

_FRAMES: Final = 12
_SHOWN: Final = 20
"""Events in the short view."""

_MOST: Final = 200
"""Events at all."""


class FindingAnswer(msgspec.Struct, frozen=True):
    """A finding and the file it is of."""

    schema: int
    file: str
    finding: ReportedFinding


def finding(recording: Recording, id: str) -> Document:
    """Return a finding in full: cause, fix, all its evidence, when it happens, what its rule looks for.

    Raises:
        ArgumentError: there is no such finding.
    """
    one = found_by_id(recording, id)
    trace = recording.trace if isinstance(recording, OpenTrace) else None
    report = reported(one, trace)
    zero_us = one.window.start / 1000 if trace else None
    rule = next((rule for rule in all_rules() if rule.code == one.code), None)
    blocks: tuple[Block, ...] = (
        Findings((finding_item(report, zero_us, window=_window_name(recording)),), title="The finding"),
        Facts(tuple(_facts(one)), "About it"),
        *_stack(one),
        *(Text(part, look="") for part in (rule.documentation.split("\n\n") if rule else ())),
    )
    return Document(
        _name(recording), blocks, FindingAnswer(SCHEMA, recording.path, report), (), "finding", recording.path
    )


def _name(recording: Recording) -> str:
    return recording.explained.title


def _window_name(recording: Recording) -> str:
    return recording.report.window.name if isinstance(recording, OpenTrace) else ""


def _facts(one: Finding) -> list[tuple[str, str]]:
    facts = [("id", one.id), ("confidence", one.confidence)]
    facts.append(("cause", "tied to the symptom by ids in the trace" if one.linked else "inferred"))
    facts.append(("window", one.window.name))
    when = one.stretches
    if when:
        longest = int(when.lengths.argmax())
        at = _ms(int(when.starts[longest]) - one.window.start)
        length = duration_ns(int(when.lengths[longest]))
        facts.append(
            ("when", f"{counted(len(when), 'stretch', 'stretches')}; the longest, {length}, begins at {at} ms")
        )
    return [*facts, ("source", one.source)]


def _ms(ns: int) -> str:
    return f"{ns / 1e6:,.3f}"


def _stack(one: Finding) -> tuple[Code, ...]:
    for item in one.evidence:
        if item.stack:
            more = len(item.stack) - _FRAMES
            rest = (f"and {counted(more, 'further frame')}",) if more > 0 else ()
            return (Code((*item.stack[:_FRAMES], *rest), title=f"Python frames around {item.name}, innermost first"),)
    return ()


class EvidenceEvent(msgspec.Struct, frozen=True):
    """One event that a finding rests on; `start_us` is in the file's own time."""

    name: str
    start_us: float
    duration_us: float
    where: str
    operator: str
    arguments: str
    line: str


class EvidenceAnswer(msgspec.Struct, frozen=True):
    """The longest events that a finding rests on, and how many there are."""

    schema: int
    file: str
    id: str
    count: int
    events: tuple[EvidenceEvent, ...]


def evidence(recording: Recording, id: str, limit: int = _SHOWN) -> Document:
    """Return the events that a finding rests on, the longest first.

    Args:
        recording: which.
        id: of the finding.
        limit: how many events.

    Raises:
        ArgumentError: there is no such finding.
    """
    one = found_by_id(recording, id)
    rows = np.unique(np.concatenate([np.empty(0, np.int32), *(item.rows for item in one.evidence)]))
    events: list[EvidenceEvent] = []
    if isinstance(recording, OpenTrace):
        events = _events(recording.trace, rows.astype(np.int32), min(limit, _MOST))
    zero_us = one.window.start / 1000
    columns = ("begins, ms", "takes", "event", "where", "operator", "arguments", "line")
    table = Table(
        tuple(Column(title, number=i < 2, below=i > 3) for i, title in enumerate(columns)),
        tuple(Row(_cells(event, zero_us)) for event in events),
        f"Events behind {one.id}, the longest first",
        (_sentence(one, len(rows), len(events)),),
        ("event", "events"),
        answers=True,
    )
    data = EvidenceAnswer(SCHEMA, recording.path, one.id, len(rows), tuple(events))
    return Document(_name(recording), (table,), data, (), "evidence", recording.path)


def _sentence(one: Finding, count: int, shown: int) -> str:
    if shown:
        rest = f"; these are the longest {shown}" if shown < count else ""
        return f"{one.title}. It rests on {counted(count, 'event')}{rest}. Moments count from the window's beginning."
    names = "; ".join(filter(None, (f"{item.name}: {item.note or item.count}" for item in one.evidence[:5])))
    return f"{one.title}. It rests on no single events, but on what was counted: {names or 'the whole recording'}."


def _events(trace: Trace, rows: Int32, limit: int) -> list[EvidenceEvent]:
    """The longest of some rows; equal ones by their beginning and name, not by their place in the file."""
    events = trace.events
    longest = rows[np.lexsort((events.ts[rows], -events.dur[rows]))[: 4 * limit]].tolist()
    by_length = sorted((-int(events.dur[row]), int(events.ts[row]), trace.name(row), row) for row in longest)
    launched = dict(zip(trace.links.work.tolist(), trace.derived(operators_of_work).tolist(), strict=True))
    shorts = trace.derived(short_names)
    found = []
    for _, _, name, row in by_length[:limit]:
        operator = launched.get(row, -1)
        found.append(
            EvidenceEvent(
                shorts.get(name, name),
                int(events.ts[row]) / 1000,
                int(events.dur[row]) / 1000,
                where(trace, row),
                trace.name(operator) if operator >= 0 else "",
                _arguments(trace, row),
                own_line(trace, row),
            )
        )
    return found


def _arguments(trace: Trace, row: int) -> str:
    """What is known of an event's inputs and size."""
    events = trace.events
    texts = [(key, events.text(key, row)) for key in ("Input Dims", "Input type", "grid", "block")]
    known = [f"{key} {text}" for key, text in texts if text and text.strip("[] ,\"'")]
    size = int(events.integers("bytes", [row])[0])
    return ", ".join([*known, *([size_text(size)] if size not in (ABSENT, 0) else [])])


def _cells(event: EvidenceEvent, zero_us: float) -> tuple[str | Name | File, ...]:
    return (
        f"{(event.start_us - zero_us) / 1000:,.3f}",
        duration_ns(event.duration_us * 1000),
        Name(event.name),
        Name(event.where),
        Name(event.operator),
        Name(event.arguments),
        File(event.line),
    )
