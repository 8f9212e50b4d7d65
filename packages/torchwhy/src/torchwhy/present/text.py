"""A document as text for a terminal or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Final

from torchwhy.present.columns import aligned
from torchwhy.present.document import (
    Bar,
    Bars,
    Block,
    Caveat,
    Check,
    Checks,
    Code,
    Document,
    Evidence,
    Facts,
    FindingItem,
    Findings,
    Heading,
    Rules,
    Table,
    Text,
    VerdictBlock,
    is_shown,
)
from torchwhy.present.options import Options
from torchwhy.present.phrases import at_stake, failed_rules, listed, muted_rules, place
from torchwhy.present.style import Style
from torchwhy.wording import counted, enumeration, sentences

__all__ = ["SCREEN", "WITH_FIX", "render"]

SCREEN: Final = 50
"""Lines of an answer: findings are shown in full while there is room, the first one always."""

WITH_FIX: Final = 5
"""Findings shown with their fix, if not in full; of the others only the title."""

FEWEST: Final = 4
"""Findings that are shown before the first one's evidence is."""

_EVIDENCE: Final = 3
_FIX_LINES: Final = 2
_WIDEST: Final = 110
"""Lines longer than this are hard to read, however wide the terminal."""

_NARROWEST: Final = 76
"""The numbers of one row of a table may take that many columns, and they are never cut."""

_BAR: Final = 24
"""Columns of the longest bar."""


@dataclass(frozen=True)
class _Part:
    """Lines with an empty line around them, except for parts of one group that follow each other."""

    lines: list[str]
    group: str = ""


def render(documents: Sequence[Document], options: Options) -> str:
    """Return the text, with a newline at its end."""
    return "\n\n".join(_document(document, options) for document in documents) + "\n"


def _document(document: Document, options: Options) -> str:
    style = replace(options.style, width=min(options.style.width, _WIDEST))
    head = [style.paint(line, "bold") for line in style.wrap(style.plain(document.title))]
    head += [line for about in document.about for line in style.wrap(style.plain(about))]
    blocks = [block for block in document.blocks if is_shown(block.when, options.verbose)]
    parts = [_Part(head, "head")]
    findings = next((i for i, block in enumerate(blocks) if isinstance(block, Findings)), len(blocks))
    for block in blocks[:findings]:
        parts += _block(block, style, options)
    below = [part for block in blocks[findings + 1 :] for part in _block(block, style, options)]
    for block in blocks[findings : findings + 1]:
        if isinstance(block, Findings):
            parts += _findings(block, style, options.verbose, partial(_fits, parts, below))
    return "\n".join(_lines([*parts, *below]))


def _lines(parts: Iterable[_Part]) -> list[str]:
    """Return the lines of parts, with an empty line between those of different groups."""
    groups = groupby(enumerate(part for part in parts if part.lines), lambda item: item[1].group or str(item[0]))
    paragraphs = ([line for _, part in members for line in part.lines] for _, members in groups)
    return [line for i, lines in enumerate(paragraphs) for line in ([""] if i else []) + lines]


def _fits(above: Sequence[_Part], below: Sequence[_Part], findings: Sequence[_Part]) -> bool:
    """Whether an answer with these findings fits on the screen."""
    return len(_lines([*above, *findings, *below])) <= SCREEN


def _block(block: Block, style: Style, options: Options) -> list[_Part]:
    """Draw a block; findings as if the screen had no end."""
    verbose = options.verbose
    match block:
        case Heading():
            return [_Part([style.paint(line, "bold") for line in style.wrap(style.plain(block.text))])]
        case Text():
            return [_text(block, style)]
        case Caveat():
            return [_Part(_caveat(block, style), "head")]
        case VerdictBlock():
            return [_Part(_verdict(block, style))]
        case Facts():
            return [_Part(_facts(block, style))]
        case Code():
            lines = [f"    {style.plain(line)}".rstrip() for line in block.lines]
            return [_Part(_titled(block.title, lines, style))]
        case Table():
            return [_Part(_table(block, replace(style, width=options.style.width), style, verbose))]
        case Bars():
            return [_Part(_bars(block, style, verbose))]
        case Findings():
            return _findings(block, style, verbose, lambda parts: True)
        case Rules():
            sentences = [*failed_rules(block), *(muted_rules(block) if verbose else ())]
            return [
                _Part(
                    [style.paint(line, "dim") for text in sentences for line in style.wrap(style.plain(text))], "note"
                )
            ]
        case Checks():
            return [_Part(_checks(block, style, verbose))]


def _titled(title: str, lines: list[str], style: Style) -> list[str]:
    above = [style.paint(line, "bold") for line in style.wrap(style.plain(title))] if lines else []
    return [*above, *lines]


def _text(block: Text, style: Style) -> _Part:
    if block.label:
        label = f"{style.plain(block.label)}:"
        first, *rest = style.wrap(f"{label} {style.plain(block.text)}")
        return _Part([first.replace(label, style.paint(label, "bold"), 1), *rest])
    lines = style.wrap(style.plain(block.text))
    look = {"strong": "bold"}.get(block.look, block.look)
    return _Part([style.paint(line, look) for line in lines], "note" if block.look == "dim" else "")


def _caveat(block: Caveat, style: Style) -> list[str]:
    label = f"{style.plain(block.label)}:"
    first, *rest = style.wrap(f"{label} {style.plain(block.text)}")
    return [first.replace(label, style.paint(label, "yellow"), 1), *rest]


def _verdict(block: VerdictBlock, style: Style) -> list[str]:
    lines = [style.paint(style.plain(block.kind).upper(), "bold", block.look)]
    lines += [style.paint(line, "bold") for line in style.wrap(style.plain(block.sentence))]
    return lines + [line for caveat in block.caveats for line in style.wrap(style.plain(caveat))]


def _facts(block: Facts, style: Style) -> list[str]:
    rows = [(style.plain(name), value) for name, value in block.rows]
    width = max((len(name) for name, _ in rows), default=0)
    lines = []
    for name, value in rows:
        first, *rest = style.wrap(style.plain(value), indent=width + 2) or [""]
        lines += [f"{name:<{width}}  {first.strip()}".rstrip(), *rest]
    return _titled(block.title, lines, style)


def _table(block: Table, wide: Style, style: Style, verbose: bool) -> list[str]:
    """Tables may be as wide as the terminal, their sentences not."""
    indent = 2 if block.title else 0
    rows = [row for row in block.rows if is_shown(row.when, verbose)]
    hidden = sum(row.when == "full" for row in block.rows) if not verbose else 0
    sentences = [line for text in block.sentences for line in style.wrap(style.plain(text), indent)]
    lines = []
    if rows:
        titles = tuple(column.title for column in block.columns)
        cells = [titles, *(row.cells for row in rows)] if any(titles) else [row.cells for row in rows]
        room = replace(wide, width=max(wide.width, _NARROWEST) - indent)
        lines = [line for row in aligned(block.columns, cells, room, pair=block.pair, whole=verbose) for line in row]
    if hidden:
        lines.append(f"{counted(hidden, f'more {block.noun[0]}', f'more {block.noun[1]}')} with -v.")
    return _titled(block.title, [*sentences, *(" " * indent + line for line in lines)], style)


def _bars(block: Bars, style: Style, verbose: bool) -> list[str]:
    rows = [bar for bar in block.bars if is_shown(bar.when, verbose)]
    if not rows:
        return []
    labels = ["  " * bar.depth + style.plain(bar.label) for bar in rows]
    spreads = [style.plain(text) for text in (*(bar.spread for bar in rows), block.whole[1])]
    names = max(map(len, labels))
    ahead = 2 + names + 2 + 6 + 2 + 8  # columns before those of the spreads, except for the bar
    width = min(style.width - ahead - 2 - max(map(len, spreads)) - 2, _BAR)
    room = width + 2 if width > 2 else 0
    title = style.plain(block.title)
    above = " " * (ahead + room - len(title)) + f"    {style.plain(block.spread)}" if block.spread else ""
    lines = [style.paint(title, "bold") + above]
    for bar, label, spread in zip(rows, labels, spreads, strict=False):
        lines.append(_bar(bar, f"{label:<{names}}", spread, width if room else 0, style))
    if block.whole[0]:
        lines.append(f"  {style.plain(block.whole[0]):<{ahead + room - 2}}  {spreads[-1]}")
    return lines + [line for sentence in block.sentences for line in style.wrap(style.plain(sentence))]


def _bar(bar: Bar, label: str, spread: str, width: int, style: Style) -> str:
    if bar.share is None:
        return f"  {label}".rstrip()
    drawn = style.bar(bar.share, width) if bar.look and width else ""
    space = " " * (width + 2 - len(drawn)) if width else ""
    cells = f"{style.plain(bar.amount):>6}  {style.plain(bar.time):>8}  {spread}"
    return f"  {label}  {style.paint(drawn, bar.look)}{space}{cells}".rstrip()


def _findings(block: Findings, style: Style, verbose: bool, fits: Callable[[Sequence[_Part]], bool]) -> list[_Part]:
    """Draw findings in as much detail as fits; with -v in full."""
    if block.brief:
        return _brief(block, style)
    shown = listed(block, verbose)
    if not shown:
        return [_Part(style.wrap(style.plain(block.nothing))), *_left_out(block, 0, 0, 0, style, verbose)]
    title = _Part([style.paint(style.plain(block.title), "bold")])
    in_full = [_Part(_finding(number, item, style, verbose)) for number, item in enumerate(shown, 1)]

    def drawn(count: int, in_short: Sequence[_Part]) -> list[_Part]:
        """The first findings in full, the others in short."""
        left_out = _left_out(block, count, len(shown), len(in_short), style, verbose)
        return [title, *in_full[:count], *in_short[count:], *left_out]

    if verbose:
        return drawn(len(shown), in_full)
    with_fix = [item.severity != "low" and n <= WITH_FIX for n, item in enumerate(shown, 1)]
    in_short = [_Part(_short(n, *each, style), "short") for n, each in enumerate(zip(shown, with_fix, strict=True), 1)]
    # What doesn't fit is left out in this order: fixes, from the last to the third; findings, except for a few; the
    # first one's evidence, except for a line; the second one's fix; more findings.
    for i in range(len(in_short) - 1, 0, -1):
        if i == 1:
            _drop(in_short, FEWEST, lambda: fits(drawn(1, in_short)))
            if not fits(drawn(1, in_short)):
                in_full[0] = _Part(_finding(1, shown[0], style, verbose, evidence=1))
        if not fits(drawn(1, in_short)):
            in_short[i] = _Part(_short(i + 1, shown[i], False, style), "short")
    _drop(in_short, 1, lambda: fits(drawn(1, in_short)))
    count = 1
    while count < len(in_short) and fits(drawn(count + 1, in_short)):
        count += 1
    return drawn(count, in_short)


def _drop(parts: list[_Part], fewest: int, fits: Callable[[], bool]) -> None:
    """Take parts away from the end until the rest fits or only `fewest` are left."""
    while len(parts) > fewest and not fits():
        parts.pop()


def _left_out(block: Findings, in_full: int, shown: int, listed: int, style: Style, verbose: bool) -> list[_Part]:
    """Say what is behind -v, and what the findings' times are."""
    hidden = len(block.items) - shown
    more = [f"{counted(shown - listed, 'finding')} more"] if listed < shown and not verbose else []
    more += ["all evidence"] if in_full < shown else []
    more += [f"{counted(hidden, 'thing')} good to know"] if hidden else []
    notes = [f"-v shows {enumeration(more)}."] if more and not verbose else []
    notes += at_stake(block, verbose)
    return [_Part([style.paint(line, "dim") for note in notes for line in style.wrap(note)], "note")]


def _finding(number: int, item: FindingItem, style: Style, verbose: bool, *, evidence: int = _EVIDENCE) -> list[str]:
    title = style.wrap(style.plain(item.title), indent=4) or [""]
    title[0] = f"{number:>2}  {title[0].strip()}"
    lines = [style.paint(line, "bold") for line in title]
    start, words = f"{style.plain(item.rule)}, ", [style.plain(text) for text in (item.stake, item.certainty) if text]
    first, *rest = style.wrap(start + item.severity + (f": {', '.join(words)}" if words else ""), indent=4)
    painted = style.paint(item.severity, item.severity)
    lines += [first.replace(start + item.severity, start + painted, 1), *rest]
    if verbose or item.severity != "low":  # what matters little is shown in short
        lines += _evidence(item, style, len(item.evidence) if verbose else evidence, verbose)
        lines += _labelled("Why", item.why, style) if item.why else []
    elif item.place:
        lines += _seen(item, style)
    return lines + (_labelled("Fix", item.fix, style) if item.fix else [])


def _evidence(item: FindingItem, style: Style, limit: int, verbose: bool) -> list[str]:
    shown = item.evidence[:limit]
    lines = [f"    {style.plain(item.common)}:"] if item.common else []
    at = ""
    for one in shown:
        lines += _one(one, style, verbose)
        if one.line and one.line != at:
            lines.append(f"      at {style.shorten_path(style.plain(one.line), style.width - 9)}")
        at = one.line
    return lines + ([f"    and {len(item.evidence) - len(shown)} more"] if len(item.evidence) > len(shown) else [])


def _one(one: Evidence, style: Style, verbose: bool) -> list[str]:
    facts = [one.facts, one.details] if verbose else [one.facts]
    tail, name = style.plain(", ".join(filter(None, facts))), style.plain(one.name or "(no name)")
    room = style.width - 8 - len(tail)
    if room >= min(len(name), 34):
        return [f"    - {style.shorten(name, room)}  {style.paint(tail, 'dim')}".rstrip()]
    lines = [style.paint(line, "dim") for line in style.wrap(tail, indent=6)]
    return [f"    - {style.shorten(name, style.width - 6)}", *lines]


def _labelled(label: str, content: str, style: Style) -> list[str]:
    lines = style.wrap(style.plain(content), indent=6 + len(label))
    return [f"    {style.paint(label, 'bold')}  {lines[0].strip()}", *lines[1:]] if lines else []


def _short(number: int, item: FindingItem, fix: bool, style: Style) -> list[str]:
    """A title, and its fix where that is wanted."""
    first, *rest = style.wrap(style.plain(f"{item.title} ({item.rule}, {item.severity})"), indent=4)
    lines = [style.paint(line, "bold") if fix else line for line in (f"{number:>2}  {first.strip()}", *rest)]
    return lines + (_short_fix(item.fix, style) if fix else [])


def _seen(item: FindingItem, style: Style) -> list[str]:
    lines = [f"    {style.paint('See', 'bold')}  {style.shorten_path(style.plain(item.place), style.width - 9)}"]
    return lines + ([f"         {style.shorten(style.plain(item.source), style.width - 9)}"] if item.source else [])


def _brief(block: Findings, style: Style) -> list[_Part]:
    """All of them in short."""
    shown = listed(block, verbose=False)
    lines: list[str] = []
    for n, item in enumerate(shown[:WITH_FIX], 1):
        title = _short(n, item, False, style)
        lines += [style.paint(line, "bold") for line in title]
        lines += (_seen(item, style) if item.place else []) + _short_fix(item.fix, style)
    if len(shown) > WITH_FIX:
        lines.append(f"    and {counted(len(shown) - WITH_FIX, 'finding')} more")
    return [_Part(lines or style.wrap(style.plain(block.nothing)))]


def _short_fix(text: str, style: Style) -> list[str]:
    """As many whole sentences as two lines hold, and the first in any case."""
    if not text:
        return []
    kept = sentences(style.plain(text))
    while True:
        lines = style.wrap(". ".join(kept) + ".", indent=9)
        if len(kept) == 1 or len(lines) <= _FIX_LINES:
            break
        kept.pop()
    return [f"    {style.paint('Fix', 'bold')}  {lines[0].strip()}", *lines[1:]]


_MARKS: Final = {
    "passed": ("ok", "good"),
    "failed": ("FAIL", "bad"),
    "skipped": ("skip", "dim"),
    "error": ("ERROR", "bad"),
}


def _checks(block: Checks, style: Style, verbose: bool) -> list[str]:
    lines = []
    for check in block.items:
        lines += _check(check, style) if is_shown(check.when, verbose) else []
    return _titled(block.title, lines, style)


def _check(check: Check, style: Style) -> list[str]:
    mark, look = _MARKS[check.outcome]
    first, *rest = style.wrap(style.plain(check.text), indent=6) or [""]
    lines = [f"{style.paint(mark, look)}{' ' * (6 - len(mark))}{first.strip()}", *rest]
    at = place(check)
    lines += [line for text in check.evidence for line in style.wrap(style.plain(text), indent=10)]
    return lines + ([f"      at {style.plain(at)}"] if at and check.outcome != "passed" else [])
