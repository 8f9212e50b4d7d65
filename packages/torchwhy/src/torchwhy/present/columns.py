"""Tables in the width of a terminal: long cells are cut or wrapped, long rows go on two lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Final

from torchwhy.present.document import Amount, Calls, Cell, Column, File, Name, Words
from torchwhy.present.style import Style
from torchwhy.wording import wrapped

__all__ = ["aligned", "fitted"]

_LEAST: Final = 24
"""A column of names narrower than this says little: then some columns go on a separate line."""

_BELOW: Final = 4
"""How far those are indented."""

_BETWEEN: Final = "  "

_FEW: Final = 6
"""Calls of a path that are all shown; of more, the first two and the last three."""


def aligned(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], style: Style, *, pair: bool = False, whole: bool = False
) -> list[list[str]]:
    """Return the lines of each row, all rows aligned; plain strings are never cut.

    Args:
        columns: of the table.
        rows: cells, as many as there are columns; the titles are a row like others.
        style: width and characters.
        pair: whether the last two names of a row are compared, so that one has to see where they differ.
        whole: show everything, on as many lines as that takes.
    """
    return [
        _row(cells, columns, groups, widths) for cells, groups, widths in _laid_out(columns, rows, style, pair, whole)
    ]


def fitted(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], style: Style, *, pair: bool = False, whole: bool = False
) -> list[list[list[str]]]:
    """Return the lines of each cell of each row; see `aligned`. Cells of a column that differ never look alike."""
    return [cells for cells, _, _ in _laid_out(columns, rows, style, pair, whole)]


_Laid = tuple[list[list[str]], list[list[int]], dict[int, int]]


def _laid_out(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], style: Style, pair: bool, whole: bool
) -> list[_Laid]:
    """The cells of each row in lines, with the columns of its lines and their widths."""
    if not rows:
        return []
    natural = [max(len(str(row[i])) for row in rows) for i in range(len(columns))]
    loose = {i for row in rows for i, cell in enumerate(row) if not isinstance(cell, str | Amount)}
    groups = _groups(columns, natural, loose, style.width)
    widths = dict[int, int]()
    for k, group in enumerate(groups):
        widths |= _widths(natural, group, loose, style.width - (_BELOW if k else 0))
    cells = [_fitted(row, widths, style, pair, whole) for row in rows]
    for i in sorted(loose):
        alike: dict[tuple[str, ...], set[str]] = {}
        for row, lines in zip(rows, cells, strict=True):
            alike.setdefault(tuple(lines[i]), set()).add(str(row[i]))
        for row, lines in zip(rows, cells, strict=True):
            if len(alike[tuple(lines[i])]) > 1:  # cut before the part that differs
                lines[i] = _lines(row[i], widths[i], style, whole=True)
    return [(lines, groups, widths) for lines in cells]


def _row(
    cells: list[list[str]], columns: Sequence[Column], groups: list[list[int]], widths: dict[int, int]
) -> list[str]:
    lines = []
    for k, group in enumerate(groups):
        for parts in zip_longest(*(cells[i] for i in group), fillvalue=""):
            texts = [
                part.rjust(widths[i]) if columns[i].number else part.ljust(widths[i])
                for i, part in zip(group, parts, strict=True)
            ]
            lines.append((" " * (_BELOW if k else 0) + _BETWEEN.join(texts)).rstrip())
    return lines


def _groups(columns: Sequence[Column], natural: Sequence[int], loose: set[int], width: int) -> list[list[int]]:
    """Which columns stand in which line of a row: as few go below as leave the others room, the last ones first.

    Those below take as many lines as they need.
    """
    first, below = list(range(len(columns))), list[int]()
    movable = [i for i, column in enumerate(columns) if column.below]
    while movable and _room(natural, first, loose, width) < sum(
        min(natural[i], _LEAST) for i in loose.intersection(first)
    ):
        below.insert(0, movable.pop())
        first.remove(below[0])
    lines: list[list[int]] = []
    for i in below:
        together = [*(lines[-1] if lines else ()), i]
        if lines and _room(natural, together, loose, width - _BELOW) >= _LEAST * len(loose.intersection(together)):
            lines[-1].append(i)
        else:
            lines.append([i])
    return [first, *lines]


def _room(natural: Sequence[int], group: Sequence[int], loose: set[int], width: int) -> int:
    """What plain columns leave to the others."""
    return width - len(_BETWEEN) * (len(group) - 1) - sum(natural[i] for i in group if i not in loose)


def _widths(natural: Sequence[int], group: Sequence[int], loose: set[int], width: int) -> dict[int, int]:
    """The width of each column: as wide as its longest cell, or for long ones an equal part of what is left."""
    found = {i: natural[i] for i in group}
    room = _room(natural, group, loose, width)
    waiting = sorted((i for i in group if i in loose), key=lambda i: natural[i])
    for k, i in enumerate(waiting):
        found[i] = min(natural[i], max(room // (len(waiting) - k), _LEAST // 2))
        room -= found[i]
    return found


def _fitted(row: Sequence[Cell], widths: dict[int, int], style: Style, pair: bool, whole: bool) -> list[list[str]]:
    cells = [_lines(cell, widths[i], style, whole) for i, cell in enumerate(row)]
    named = [(i, cell) for i, cell in enumerate(row) if isinstance(cell, Name)]
    if pair and not whole and len(named) > 1:
        (i, a), (j, b) = named[-2:]
        least = min(widths[i] - len(a.after), widths[j] - len(b.after))
        first, second = style.shorten_pair(style.plain(a.text), style.plain(b.text), least)
        cells[i], cells[j] = [first + style.plain(a.after)], [second + style.plain(b.after)]
    return cells


def _lines(cell: Cell, width: int, style: Style, whole: bool) -> list[str]:
    match cell:
        case Name(text, after, depth):
            inset = "  " * depth
            if whole:
                return wrap(inset + style.plain(text + after), width)
            return [inset + style.shorten(style.plain(text), width - len(inset + after)) + style.plain(after)]
        case File(text):
            return wrap(style.plain(text), width) if whole else [style.shorten_path(style.plain(text), width)]
        case Calls(names):
            return _calls(names, width, style, whole)
        case Words(text):
            return wrapped(style.plain(text), width)
        case _:
            return [style.plain(str(cell))]


def _calls(names: tuple[str, ...], width: int, style: Style, whole: bool) -> list[str]:
    """Break between names."""
    shown = names if whole or len(names) <= _FEW else (*names[:2], "...", *names[-3:])
    found = [""]
    for i, name in enumerate(map(style.plain, shown)):
        more = " >" if i + 1 < len(shown) else ""
        pieces = (wrap(name + more, width) or [""]) if whole else [style.shorten(name, width - len(more)) + more]
        joined = f"{found[-1]} {pieces[0]}".strip()
        found[-1:] = [joined, *pieces[1:]] if len(joined) <= width else [found[-1], *pieces]
    return found
