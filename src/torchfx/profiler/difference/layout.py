"""A difference's tables in the width of a terminal: long cells are cut or wrapped, long rows go on two lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap
from typing import Final

from torchfx.profiler.difference.names import short, short_pair
from torchfx.profiler.wording import wrapped

__all__ = ["Cell", "File", "Name", "Path", "Words", "table"]

_LEAST: Final = 24
"""A column of names narrower than this says little: then some columns go on a line of their own."""

_BELOW: Final = 4
"""How far those are indented."""

_BETWEEN: Final = "  "


@dataclass(frozen=True)
class Name:
    """A name that may lose its middle, and what follows it, which may not."""

    text: str
    after: str = ""

    def __str__(self) -> str:
        return self.text + self.after

    def lines(self, width: int, *, whole: bool) -> list[str]:
        """The cell in a width; with everything where `whole`, on as many lines as that takes."""
        return wrap(str(self), width) if whole else [short(self.text, width - len(self.after)) + self.after]


@dataclass(frozen=True)
class File:
    """The path of a file, of which the end tells the most."""

    text: str

    def __str__(self) -> str:
        return self.text

    def lines(self, width: int, *, whole: bool) -> list[str]:
        """The cell in a width."""
        cut = len(self.text) > width and not whole
        return [f"...{self.text[3 - width :]}"] if cut else wrap(self.text, width)


@dataclass(frozen=True)
class Path:
    """Names of calls, each inside the one before."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return " > ".join(self.names)

    def lines(self, width: int, *, whole: bool) -> list[str]:
        """The cell in a width: broken between names, of many only the first and the last ones."""
        names = self.names if whole or len(self.names) <= 6 else (*self.names[:2], "...", *self.names[-3:])
        found = [""]
        for i, name in enumerate(names):
            more = " >" if i + 1 < len(names) else ""
            pieces = (wrap(name + more, width) or [""]) if whole else [short(name, width - len(more)) + more]
            joined = f"{found[-1]} {pieces[0]}".strip()
            found[-1:] = [joined, *pieces[1:]] if len(joined) <= width else [found[-1], *pieces]
        return found


@dataclass(frozen=True)
class Words:
    """A sentence."""

    text: str

    def __str__(self) -> str:
        return self.text

    def lines(self, width: int, *, whole: bool) -> list[str]:
        """The cell in a width; nothing of it is ever left out."""
        return wrapped(self.text, width)


Cell = str | Name | File | Path | Words
Row = Sequence[Cell]


def table(
    rows: Sequence[Row], width: int, *, right: Iterable[int], below: Sequence[int], pair: bool, whole: bool
) -> list[str]:
    """Align rows; plain texts are never cut.

    Args:
        rows: of equally many cells.
        width: characters.
        right: columns that hold numbers.
        below: columns that go on a second line where the others would become too narrow.
        pair: whether the last two names of a row are compared, so that one has to see where they differ.
        whole: show everything.
    """
    if not rows:
        return []
    natural = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    loose = {i for row in rows for i, cell in enumerate(row) if not isinstance(cell, str)}
    every = range(len(natural))
    groups = [list(every)]
    if _room(natural, every, loose, width) < sum(min(natural[i], _LEAST) for i in loose):
        groups = [[i for i in every if i not in below], list(below)]
    columns = dict[int, int]()
    for k, group in enumerate(groups):
        columns |= _widths(natural, group, loose, width - _BELOW * k)
    lines = []
    for row in rows:
        cells = _fitted(row, columns, pair=pair, whole=whole)
        for k, group in enumerate(groups):
            for parts in zip_longest(*(cells[i] for i in group), fillvalue=""):
                texts = [
                    part.rjust(columns[i]) if i in right else part.ljust(columns[i])
                    for i, part in zip(group, parts, strict=True)
                ]
                lines.append((" " * _BELOW * k + _BETWEEN.join(texts)).rstrip())
    return lines


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


def _fitted(row: Row, widths: dict[int, int], *, pair: bool, whole: bool) -> list[list[str]]:
    cells = [[cell] if isinstance(cell, str) else cell.lines(widths[i], whole=whole) for i, cell in enumerate(row)]
    named = [(i, cell) for i, cell in enumerate(row) if isinstance(cell, Name)]
    if pair and not whole and len(named) > 1:
        (i, a), (j, b) = named[-2:]
        least = min(widths[i] - len(a.after), widths[j] - len(b.after))
        first, second = short_pair(a.text, b.text, least)
        cells[i], cells[j] = [first + a.after], [second + b.after]
    return cells
