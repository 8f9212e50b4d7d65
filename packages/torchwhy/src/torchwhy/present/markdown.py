"""A document as Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from torchwhy.present.document import (
    Bars,
    Block,
    Caveat,
    Cell,
    Check,
    Checks,
    Code,
    Document,
    Evidence,
    Facts,
    FindingItem,
    Findings,
    Heading,
    Name,
    Rules,
    Table,
    Text,
    VerdictBlock,
    is_shown,
)
from torchwhy.present.options import Options
from torchwhy.present.phrases import at_stake, failed_rules, hidden_findings, listed, place
from torchwhy.present.style import PLAIN
from torchwhy.wording import counted, safe

__all__ = ["escaped", "render"]

_LONGEST: Final = 120
"""Characters of an event's name; kernels can have thousands."""

_EVIDENCE: Final = 3
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|#~])")


def render(documents: Sequence[Document], options: Options) -> str:
    """Return the Markdown, with a newline at its end."""
    return "\n\n".join(_document(document, options.verbose) for document in documents) + "\n"


def escaped(text: str) -> str:
    """Return a text as it is to be read: on one line, safe, with Markdown's own characters escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(safe(text).split()))


def code(text: str) -> str:
    """Return a text in back-ticks, more of them than it has in a row."""
    text = " ".join(safe(text).split()).replace("|", "\\|") or "(no name)"
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _document(document: Document, verbose: bool) -> str:
    parts = [[f"### {escaped(document.title)}"]] if document.title else []
    parts += [["<br>\n".join(map(escaped, document.about))]] if document.about else []
    for block in document.blocks:
        parts += _block(block, verbose) if is_shown(block.when, verbose) else []
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _block(block: Block, verbose: bool) -> list[list[str]]:
    match block:
        case Heading():
            return [[f"{'#' * (block.level + 2)} {escaped(block.text)}"]]
        case Text():
            return [[_text(block)]] if block.text else []
        case Caveat():
            return [[f"**{escaped(block.label)}**: {escaped(block.text)}"]]
        case VerdictBlock():
            return [[f"**{escaped(block.kind)}**: {escaped(' '.join([block.sentence, *block.caveats]))}"]]
        case Facts():
            return _titled(block.title, [f"- {escaped(name)}: {escaped(value)}" for name, value in block.rows])
        case Code():
            return _titled(block.title, _fenced(block))
        case Table():
            return _table(block, verbose)
        case Bars():
            return _bars(block, verbose)
        case Findings():
            return _findings(block, verbose)
        case Rules():
            return [[f"<sub>{escaped(sentence)}</sub>"] for sentence in failed_rules(block)]
        case Checks():
            checks = [check for check in block.items if is_shown(check.when, verbose)]
            return _titled(block.title, [line for check in checks for line in _check(check)])


def _titled(title: str, lines: list[str]) -> list[list[str]]:
    return [[f"**{escaped(title)}**"], lines] if title and lines else [lines]


def _text(block: Text) -> str:
    label = f"**{escaped(block.label)}**: " if block.label else ""
    text = label + escaped(block.text)
    return {"dim": f"<sub>{text}</sub>", "strong": f"**{text}**"}.get(block.look, text)


def _fenced(block: Code) -> list[str]:
    lines = [safe(line) for line in block.lines]
    fence = "`" * max(3, max((len(ticks) for line in lines for ticks in re.findall("`+", line)), default=0) + 1)
    return [f"{fence}{block.language}", *lines, fence]


def _table(block: Table, verbose: bool) -> list[list[str]]:
    rows = [row for row in block.rows if is_shown(row.when, verbose)]
    hidden = sum(row.when == "full" for row in block.rows) if not verbose else 0
    parts = [[f"**{escaped(block.title)}**"]] if block.title and (rows or block.sentences) else []
    parts += [[escaped(sentence)] for sentence in block.sentences]
    if rows:
        marks = ["---:" if column.number else "---" for column in block.columns]
        lines = [_line([escaped(column.title) for column in block.columns]), _line(marks)]
        parts.append(lines + [_line([_cell(cell) for cell in row.cells]) for row in rows])
    parts += [[f"<sub>{counted(hidden, f'more {block.noun[0]}', f'more {block.noun[1]}')}.</sub>"]] if hidden else []
    return parts


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Name) and cell.text:
        inset = "&nbsp;" * 2 * cell.depth
        return inset + code(PLAIN.shorten(cell.text, _LONGEST)) + escaped(cell.after)
    return escaped(str(cell))


def _bars(block: Bars, verbose: bool) -> list[list[str]]:
    bars = [bar for bar in block.bars if is_shown(bar.when, verbose)]
    if not bars:
        return []
    spread = [escaped(block.spread)] if block.spread else []
    lines = [_line([escaped(block.title), "share", "time", *spread]), _line(["---", *["---:"] * (2 + len(spread))])]
    for bar in bars:
        label = "&nbsp;" * 2 * bar.depth + escaped(bar.label)
        cells = [escaped(bar.amount), escaped(bar.time), *([escaped(bar.spread)] if spread else [])]
        lines.append(_line([label, *cells]))
    if block.whole[0] and spread:
        lines.append(_line([escaped(block.whole[0]), "", "", escaped(block.whole[1])]))
    return [lines, *([escaped(sentence)] for sentence in block.sentences)]


def _findings(block: Findings, verbose: bool) -> list[list[str]]:
    shown = listed(block, verbose)
    parts = [line for number, item in enumerate(shown, 1) for line in _finding(number, item)]
    parts += [] if shown or not block.nothing else [[escaped(block.nothing)]]
    notes = [hidden_findings(block, verbose), *at_stake(block, verbose)]
    return parts + [[f"<sub>{note}</sub>"] for note in notes if note]


def _finding(number: int, item: FindingItem) -> list[list[str]]:
    facts = ", ".join(filter(None, (item.severity, item.stake, item.certainty)))
    parts = [[f"{number}. **{escaped(item.title)}** ({escaped(facts)}; {code(item.rule)})"]]
    evidence = [f"   - {_evidence(one, item.common)}" for one in item.evidence[:_EVIDENCE]]
    parts += [evidence] if evidence else []
    parts += [[f"   Why: {escaped(item.why)}"]] if item.why else []
    return parts + ([[f"   **Fix**: {escaped(item.fix)}"]] if item.fix else [])


def _evidence(one: Evidence, common: str) -> str:
    facts = ", ".join(escaped(fact) for fact in (one.facts, common) if fact)
    at = f", at {code(one.line)}" if one.line else ""
    return f"{code(PLAIN.shorten(one.name, _LONGEST))}{': ' if facts else ''}{facts}{at}"


_MARKS: Final = {"passed": "ok", "failed": "**FAIL**", "skipped": "skipped", "error": "**ERROR**"}


def _check(check: Check) -> list[str]:
    at = f" at {code(place(check))}" if place(check) and check.outcome != "passed" else ""
    return [
        f"- {_MARKS[check.outcome]}: {escaped(check.text)}{at}",
        *(f"  - {escaped(text)}" for text in check.evidence),
    ]
