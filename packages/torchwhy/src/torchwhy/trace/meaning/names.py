"""The different names of a trace's events, searched for those that mean something."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.kinds import LONGEST_NAME
from torchwhy.trace.meaning.literals import required_literals

__all__ = ["Names"]


class Names:
    """Some of a trace's texts.

    A file may have a million different names, and there are hundreds of meanings. So regular expressions are tried on
    few names: on those with a text that a match must have, which are found in all names at once.

    Args:
        texts: of a trace.
        chosen: indices of those that are names.
    """

    def __init__(self, texts: Sequence[str], chosen: Sequence[int]) -> None:
        self._index = chosen
        self._names = [texts[i][:LONGEST_NAME] for i in chosen]
        self._foreign = np.array([place for place, name in enumerate(self._names) if not name.isascii()], np.int32)
        searched = [name if name.isascii() else "" for name in self._names]
        self._all = "\n".join(searched).lower()
        self._starts = array("q", accumulate((len(name) + 1 for name in searched), initial=0))
        self._with: dict[str, Int32] = {}

    def matching(self, pattern: str) -> list[int]:
        """Return the indices of the texts that match a regular expression from their beginning."""
        literals = required_literals(pattern)
        if literals is None:
            places = list(range(len(self._names)))
        else:
            places = np.unique(np.concatenate([self._foreign, *map(self._having, literals)])).tolist()
        if not places:
            return []
        matches = re.compile(pattern).match
        return [self._index[place] for place in places if matches(self._names[place])]

    def _having(self, text: str) -> Int32:
        """Places of the names in ASCII with a text in lower case in them."""
        if text not in self._with:
            found, at = [], self._all.find(text)
            while at >= 0:
                place = bisect_right(self._starts, at)
                found.append(place - 1)
                at = self._all.find(text, self._starts[place])
            self._with[text] = np.array(found, np.int32)
        return self._with[text]
