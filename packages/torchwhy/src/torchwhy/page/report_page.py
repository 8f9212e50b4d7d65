"""The report page: the output of `explain` as static HTML, with a timeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as replace_field
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np
from msgspec.structs import replace

from torchwhy.allocator.recorded import recorded_memory
from torchwhy.analysis.breakdown import parts_of
from torchwhy.analysis.names import VerdictKind
from torchwhy.difference.difference import Difference
from torchwhy.loading.read import read_trace
from torchwhy.loading.trace import LoadedTrace
from torchwhy.page.assemble import MAX_SIZE, page
from torchwhy.page.joining import Source, joined
from torchwhy.page.memory_parts import memory_parts
from torchwhy.page.steps_chart import steps_chart
from torchwhy.page.timeline import Timeline, timeline_of
from torchwhy.present.comparison import comparison
from torchwhy.present.document import Bars, Block, Caveat, Document, Findings, Rules, Table, VerdictBlock
from torchwhy.present.explanation import explanation
from torchwhy.present.hotspots import memory_lines
from torchwhy.present.html import View, blocks_as_html, escaped
from torchwhy.present.job_explanation import job_explanation
from torchwhy.present.runs_explanation import runs_explanation
from torchwhy.present.trace_table import trace_table
from torchwhy.ranks.job import Job
from torchwhy.ranks.timeline import clocks_of
from torchwhy.report.job_report import JobReport, outliers_first
from torchwhy.report.runs_report import Run
from torchwhy.report.trace_report import TraceReport, describe
from torchwhy.rules.diagnose import Diagnosis, diagnose
from torchwhy.rules.rule import Rule
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.table import Table as Columns
from torchwhy.wording import counted

__all__ = ["MOST_EVENTS", "difference_page", "drawn", "framed", "job_page", "page_of", "runs_page", "trace_page"]

_TABLES: Final = {
    "ops": "Operators",
    "kernels": "Kernels",
    "modules": "Modules",
    "copies": "Copies",
    "launches": "Launches",
    "compile": "Compiled code",
}
_ON_DEVICE: Final = (VerdictKind.COMPUTE, VerdictKind.COMMUNICATION, VerdictKind.COPY)
"""The limits of a program for which the device's work decides."""

MOST_EVENTS: Final = 5_000_000
"""Maximum number of events, of all ranks together, that are drawn on one timeline."""

MOST_RANKS: Final = 16
"""Maximum number of ranks of a job that are drawn on one timeline."""

_ROWS: Final = 200
"""Maximum number of rows of a table on the page; `torchwhy explain --table` has them all."""

_TITLED: Final = ("verdict", "findings", "diff", "ranks", "runs")
"""Sections whose blocks bring titles."""

_VIEW: Final = View(verbose=True, linked=True)
_RUNS: Final = View(verbose=True)

_Kind = TypeVar("_Kind", bound=Block)


def trace_page(
    trace: LoadedTrace, diagnosis: Diagnosis, report: TraceReport, *, job: str = "", max_size: int = MAX_SIZE
) -> str:
    """Return the report page of one trace as the text of an HTML file.

    Args:
        trace: what was read.
        diagnosis: what the rules found in it.
        report: on both.
        job: the address of the page of the job whose rank it is; "" for none.
        max_size: bytes of the page; the timeline gets coarser until it fits.

    Raises:
        ArgumentError: the page without its timeline is larger.
    """
    return page(_body(trace, report, job), report.trace.name, [drawn(trace, diagnosis)], max_size=max_size)


def page_of(trace: LoadedTrace, name: str = "", *, max_size: int = MAX_SIZE) -> str:
    """Return the report page of a trace of which nothing was asked yet: all rules look at it.

    Args:
        trace: what was read.
        name: what to call it; the file's name where empty.
        max_size: bytes of the page.

    Raises:
        ArgumentError: the page without its timeline is larger.
    """
    diagnosis = diagnose(trace)
    return trace_page(trace, diagnosis, describe(trace, diagnosis, name, thorough=True), max_size=max_size)


def drawn(trace: Trace, diagnosis: Diagnosis) -> Timeline:
    """Return the timeline of a trace with the events of its findings and breakdown."""
    return timeline_of(trace, diagnosis.findings, {name: when for name, _, when in trace.derived(parts_of)})


def difference_page(
    a: Trace,
    b: Trace,
    found: Difference,
    *,
    rules: Iterable[Rule] | None = None,
    thresholds: Mapping[str, Mapping[str, Any]] | None = None,
    max_size: int = MAX_SIZE,
) -> str:
    """Return the page of two traces: what changed, and their timelines one above the other.

    Args:
        a, b: the traces, before and after.
        found: their difference.
        rules, thresholds: those it was found with, as for `diagnose`.
        max_size: bytes of the page.
    """
    chosen = None if rules is None else tuple(rules)
    document = comparison(found)
    sections = {
        "diff": blocks_as_html(document.blocks, _VIEW),
        "timeline": [
            line
            for i, (name, trace) in enumerate({"A": a, "B": b}.items())
            for line in (
                f"<h3>{name}: {escaped(PurePath(trace.file).name)}</h3>",
                f'<div id="stage-{i}" data-name="{name}"></div>',
            )
        ],
    }
    timelines = [drawn(trace, diagnose(trace, rules=chosen, thresholds=thresholds)) for trace in (a, b)]
    return page(framed(document, sections), document.title or "Difference", timelines, max_size=max_size)


def job_page(job: Job, report: JobReport, *, pages: Mapping[int, str] | None = None, max_size: int = MAX_SIZE) -> str:
    """Return the page of a job: its ranks, and their events on one timeline; of many ranks only the most unlike.

    Args:
        job: the traces of all ranks.
        report: on it.
        pages: the addresses of the ranks' own pages.
        max_size: bytes of the page.
    """
    document = job_explanation(report)
    blocks = document.blocks
    titled = [i for i, block in enumerate(blocks) if isinstance(block, Table) and block.title == "Ranks"]
    after = titled[0] + 1
    links = [f'<a href="{escaped(address)}">rank {rank}</a>' for rank, address in (pages or {}).items()]
    sections = {
        "ranks": [
            *blocks_as_html(blocks[:after], _VIEW),
            *([f'<p class="pages">Pages of the ranks: {" ".join(links)}</p>'] if links else []),
            *blocks_as_html(blocks[after:], _VIEW),
        ]
    }
    timelines = []
    shown = _drawn_ranks(job, report)
    if shown:
        timelines = [_of_ranks(job, shown)]
        sections["timeline"] = ['<div id="stage"></div>']
        if len(shown) < len(report.ranks):
            which = "those that differ most from the median rank, and the median rank"
            drawn_of = f"{counted(len(shown), 'rank')} of {len(report.ranks):,}"
            sections["timeline"].insert(0, f"<p>The timeline shows {drawn_of}: {which}.</p>")
    else:
        events = f"{report.trace.events:,} events, more than {MOST_EVENTS:,}"
        sections["ranks"].append(f"<p>The ranks have {events}: `torchwhy report` on one rank draws its timeline.</p>")
    return page(framed(document, sections), document.title, timelines, max_size=max_size)


def runs_page(folder: str, runs: Sequence[Run], unreadable: Sequence[str], *, max_size: int = MAX_SIZE) -> str:
    """Return the page of a folder of many runs: tables of the runs, of what was found in them, and of their ranks.

    Args:
        folder: with the folders of all runs.
        runs: what was read.
        unreadable: names of runs that could not be read.
        max_size: bytes of the page.
    """
    document = runs_explanation(folder, runs, unreadable)
    caveats, tables = _those(document.blocks, Caveat), _those(document.blocks, Table)
    lines = [*blocks_as_html([*caveats, *tables[:-1]], _RUNS), *_folded(tables[-1:], _RUNS)]
    return page(framed(document, {"runs": lines}), document.title, max_size=max_size)


def _drawn_ranks(job: Job, report: JobReport) -> frozenset[int]:
    """The ranks whose events are drawn: all; or, of many, the middle one and those that differ most from it."""
    if report.trace.events <= MOST_EVENTS and len(job) <= MOST_RANKS:
        return frozenset(job.numbers)
    ordered = outliers_first(report.ranks)
    sizes = {rank: summary.events for rank, summary in zip(job.numbers, job.summaries, strict=True)}
    chosen: set[int] = set()
    for row in (ordered[-1], *ordered):
        if len(chosen) == MOST_RANKS or sum(sizes[rank] for rank in chosen | {row.rank}) > MOST_EVENTS:
            break
        chosen.add(row.rank)
    return frozenset(chosen)


def _of_ranks(job: Job, shown: frozenset[int]) -> Timeline:
    """The events of these ranks by the clock of the first."""
    sources = []
    for summary, clock in zip(job.summaries, clocks_of(job), strict=True):
        if clock.rank not in shown:
            continue
        trace = read_trace(summary.file, Trace)
        shift = trace.beginning + summary.base_ns + round(clock.moved_us * 1000)
        sources.append(Source(f"rank {clock.rank}", timeline_of(trace), shift))
    first = min(source.shift for source in sources)
    return joined([replace_field(source, shift=source.shift - first) for source in sources])


def _body(trace: LoadedTrace, report: TraceReport, job: str) -> str:
    document = explanation(report)
    blocks = document.blocks
    sections = {
        "verdict": blocks_as_html(_those(blocks, Caveat, VerdictBlock, Bars), _VIEW),
        "steps": steps_chart(report.breakdown, report.window),
        "findings": [
            *blocks_as_html(_those(blocks, Findings), _VIEW),
            '<p class="needs-script together" hidden><output id="if-fixed"></output></p>',
            *_rules(_those(blocks, Rules)),
        ],
        "timeline": ['<div id="stage"></div>'],
        "tables": [*_folded(_those(blocks, Table)), *_tables(trace, report.verdict.kind)],
        "memory": _memory(trace, report),
    }
    return framed(document, sections, {"All ranks": job} if job else {})


def _those(blocks: Iterable[Block], *kinds: type[_Kind]) -> list[_Kind]:
    return [block for block in blocks if isinstance(block, kinds)]


def _tables(trace: LoadedTrace, limit: VerdictKind) -> list[str]:
    """The tables of the trace that hold anything, those of operators by what limits the program."""
    found = []
    for name, title in _TABLES.items():
        table = getattr(trace, name)()
        if name == "ops" and limit in _ON_DEVICE:
            table = table.sorted("device_self_us")
        if len(table):
            shown = trace_table(_told(table), name, "", _ROWS).blocks
            blocks = (block for block in shown if isinstance(block, Table))
            found += [replace(block, title=f"{title} ({len(table):,})") for block in blocks]
    return _folded(found, View(linked=True))


def _told(table: Columns) -> Columns:
    """The columns that say anything: not those that are empty, zero or -1 in every row."""
    columns = table.columns.items()
    return Columns({name: values for name, values in columns if name == "calls" or _says(values)})


def _says(values: Sequence[Any] | np.ndarray[Any, Any]) -> bool:
    if isinstance(values, np.ndarray):
        return bool(((values != 0) & (values != -1) & (values == values)).any())
    return any(value not in (None, "", 0) for value in values)


def _memory(trace: LoadedTrace, report: TraceReport) -> list[str]:
    """The peak of each device in a sentence, its curve, and who holds its memory then."""
    lines = blocks_as_html(memory_lines(report.memory), _VIEW)
    for memory in recorded_memory(trace).devices:
        lines += [f"<h3>{escaped(memory.name)}</h3>", *memory_parts(memory, View(linked=True, level=4))]
    return lines or ["<p>Memory was not recorded (profile_memory=True).</p>"]


def _rules(blocks: Iterable[Rules]) -> list[str]:
    """Which rules were not asked or broke off."""
    said = blocks_as_html(blocks, _VIEW)
    return ["<details><summary>Rules that could not look</summary>", *said, "</details>"] if said else []


def _folded(tables: Iterable[Table], view: View = _VIEW) -> list[str]:
    """Tables that open with a click on their titles."""
    lines = []
    for table in tables:
        content = blocks_as_html([replace(table, title="")], view)
        summary = f"<summary>{escaped(table.title)}</summary>"
        lines += [f'<details>{summary}<div class="wide">', *content, "</div></details>"]
    return lines


def framed(
    document: Document, sections: Mapping[str, Sequence[str]], pages: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The page's header with links to other pages and to the sections, and the sections."""
    links = "".join(f'<a href="{escaped(address)}">{escaped(title)}</a>' for title, address in pages.items())
    links += "".join(f'<a href="#{each}">{each.capitalize()}</a>' for each in sections)
    skip = '<a class="skip" href="#timeline">Skip to the timeline</a>' if "timeline" in sections else ""
    lines = [
        f"{skip}<header><h1>{escaped(document.title)}</h1>",
        f'<nav aria-label="Sections">{links}</nav>',
        '<span class="needs-script"><button type="button" id="keys">Keys</button>',
        '<button type="button" id="theme">Theme</button></span></header>',
        f'<main><p class="about">{"<br>".join(map(escaped, document.about))}</p>',
    ]
    for each, content in sections.items():
        script = ' class="needs-script"' if each == "timeline" else ""
        lines.append(f'<section id="{each}" aria-label="{each.capitalize()}"{script}>')
        lines += [] if each in _TITLED else [f"<h2>{each.capitalize()}</h2>"]
        lines += [*content, "</section>"]
    return "\n".join([*lines, "</main>"])
