"""Analysis at the end of a run: read the traces in its folder and write the findings.

This module connects recording with analysis, which are otherwise independent.
"""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from torchwhy.capture.folder import add_file, rank_of
from torchwhy.capture.operators import OperatorRow, table
from torchwhy.capture.result import ROWS
from torchwhy.errors import TorchWhyError
from torchwhy.finding import Finding
from torchwhy.loading.trace import LoadedTrace, load
from torchwhy.page.report_page import trace_page
from torchwhy.present.document import Caveat, Document
from torchwhy.present.explanation import explanation, short_explanation
from torchwhy.present.formats import render
from torchwhy.present.options import Options
from torchwhy.present.style import IN_A_FILE, PLAIN, Style
from torchwhy.pyproject import find_pyproject
from torchwhy.ranks.folder import later_windows
from torchwhy.report.trace_report import TraceReport, describe
from torchwhy.rules.diagnose import Diagnosis, diagnose
from torchwhy.rules.settings import chosen, settings_from
from torchwhy.run_tables import write_tables
from torchwhy.wording import counted, size_text

__all__ = ["LARGEST", "Explanation", "read_back"]

LARGEST: Final = 50_000_000
"""Bytes of compressed traces that are read: some 3 million events, which takes 10 s."""


@dataclass(frozen=True)
class Explanation:
    """Analysis of a run's traces: a short text, the findings in the first trace, and operators by name.

    `was_read` is False if the text says why they cannot be read.
    """

    text: str
    findings: tuple[Finding, ...] = ()
    operators: tuple[OperatorRow, ...] = ()
    was_read: bool = True


@dataclass(frozen=True)
class _Window:
    file: str
    name: str
    report: TraceReport
    findings: tuple[Finding, ...]


class _Notes(msgspec.Struct, frozen=True):
    """The contents of `run.json`."""

    problems: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def read_back(folder: Path, directory: Path, style: Style = PLAIN, form: str = "text") -> Explanation:
    """Read the traces of a run: write its tables, `findings.json` and `report.html` of each window, and `report.txt`.

    Errors are never raised, because the program has run and its folder is complete; the text reports them.

    Args:
        folder: of the run; or a trace that another profiler wrote; nothing is written next to it.
        directory: where the program was started: settings of rules are looked for there and above.
        style: of the text.
        form: of the text, one of `present.formats.FORMATS`. In other formats than "text" it is a document for each
            window that was read, with what the recording noted, and nothing else.
    """
    command = f"torchwhy explain {shlex.quote(str(folder))}"
    try:
        if folder.is_file():
            if folder.stat().st_size > LARGEST:
                return Explanation(f"The trace is large; {command} reads it and says what is wrong.")
            _, diagnosis, report = _diagnosed(folder, directory, "")
            text = render(short_explanation(report), form, Options(style)).rstrip("\n")
            return Explanation(
                f"{text}\n\n{command} shows the evidence." if form == "text" else text, diagnosis.findings
            )
        windows, operators, unread = _read(folder, directory)
        if not windows:
            return Explanation(f"The trace is large; {command} reads it and says what is wrong.")
        said = (folder / "report.txt").read_text(encoding="utf-8")
        head = f"{said}\n{table(operators, ROWS)}\n"
        add_file(folder / "report.txt", f"{head}\n{render(explanation(windows[0].report), options=Options(IN_A_FILE))}")
        if form != "text":
            documents = [_noted(short_explanation(window.report), folder) for window in windows]
            text = render(documents, form, Options(style)).rstrip("\n")
            return Explanation(text, windows[0].findings, operators)
        short = render(short_explanation(windows[0].report), options=Options(style)).rstrip("\n")
        parts = [short, *_others(windows, unread, style), _pointers(folder, command)]
        return Explanation("\n\n".join(parts), windows[0].findings, operators)
    except (TorchWhyError, OSError) as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001
        # A mistake of ours or a lack of memory: the program's own end must not change for any of them.
        why = f"{type(error).__name__}: {error}"
    return Explanation(f"The trace was not read ({' '.join(why.split())}); {command} tries again.", was_read=False)


def _read(folder: Path, directory: Path) -> tuple[list[_Window], tuple[OperatorRow, ...], int]:
    """Every window that is not too large, with its findings, written next to it; the table of operators.

    Last how many windows were too large.
    """
    first = folder / "trace.json.gz"
    found: list[_Window] = []
    traces: list[LoadedTrace] = []
    size = unread = 0
    for path in (first, *later_windows(first)):
        size += path.stat().st_size
        if size > LARGEST:
            unread += 1
            continue
        trace, diagnosis, report = _diagnosed(path, directory, folder.name)
        file = path.name.replace("trace", "findings").removesuffix(".gz")
        add_file(folder / file, render(explanation(report), "json"))
        drawn = file.replace("findings", "report").replace(".json", ".html")
        add_file(folder / drawn, trace_page(trace, diagnosis, report))
        name = report.window.name if trace.steps_found else f"window {len(found) + unread + 1}"
        found.append(_Window(file, name, report, diagnosis.findings))
        traces.append(trace)
    return found, write_tables(folder, traces), unread


def _diagnosed(path: Path, directory: Path, name: str) -> tuple[LoadedTrace, Diagnosis, TraceReport]:
    """A trace, what the rules find in it, and what there is to say of both."""
    settings = settings_from(find_pyproject(directory))
    # A program may have turned warnings into errors, in Python or in NumPy.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        trace = load(path)
        diagnosis = diagnose(trace, rules=chosen(settings), thresholds=settings.thresholds)
        return trace, diagnosis, describe(trace, diagnosis, name)


def _noted(document: Document, folder: Path) -> Document:
    """A document with what did not go as asked while it was recorded."""
    kept = folder / "run.json"
    run = msgspec.json.decode(kept.read_bytes(), type=_Notes) if kept.is_file() else _Notes()
    notes = (Caveat("Note", note) for note in (*run.problems, *run.hints))
    return msgspec.structs.replace(document, blocks=(*notes, *document.blocks))


def _others(windows: Sequence[_Window], unread: int, style: Style) -> Iterator[str]:
    """A sentence on each later window."""
    lines = []
    for window in windows[1:]:
        verdict = window.report.verdict
        sentence = f"{window.name}: {verdict.kind}. {verdict.sentence} ({window.file})"
        lines += style.wrap(style.plain(sentence))
    if unread:
        more = counted(unread, "more window was", "more windows were")
        lines.append(f"{more} not read, since all together are larger than {size_text(LARGEST)}.")
    if lines:
        yield "\n".join(lines)


def _pointers(folder: Path, command: str) -> str:
    page = folder / "report.html"
    lines = [f"{page} draws it." if page.is_file() else "", f"{command} shows the evidence."]
    if rank_of(os.environ) is not None:
        lines.append(f"torchwhy explain {shlex.quote(str(folder.parent))} compares the ranks.")
    return "\n".join(filter(None, lines))
