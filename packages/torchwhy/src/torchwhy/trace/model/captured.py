"""Host events of other recordings that show who made the work of replayed graphs, as rows added to a trace."""

from __future__ import annotations

from dataclasses import dataclass

from torchwhy.trace.file.columns import Int32
from torchwhy.wording import enumeration

__all__ = ["Captured", "Coverage", "Nested"]


@dataclass(frozen=True)
class Nested:
    """Rows, parents before children, each directly before all that is inside it.

    Attributes:
        rows: of them.
        parent: of each, or -1.
        within: for each the row of the trace that all of its outermost ones are in; None: in none.
    """

    rows: Int32
    parent: Int32
    within: Int32 | None = None


@dataclass(frozen=True)
class Coverage:
    """How much of the work of replayed graphs got a name.

    Attributes:
        sources: the recordings that were compared.
        launches: launches of graphs that left work.
        matched: those for which a recorded sequence was found.
        work: pieces of their work: kernels, copies and fills.
        named: those whose operator was found in a recording.
        somewhere: of these those that fit several modules or lines: they have an operator, and neither of those.
        ambiguous: those without a name since several recorded launches fit.
    """

    sources: tuple[str, ...]
    launches: int
    matched: int
    work: int
    named: int
    somewhere: int
    ambiguous: int

    @property
    def sentence(self) -> str:
        """The numbers in words."""
        rest = [
            f"{count:,} {why}"
            for count, why in (
                (self.somewhere, "of these fit several modules or lines, and have neither"),
                (self.ambiguous, "fit several operators or shapes"),
                (self.work - self.named - self.ambiguous, "fit none"),
            )
            if count
        ]
        found = f"{self.named:,} of {self.work:,} pieces of work of replayed graphs are named by their capture"
        return f"{found}; {enumeration(rest)}." if rest else f"{found}."


@dataclass(frozen=True)
class Captured:
    """Rows after the trace's own rows. They take no time: they were recorded at another one.

    Attributes:
        first: the first of them.
        calls: operators and launches, one for each replay: how they are nested within the launch of the graph.
        frames: the same within Python frames, of which all replays share one.
        work, launch: rows of device work, ascending, and for each the added launch that made it.
        times: for each added row how often it was replayed; 0 for frames that are around the launch of the graph too.
        coverage: how much was named.
    """

    first: int
    calls: Nested
    frames: Nested
    work: Int32
    launch: Int32
    times: Int32
    coverage: Coverage
