"""Which recorded launch each piece of a replayed graph's work comes from; where several differ, none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from torchwhy.trace.captures.alignment import certain_pairs
from torchwhy.trace.captures.sequences import NOWHERE, Recorded, Replays, Symbols
from torchwhy.trace.file.columns import Flags, Int64

__all__ = ["ALIKE", "FEWEST", "SOMEWHERE", "Matches", "match"]

ALIKE: Final = 0.9
"""How much of the longer of two sequences the shorter must be, for a graph to be aligned with a capture."""

FEWEST: Final = 4
"""A graph with fewer pieces of work is not looked for in a run without graphs: others look like it by chance."""

SOMEWHERE: Final = 1 << 40
"""Added to a place whose module and line are not certain: its operator, shapes and types are."""

CELLS: Final = 25_000_000
"""The most pairs of elements that one alignment compares: two sequences of 5,000."""


@dataclass(frozen=True)
class Matches:
    """Work of a replayed graph and its operators in the capture.

    Attributes:
        kinds: arrays with one entry per piece of a graph's work: its place in `Recorded`, `SOMEWHERE` added where only
            the operator is certain; or -1.
        of: for each launch of a graph which of `kinds`.
        found: for each launch whether some recorded sequence is its own, or nearly; without: its work has no name.
    """

    kinds: list[Int64]
    of: Int64
    found: Flags


@dataclass(frozen=True)
class _Graph:
    """Launches with the same work.

    Attributes:
        span: where the work of the first of them stands in `Replays`.
        exact: for each recorded sequence that is its own: which one, and the place of each piece of work there.
    """

    span: slice
    exact: dict[int, Int64]


def match(replays: Replays, recorded: Recorded, symbols: Symbols) -> Matches:
    """Match every launch of a graph with what was recorded of its capture, or of the same program without graphs.

    A launch matches a stretch whose kernels have the same names in the same order, and the same grids and blocks where
    both are recorded. If several match and differ in operator, shapes or types, the work on which they differ has no
    name. If they differ in module or line only, its place between graphs that match one stretch decides (the pieces of
    one program are captured and launched in the same order); otherwise it has its operator alone. Without a stretch
    that is the same a launch is aligned with captures that have a little more, or a little less, in the same order.
    """
    number, graphs = _graphs(replays, recorded, symbols)
    kinds: list[Int64] = []
    numbers: dict[bytes, int] = {}

    def kept(places: Int64) -> int:
        key = places.tobytes()
        if key not in numbers:
            numbers[key] = len(kinds)
            kinds.append(places)
        return numbers[key]

    agreed = [_agreed(recorded, list(graph.exact.values())) for graph in graphs]
    settled = [places is not None and bool(((places >= 0) & (places < SOMEWHERE)).all()) for places in agreed]
    of = np.full(len(replays), -1, np.int64)
    found = np.zeros(len(replays), np.bool_)
    aligned = _Alignments(replays, recorded)
    for i, graph in enumerate(graphs):
        places = agreed[i]
        if places is None:
            places = aligned.of(graph.span)
        if places is not None:
            of[number == i] = kept(places)
            found[number == i] = True
    for at, places in _between(replays, recorded, number, graphs, settled):
        of[at] = kept(places)
    if (of < 0).any():
        for i in np.unique(number[of < 0]).tolist():
            nothing = np.full(graphs[i].span.stop - graphs[i].span.start, -1, np.int64)
            of[(number == i) & (of < 0)] = kept(nothing)
    return Matches(kinds, of, found)


def _graphs(replays: Replays, recorded: Recorded, symbols: Symbols) -> tuple[Int64, list[_Graph]]:
    """Number the launches by what they run; find for each number the recorded sequences that are the same."""
    numbers: dict[bytes, int] = {}
    spans: list[slice] = []
    number = np.zeros(len(replays), np.int64)
    columns = np.stack((replays.symbol, replays.grid, replays.block, replays.stream), axis=1)
    bounds = replays.bounds.tolist()
    for i, (start, end) in enumerate(pairwise(bounds)):
        number[i] = numbers.setdefault(columns[start:end].tobytes(), len(spans))
        if number[i] == len(spans):
            spans.append(slice(start, end))
    search = _Search(recorded, symbols)
    found: list[list[tuple[int, Int64]]] = []
    for span in spans:
        several = bool(replays.stream[span].any())
        pairs = []
        for start in search.places(replays.symbol[span], ordered=not several):
            places = np.arange(start, start + span.stop - span.start)
            paired: Int64 | None = _by_name(replays, recorded, span, places) if several else places
            if paired is not None and _same_size(replays, recorded, span, paired):
                pairs.append((start, paired))
        found.append(pairs)
    order = {start: i for i, start in enumerate(_order({start for pairs in found for start, _ in pairs}, recorded))}
    exact = [{order[start]: places for start, places in pairs} for pairs in found]
    return number, [_Graph(span, one) for span, one in zip(spans, exact, strict=True)]


def _order(starts: set[int], recorded: Recorded) -> list[int]:
    """The starts of recorded sequences in order, with a number left out (-1) between stretches of different threads."""
    found: list[int] = []
    last = (-1, -1)
    free = np.array([start for start, _ in recorded.free], np.int64)
    for start in sorted(starts):
        thread = (int(recorded.source[start]), int(np.searchsorted(free, start, "right")))
        if found and thread != last:
            found.append(-1)
        found.append(start)
        last = thread
    return found


class _Search:
    """Recorded sequences by their symbols."""

    def __init__(self, recorded: Recorded, symbols: Symbols) -> None:
        self._recorded = recorded
        self._whole: dict[bytes, list[int]] = {}
        self._mixed: dict[bytes, list[int]] = {}
        for start, end in recorded.whole:
            stretch = recorded.symbol[start:end]
            self._whole.setdefault(stretch.tobytes(), []).append(start)
            self._mixed.setdefault(np.sort(stretch).tobytes(), []).append(start)
        weights = symbols.weights().astype(np.uint64)
        self._weights = weights
        count = max((end - start for start, end in recorded.free), default=0)
        self._powers = np.cumprod(np.append(np.uint64(1), np.full(count, np.uint64(6364136223846793005))))
        self._free = []
        for start, end in recorded.free:
            value = weights[recorded.symbol[start:end]]
            plain = np.concatenate((np.zeros(1, np.uint64), np.cumsum(value)))
            ordered = np.concatenate((np.zeros(1, np.uint64), np.cumsum(value * self._powers[: len(value)])))
            self._free.append((start, plain, ordered))

    def places(self, wanted: Int64, *, ordered: bool) -> list[int]:
        """Where the sequences with these symbols begin; with the same symbols in any order if not `ordered`."""
        n = len(wanted)
        alike = np.ascontiguousarray(wanted if ordered else np.sort(wanted))
        found = list((self._whole if ordered else self._mixed).get(alike.tobytes(), ()))
        value = self._weights[wanted]
        sums, total = value.sum(), (value * self._powers[:n]).sum() if n < len(self._powers) else np.uint64(0)
        for start, plain, by_place in self._free:
            if n >= len(plain) or n < FEWEST:
                continue
            if ordered:
                here = by_place[n:] - by_place[:-n] == total * self._powers[: len(plain) - n]
            else:
                here = plain[n:] - plain[:-n] == sums
            for place in np.flatnonzero(here).tolist():
                there = self._recorded.symbol[start + place : start + place + n]
                if np.array_equal(there if ordered else np.sort(there), alike):
                    found.append(start + place)
        return found


def _by_name(replays: Replays, recorded: Recorded, span: slice, places: Int64) -> Int64 | None:
    """Pair the work of a graph that ran on several streams with launches, name by name.

    Streams keep the order of a graph, but it is unknown which of two equal kernels on different streams was captured
    first: they are paired only if it makes no difference.
    """
    symbol, stream = replays.symbol[span], replays.stream[span]
    found = np.full(len(places), -1, np.int64)
    meaning = np.stack((recorded.what(places), recorded.where(places)), axis=1)
    for one in np.unique(symbol).tolist():
        here, there = np.flatnonzero(symbol == one), np.flatnonzero(recorded.symbol[places] == one)
        if len(np.unique(stream[here])) == 1 or (meaning[there] == meaning[there[0]]).all():
            found[here] = places[there]
    return found


def _same_size(replays: Replays, recorded: Recorded, span: slice, places: Int64) -> bool:
    """Whether grids and blocks are equal wherever both are recorded."""
    known = places >= 0
    for mine, theirs in ((replays.grid, recorded.grid), (replays.block, recorded.block)):
        a, b = mine[span][known], theirs[places[known]]
        if ((a >= 0) & (b >= 0) & (a != b)).any():
            return False
    return True


def _agreed(recorded: Recorded, candidates: list[Int64]) -> Int64 | None:
    """The places on which all candidates agree, as one of them has them; None of no candidate.

    Where they agree in the operator alone `SOMEWHERE` is added; where not even in that, -1.
    """
    if not candidates:
        return None
    candidates = sorted(candidates, key=lambda places: -np.count_nonzero(recorded.where(places[places >= 0])))
    found = candidates[0].copy()  # that of a recording with Python frames, if there is one
    elsewhere = np.zeros(len(found), np.bool_)
    for other in candidates[1:]:
        both = np.flatnonzero((found >= 0) & (other >= 0))
        here, there = recorded.where(found[both]), recorded.where(other[both])
        elsewhere[both] |= (here != there) & (there != NOWHERE)
        differ = recorded.what(found[both]) != recorded.what(other[both])
        found[both[differ]] = -1
        found[other < 0] = -1
    return np.where((found >= 0) & elsewhere, found + SOMEWHERE, found)


def _between(
    replays: Replays, recorded: Recorded, number: Int64, graphs: list[_Graph], settled: list[bool]
) -> Iterator[tuple[int, Int64]]:
    """Decide by order: launches between two that match one stretch only, if as many stretches lie between those.

    Only for pieces that do the same at different places of the program, such as the layers of a model: graphs of other
    batch sizes are launched in any order.
    """
    known: dict[tuple[int, ...], list[Int64] | None] = {}
    lane = replays.lane
    edges = [0, *(np.flatnonzero(lane[1:] != lane[:-1]) + 1).tolist(), len(lane)]
    for first, last in pairwise(edges):
        anchors = [i for i in range(first, last) if settled[number[i]]]
        for a, z in pairwise(anchors):
            if z - a < 2:
                continue
            chain = tuple(number[a : z + 1].tolist())
            if chain not in known:
                known[chain] = _chain(recorded, [graphs[i] for i in chain])
            for offset, places in enumerate(known[chain] or ()):
                yield a + 1 + offset, places


def _chain(recorded: Recorded, graphs: list[_Graph]) -> list[Int64] | None:
    """The places of the graphs between the first and the last, or None where the order doesn't show it."""
    options = [
        [graph.exact[start + i] for i, graph in enumerate(graphs)][1:-1]
        for start in graphs[0].exact
        if all(start + i in graph.exact for i, graph in enumerate(graphs))
    ]
    if not options:
        return None
    for i, graph in enumerate(graphs[1:-1]):
        for j, other in enumerate(graphs[1 : i + 1]):
            if graph is other and not _same_what(recorded, options[0][i], options[0][j]):
                return None
    found = [_agreed(recorded, [option[i] for option in options]) for i in range(len(options[0]))]
    return [places for places in found if places is not None]


def _same_what(recorded: Recorded, a: Int64, b: Int64) -> bool:
    known = (a >= 0) & (b >= 0)
    return bool((recorded.what(a[known]) == recorded.what(b[known])).all())


class _Alignments:
    """Captures of what a graph ran with work missing in the replay, or launches missing in the capture."""

    def __init__(self, replays: Replays, recorded: Recorded) -> None:
        self._replays, self._recorded = replays, recorded
        self._counts = [Counter(recorded.symbol[start:end].tolist()) for start, end in recorded.whole]

    def of(self, span: slice) -> Int64 | None:
        """The place of each piece of work in the nearest captures, -1 where they leave a choice; None of none."""
        replays, recorded = self._replays, self._recorded
        n, mine = span.stop - span.start, Counter(replays.symbol[span].tolist())
        if replays.stream[span].any():
            return None
        candidates = []
        for (start, end), theirs in zip(recorded.whole, self._counts, strict=True):
            m = end - start
            least = ALIKE * max(n, m)
            if min(n, m) < least or (mine & theirs).total() < least or n * m > CELLS:
                continue
            places = np.arange(start, end)
            equal = replays.symbol[span][:, None] == recorded.symbol[places]
            for a, b in ((replays.grid, recorded.grid), (replays.block, recorded.block)):
                known = (a[span] >= 0)[:, None] & (b[places] >= 0)
                equal &= ~known | (a[span][:, None] == b[places])
            meaning = np.unique(np.stack((recorded.what(places), recorded.where(places))), axis=1, return_inverse=True)
            length, found = certain_pairs(equal, meaning[1].reshape(-1).astype(np.int64))
            if length == min(n, m):  # something is missing in one of them; nothing is another
                candidates.append(np.where(found >= 0, places[found], -1))
        return _agreed(recorded, candidates)
