"""How many tokens a text takes, and which parts of an answer fit into a number of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from torchwhy.errors import ArgumentError

__all__ = ["FEWEST_TOKENS", "Piece", "checked_tokens", "chosen", "cut_to", "tokens_in"]

FEWEST_TOKENS: Final = 200
"""The least limit: with less, a verdict and the next questions have no room."""

_WORTH_CUTTING: Final = 24
"""Tokens from which on the beginning of a line is worth having."""

_RUN: Final = re.compile(r"(?P<letters>[A-Za-z]+)|(?P<digits>\d+)|[ ]+|(?P<sign>[\x00-\x7f])|(?P<other>[^\x00-\x7f])")


def tokens_in(text: str) -> int:
    """Return how many tokens a text takes at most, as budgets count them.

    No tokenizer is asked: models have different ones. Names of kernels and numbers take more tokens than prose of the
    same length, so both ways of counting hold: one token for each 3 bytes of UTF-8, and one for each 4 letters or 3
    digits of a run, for each other sign, and for each character beyond ASCII two.

    >>> tokens_in("aten::mm 12.3 us"), tokens_in("the device waits for the program"), tokens_in("")
    (8, 11, 0)
    """
    pieces = 0
    for run in _RUN.finditer(text):
        kind, length = run.lastgroup, run.end() - run.start()
        pieces += {"letters": -(-length // 4), "digits": -(-length // 3), "sign": 1, "other": 2}.get(kind or "", 0)
    return max(-(-len(text.encode(errors="replace")) // 3), pieces)


def checked_tokens(tokens: int, name: str = "tokens") -> int:
    """Return a budget; `name` is the name of the argument, for the error.

    Raises:
        ArgumentError: it is too small for any answer.
    """
    if tokens < FEWEST_TOKENS:
        raise ArgumentError(f"{name} must be {FEWEST_TOKENS} or more, got {tokens}")
    return tokens


def cut_to(text: str, tokens: int) -> str:
    """Cut a text at its end so that it takes no more than some tokens; a quotation that is cut is closed.

    >>> cut_to('evidence: "a name that is too long to read in full"', 12)
    'evidence: "a name that is ..."'
    """
    if tokens_in(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens_in(_closed(text[:middle])) <= tokens else (low, middle - 1)
    return _closed(text[:low]) if low else ""


def _closed(text: str) -> str:
    return f'{text}..."' if text.count('"') % 2 else f"{text}..."


@dataclass(frozen=True)
class Piece:
    """A line of an answer.

    Attributes:
        text: the line.
        rank: what goes first where room is short: the lower.
        name: what is missing where it has no room, such as "rows of a table".
        subject: which of those, such as a finding's id; "" where they are only counted.
    """

    text: str
    rank: tuple[float, ...]
    name: str = ""
    subject: str = ""


def chosen(pieces: Sequence[Piece], tokens: int) -> tuple[list[Piece], list[Piece]]:
    """Return the lines that fit, in their order, and those that don't.

    Lines are taken by rank until one has no room, which is cut if much of it has; so a line never displaces a more
    important line.
    """
    order = sorted(range(len(pieces)), key=lambda i: (pieces[i].rank, i))
    left, taken = tokens, dict[int, Piece]()
    for i in order:
        room = left - 1  # for the end of the line
        if tokens_in(pieces[i].text) > room:
            if room >= _WORTH_CUTTING:
                taken[i] = replace(pieces[i], text=cut_to(pieces[i].text, room))
            break
        taken[i] = pieces[i]
        left = room - tokens_in(pieces[i].text)
    return [taken[i] for i in sorted(taken)], [piece for i, piece in enumerate(pieces) if i not in taken]
