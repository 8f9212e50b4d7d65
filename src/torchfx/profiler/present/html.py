"""A document as an HTML page: no scripts, nothing fetched, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Final

from torchfx.profiler.present.document import (
    Bar,
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
    Verdict,
    is_shown,
)
from torchfx.profiler.present.options import Options
from torchfx.profiler.present.phrases import failed_rules, hidden_findings, muted_rules, place, told
from torchfx.profiler.present.style import PLAIN
from torchfx.profiler.wording import counted, safe

__all__ = ["fragment", "render"]

_LONGEST: Final = 120
"""Characters of an event's name; kernels can have thousands."""

_EVIDENCE: Final = 3
_CSS: Final = """
.torchfx-report{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:auto;padding:0 1rem}
.torchfx-report table{border-collapse:collapse;display:block;overflow-x:auto}
.torchfx-report caption{text-align:left;font-weight:bold}
.torchfx-report td,.torchfx-report th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top}
.torchfx-report th{font-weight:normal}
.torchfx-report thead th,.torchfx-report .total td{font-weight:bold}
.torchfx-report .number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.torchfx-report .depth1{padding-left:1.2rem}
.torchfx-report .bar{background:#8884;width:10rem}
.torchfx-report .bar div{background:#888;height:.8rem}
.torchfx-report .bad div{background:#d9822b}
.torchfx-report .warning div{background:#c2a633}
.torchfx-report .good div{background:#2d8a4e}
.torchfx-report code{overflow-wrap:anywhere}
.torchfx-report .facts,.torchfx-report .note{opacity:.75}
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(documents: Sequence[Document], options: Options) -> str:
    """Return a whole page."""
    title = _escaped(", ".join(document.title for document in documents if document.title) or "torchfx")
    sections = "\n".join(fragment(document, verbose=options.verbose) for document in documents)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{title}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n{sections}\n</body>\n</html>\n"
    )


def fragment(document: Document, *, verbose: bool = False) -> str:
    """Return the document as a section, to be put into a page that has a style of its own."""
    lines = ['<section class="torchfx-report">']
    lines += [f"<h1>{_escaped(document.title)}</h1>"] if document.title else []
    lines += [f"<p>{'<br>'.join(map(_escaped, document.about))}</p>"] if document.about else []
    for block in document.blocks:
        lines += _block(block, verbose) if is_shown(block.when, verbose) else []
    return "\n".join([*lines, "</section>"])


def _escaped(text: str) -> str:
    return html.escape(safe(text))


def _block(block: Block, verbose: bool) -> list[str]:
    match block:
        case Heading():
            return [f"<h{block.level}>{_escaped(block.text)}</h{block.level}>"]
        case Text():
            return [_text(block)] if block.text else []
        case Caveat():
            return [f"<p><strong>{_escaped(block.label)}:</strong> {_escaped(block.text)}</p>"]
        case Verdict():
            lines = [f"<h2>{_escaped(block.kind)}</h2>", f"<p><strong>{_escaped(block.sentence)}</strong></p>"]
            return lines + [f"<p>{_escaped(caveat)}</p>" for caveat in block.caveats]
        case Facts():
            rows = [f"<tr><th>{_escaped(name)}</th><td>{_escaped(value)}</td></tr>" for name, value in block.rows]
            return [f"<table>{_caption(block.title)}", *rows, "</table>"]
        case Code():
            lines = [_escaped(line) for line in block.lines]
            return [*_title(block.title), f"<pre><code>{chr(10).join(lines)}</code></pre>"]
        case Table():
            return _table(block, verbose)
        case Bars():
            return _bars(block, verbose)
        case Findings():
            return _findings(block, verbose)
        case Rules():
            return [_note(sentence) for sentence in (*failed_rules(block), *muted_rules(block, verbose))]
        case Checks():
            checks = [_check(check) for check in block.items if is_shown(check.when, verbose)]
            return [*_title(block.title), "<ul>", *checks, "</ul>"]


def _title(title: str) -> list[str]:
    return [f"<h2>{_escaped(title)}</h2>"] if title else []


def _caption(title: str) -> str:
    return f"<caption>{_escaped(title)}</caption>" if title else ""


def _note(text: str) -> str:
    return f'<p class="note">{_escaped(text)}</p>'


def _text(block: Text) -> str:
    label = f"<strong>{_escaped(block.label)}:</strong> " if block.label else ""
    text = label + _escaped(block.text)
    return {"dim": f'<p class="note">{text}</p>', "strong": f"<p><strong>{text}</strong></p>"}.get(
        block.look, f"<p>{text}</p>"
    )


def _table(block: Table, verbose: bool) -> list[str]:
    rows = [row for row in block.rows if is_shown(row.when, verbose)]
    hidden = sum(row.when == "full" for row in block.rows) if not verbose else 0
    lines = _title(block.title) if rows or block.sentences else []
    lines += [f"<p>{_escaped(sentence)}</p>" for sentence in block.sentences]
    if rows:
        classes = [' class="number"' if column.number else "" for column in block.columns]
        titles = [f"<th{look}>{_escaped(c.title)}</th>" for c, look in zip(block.columns, classes, strict=True)]
        lines += (
            ["<table>", f"<thead><tr>{''.join(titles)}</tr></thead>"]
            if any(c.title for c in block.columns)
            else ["<table>"]
        )
        for row in rows:
            cells = "".join(f"<td{look}>{_cell(cell)}</td>" for cell, look in zip(row.cells, classes, strict=True))
            lines.append(f"<tr{' class=total' if row.total else ''}>{cells}</tr>")
        lines.append("</table>")
    return lines + ([_note(f"{counted(hidden, f'more {block.noun[0]}', f'more {block.noun[1]}')}.")] if hidden else [])


def _cell(cell: Cell) -> str:
    if isinstance(cell, Name) and cell.text:
        return f"<code>{_escaped(PLAIN.shorten(cell.text, _LONGEST))}</code>{_escaped(cell.after)}"
    return _escaped(str(cell))


def _bars(block: Bars, verbose: bool) -> list[str]:
    bars = [bar for bar in block.bars if is_shown(bar.when, verbose)]
    if not bars:
        return []
    head = (
        f'<thead><tr><th></th><th></th><th></th><th></th><th class="number">{_escaped(block.spread)}</th></tr></thead>'
    )
    lines = [f"<table>{_caption(block.title)}", *([head] if block.spread else [])]
    lines += [_bar(bar) for bar in bars]
    if block.whole[0]:
        lines.append(
            f'<tr><th>{_escaped(block.whole[0])}</th><td></td><td></td><td></td><td class="number">'
            f"{_escaped(block.whole[1])}</td></tr>"
        )
    return [*lines, "</table>", *(f"<p>{_escaped(sentence)}</p>" for sentence in block.sentences)]


def _bar(bar: Bar) -> str:
    width = max((bar.share or 0.0) * 100, 0.5)
    drawn = f'<td class="bar"><div style="width:{width:.1f}%"></div></td>' if bar.look else "<td></td>"
    cells = "".join(f'<td class="number">{_escaped(text)}</td>' for text in (bar.amount, bar.time, bar.spread))
    return (
        f'<tr class="{_escaped(bar.look)}"><th class="depth{bar.depth}">{_escaped(bar.label)}</th>{drawn}{cells}</tr>'
    )


def _findings(block: Findings, verbose: bool) -> list[str]:
    shown = told(block, verbose)
    if not shown:
        return [f"<p>{_escaped(block.nothing)}</p>"] if block.nothing else []
    lines = [*_title(block.title), "<ol>", *(line for item in shown for line in _finding(item)), "</ol>"]
    hidden = hidden_findings(block, verbose)
    return lines + ([_note(hidden)] if hidden else [])


def _finding(item: FindingItem) -> list[str]:
    facts = "; ".join([", ".join(filter(None, (item.severity, item.stake, item.certainty))), item.rule])
    lines = [f'<li><p><strong>{_escaped(item.title)}</strong><br>\n<span class="facts">{_escaped(facts)}</span></p>']
    lines += ["<ul>", *(_evidence(one, item.common) for one in item.evidence[:_EVIDENCE]), "</ul>"]
    lines += [f"<p>Why: {_escaped(item.why)}</p>"] if item.why else []
    lines += [f"<p><strong>Fix</strong>: {_escaped(item.fix)}</p>"] if item.fix else []
    return [*lines, "</li>"]


def _evidence(one: Evidence, common: str) -> str:
    facts = ", ".join(filter(None, (one.facts, common, one.details)))
    at = f", at <code>{_escaped(one.line)}</code>" if one.line else ""
    return f"<li><code>{_escaped(PLAIN.shorten(one.name or '(no name)', _LONGEST))}</code> {_escaped(facts)}{at}</li>"


def _check(check: Check) -> str:
    at = f" at <code>{_escaped(place(check))}</code>" if place(check) and check.outcome != "passed" else ""
    evidence = "".join(f"<li>{_escaped(text)}</li>" for text in check.evidence)
    more = f"<ul>{evidence}</ul>" if evidence else ""
    return f"<li><strong>{_escaped(check.outcome)}</strong>: {_escaped(check.text)}{at}{more}</li>"
