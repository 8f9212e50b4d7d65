"""A document as an HTML page: no scripts, nothing fetched, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from torchwhy.present.document import (
    Amount,
    Bar,
    Bars,
    Block,
    Calls,
    Caveat,
    Cell,
    Check,
    Checks,
    Code,
    Column,
    Document,
    Evidence,
    Facts,
    File,
    FindingItem,
    Findings,
    Heading,
    Name,
    Rules,
    Table,
    Text,
    VerdictBlock,
    Words,
    is_shown,
)
from torchwhy.present.options import Options
from torchwhy.present.phrases import at_stake, failed_rules, hidden_findings, listed, muted_rules, place
from torchwhy.present.style import PLAIN
from torchwhy.wording import counted, safe

__all__ = ["View", "blocks_as_html", "escaped", "fragment", "render"]

_LONGEST: Final = 120
"""Characters of an event's name; kernels can have thousands."""

_EVIDENCE: Final = 3
_CSS: Final = """
.torchwhy-report{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:auto;padding:0 1rem}
.torchwhy-report table{border-collapse:collapse;display:block;overflow-x:auto}
.torchwhy-report h3{font-size:1em;margin:.6rem 0 0}
.torchwhy-report caption{text-align:left;font-weight:bold}
.torchwhy-report td,.torchwhy-report th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top}
.torchwhy-report th{font-weight:normal}
.torchwhy-report thead th,.torchwhy-report .total td{font-weight:bold}
.torchwhy-report .number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.torchwhy-report .depth1{padding-left:1.2rem}
.torchwhy-report .bar svg{display:block;background:#8883}
.torchwhy-report .bar rect{fill:#888}
.torchwhy-report .bad rect{fill:#d9822b}
.torchwhy-report .warning rect{fill:#c2a633}
.torchwhy-report .good rect{fill:#2d8a4e}
.torchwhy-report code{overflow-wrap:anywhere}
.torchwhy-report .facts,.torchwhy-report .note{opacity:.75}
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class View:
    """The drawn part of a document.

    Attributes:
        verbose: the full view.
        linked: names, parts and findings are buttons that show their events on the timeline of the report page.
        level: of the headings of tables.
    """

    verbose: bool = False
    linked: bool = False
    level: int = 2


def render(documents: Sequence[Document], options: Options) -> str:
    """Return a whole page."""
    title = escaped(", ".join(document.title for document in documents if document.title) or "torchwhy")
    sections = "\n".join(fragment(document, verbose=options.verbose) for document in documents)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{title}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n{sections}\n</body>\n</html>\n"
    )


def fragment(document: Document, *, verbose: bool = False) -> str:
    """Return the document as a section, for a page that has its own style."""
    lines = ['<section class="torchwhy-report">']
    lines += [f"<h1>{escaped(document.title)}</h1>"] if document.title else []
    lines += [f"<p>{'<br>'.join(map(escaped, document.about))}</p>"] if document.about else []
    return "\n".join([*lines, *blocks_as_html(document.blocks, View(verbose)), "</section>"])


def blocks_as_html(blocks: Iterable[Block], view: View) -> list[str]:
    """Return blocks as lines of HTML."""
    return [line for block in blocks if is_shown(block.when, view.verbose) for line in _block(block, view)]


def _button(target: str, content: str, look: str = "link", title: str = "") -> str:
    """A button that shows something on the timeline; `content` is HTML, `title` what a pointer over it shows."""
    hint = f' title="{escaped(title)}"' if title else ""
    return f'<button type="button" class="{look}" data-show="{escaped(target)}"{hint}>{content}</button>'


def escaped(text: str) -> str:
    """Return foreign text as HTML, for elements and for attributes in quotes."""
    return html.escape(safe(text))


def _block(block: Block, view: View) -> list[str]:
    match block:
        case Heading():
            return [f"<h{block.level}>{escaped(block.text)}</h{block.level}>"]
        case Text():
            return [_text(block)] if block.text else []
        case Caveat():
            return [f"<p><strong>{escaped(block.label)}:</strong> {escaped(block.text)}</p>"]
        case VerdictBlock():
            look = f' class="{block.look}"' if block.look else ""
            lines = [f"<h2{look}>{escaped(block.kind)}</h2>", f"<p><strong>{escaped(block.sentence)}</strong></p>"]
            return lines + [f"<p>{escaped(caveat)}</p>" for caveat in block.caveats]
        case Facts():
            rows = [f"<tr><th>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in block.rows]
            return [f"<table>{_caption(block.title)}", *rows, "</table>"]
        case Code():
            lines = [escaped(line) for line in block.lines]
            return [*_title(block.title), f"<pre><code>{chr(10).join(lines)}</code></pre>"]
        case Table():
            return _table(block, view)
        case Bars():
            return _bars(block, view)
        case Findings():
            return _findings(block, view)
        case Rules():
            muted = muted_rules(block) if view.verbose else []
            return [_note(sentence) for sentence in (*failed_rules(block), *muted)]
        case Checks():
            checks = [_check(check) for check in block.items if is_shown(check.when, view.verbose)]
            return [*_title(block.title), "<ul>", *checks, "</ul>"]


def _title(title: str, level: int = 2) -> list[str]:
    return [f"<h{level}>{escaped(title)}</h{level}>"] if title else []


def _caption(title: str) -> str:
    return f"<caption>{escaped(title)}</caption>" if title else ""


def _note(text: str) -> str:
    return f'<p class="note">{escaped(text)}</p>'


def _text(block: Text) -> str:
    label = f"<strong>{escaped(block.label)}:</strong> " if block.label else ""
    text = label + escaped(block.text)
    return {"dim": f'<p class="note">{text}</p>', "strong": f"<p><strong>{text}</strong></p>"}.get(
        block.look, f"<p>{text}</p>"
    )


def _table(block: Table, view: View) -> list[str]:
    rows = [row for row in block.rows if is_shown(row.when, view.verbose)]
    hidden = sum(row.when == "full" for row in block.rows) if not view.verbose else 0
    lines = _title(block.title, view.level) if rows or block.sentences else []
    lines += [f"<p>{escaped(sentence)}</p>" for sentence in block.sentences]
    if rows:
        classes = [' class="number"' if column.number else "" for column in block.columns]
        titles = [
            f"<th{look}{_summed(c, view)}>{escaped(c.title)}</th>" if c.title else "<td></td>"
            for c, look in zip(block.columns, classes, strict=True)
        ]
        titled = any(column.title for column in block.columns)
        lines.append("<table data-sortable>" if view.linked and titled else "<table>")
        lines += [f"<thead><tr>{''.join(titles)}</tr></thead>"] if titled else []
        for row in rows:
            cells = "".join(
                f"<td{look}{_value(cell, view)}>{_cell(cell, view)}</td>"
                for cell, look in zip(row.cells, classes, strict=True)
            )
            lines.append(f"<tr{' class=total' if row.total else ''}>{cells}</tr>")
        lines.append("</table>")
    return lines + ([_note(f"{counted(hidden, f'more {block.noun[0]}', f'more {block.noun[1]}')}.")] if hidden else [])


def _summed(column: Column, view: View) -> str:
    """The attribute with the unit of a column's sums: such a column has bars, and is shown per step."""
    return f' data-sums="{column.sums}"' if view.linked and column.sums else ""


def _value(cell: Cell, view: View) -> str:
    """The attribute with the value that a table is sorted by."""
    return f' data-value="{cell.value!r}"' if view.linked and isinstance(cell, Amount) else ""


def _cell(cell: Cell, view: View) -> str:
    if isinstance(cell, Name) and cell.text:
        name = f"<code>{escaped(PLAIN.shorten(cell.text, _LONGEST))}</code>"
        inset = "&nbsp;" * 4 * cell.depth
        return inset + (_button(f"name:{cell.text}", name) if view.linked else name) + escaped(cell.after)
    if isinstance(cell, (Calls, Words)) and cell.target and view.linked:
        return _button(cell.target, escaped(str(cell)))
    if isinstance(cell, File) and view.linked:  # a page is shared: it does not name this machine's folders
        return escaped(PurePath(cell.text).name)
    return escaped(str(cell))


def _bars(block: Bars, view: View) -> list[str]:
    bars = [bar for bar in block.bars if is_shown(bar.when, view.verbose)]
    if not bars:
        return []
    head = (
        f'<thead><tr><td></td><td></td><td></td><td></td><th class="number">{escaped(block.spread)}</th></tr></thead>'
    )
    lines = [f"<table>{_caption(block.title)}", *([head] if block.spread else [])]
    lines += [_bar(bar, view) for bar in bars]
    if block.whole[0]:
        lines.append(
            f'<tr><th>{escaped(block.whole[0])}</th><td></td><td></td><td></td><td class="number">'
            f"{escaped(block.whole[1])}</td></tr>"
        )
    return [*lines, "</table>", *(f"<p>{escaped(sentence)}</p>" for sentence in block.sentences)]


def _bar(bar: Bar, view: View) -> str:
    width = max((bar.share or 0.0) * 160, 1)
    size = 'viewBox="0 0 160 12" width="160" height="12" preserveAspectRatio="none"'
    part = f'class="part-{escaped(bar.target.partition(":")[2])}" ' if bar.target.startswith("part:") else ""
    drawn = f'<svg {size} aria-hidden="true"><rect {part}width="{width:.1f}" height="12"/></svg>'
    cells = "".join(f'<td class="number">{escaped(text)}</td>' for text in (bar.amount, bar.time, bar.spread))
    label = _button(bar.target, escaped(bar.label)) if view.linked and bar.target else escaped(bar.label)
    return (
        f'<tr class="{escaped(bar.look)}"><th class="depth{bar.depth}">{label}</th>'
        f'<td class="bar">{drawn if bar.look else ""}</td>{cells}</tr>'
    )


def _findings(block: Findings, view: View) -> list[str]:
    shown = listed(block, view.verbose)
    if not shown:
        return [f"<p>{escaped(block.nothing)}</p>"] if block.nothing else []
    apart = [item for item in shown if view.linked and item.severity == "info"]
    first = [item for item in shown if item not in apart]
    lines = [*_title(block.title), *_cards(first, view)]
    lines += [_note(note) for note in (hidden_findings(block, view.verbose), *at_stake(block, view.verbose)) if note]
    if apart:
        lines += [f"<details><summary>Good to know ({len(apart)})</summary>", *_cards(apart, view), "</details>"]
    return lines


def _cards(items: Iterable[FindingItem], view: View) -> list[str]:
    lines = [line for item in items for line in _finding(item, view)]
    return ["<ol>", *lines, "</ol>"] if lines else []


def _finding(item: FindingItem, view: View) -> list[str]:
    facts = "; ".join([", ".join(filter(None, (item.severity, item.stake, item.certainty))), item.rule])
    tools = _tools(item) if view.linked else ""
    place = f' id="finding-{item.number}"' if view.linked and item.number >= 0 else ""
    lines = [
        f'<li class="{escaped(item.severity)}"{place}><h3>{escaped(item.title)}</h3>\n'
        f'<p class="facts">{escaped(facts)}</p>{tools}'
    ]
    lines += ["<ul>", *(_evidence(one, item.common, view) for one in item.evidence[:_EVIDENCE]), "</ul>"]
    lines += [f"<p>Why: {escaped(item.why)}</p>"] if item.why else []
    lines += [f"<p><strong>Fix</strong>: {escaped(item.fix)}</p>"] if item.fix else []
    return [*lines, "</li>"]


def _tools(item: FindingItem) -> str:
    """A button that shows the finding, one that copies it, and where there is something to save, a box that adds it."""
    known = item.number >= 0  # by the timeline; else what it rests on may be
    target = f"finding:{item.number}" if known else next((one.target for one in item.evidence if one.target), "")
    show = _button(target, "show", "") if target else ""
    copy = f'<button type="button" data-copy="{item.number if known else ""}">copy</button>'
    box = f'<label><input type="checkbox" data-fix="{item.number}"> if fixed</label>'
    fix = box if known and item.time_us and item.severity != "info" else ""
    return f'<p class="card-tools needs-script">{show} {copy} {fix}</p>'


def _evidence(one: Evidence, common: str, view: View) -> str:
    facts = ", ".join(filter(None, (one.facts, common, one.details)))
    at = f", at <code>{escaped(one.line)}</code>" if one.line else ""
    name = f"<code>{escaped(PLAIN.shorten(one.name or '(no name)', _LONGEST))}</code>"
    linked = _button(one.target, name, title=one.full_name) if view.linked and one.target else name
    return f"<li>{linked} {escaped(facts)}{at}</li>"


def _check(check: Check) -> str:
    at = f" at <code>{escaped(place(check))}</code>" if place(check) and check.outcome != "passed" else ""
    evidence = "".join(f"<li>{escaped(text)}</li>" for text in check.evidence)
    more = f"<ul>{evidence}</ul>" if evidence else ""
    return f"<li><strong>{escaped(check.outcome)}</strong>: {escaped(check.text)}{at}{more}</li>"
