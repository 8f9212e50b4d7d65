"""The answer of a command: a document of typed blocks that every renderer can draw, and the answer's data.

Texts in blocks are plain: one paragraph each, without markup. They may contain names from a trace; renderers make them
safe (`torchwhy.wording.safe`) and escape them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

__all__ = [
    "Amount",
    "Bar",
    "Bars",
    "Block",
    "Calls",
    "Caveat",
    "Cell",
    "Check",
    "Checks",
    "Code",
    "Column",
    "Document",
    "Evidence",
    "Facts",
    "File",
    "FindingItem",
    "Findings",
    "Heading",
    "Look",
    "Name",
    "Row",
    "RuleOutcome",
    "Rules",
    "Table",
    "Text",
    "VerdictBlock",
    "When",
    "Words",
    "is_shown",
    "rows_of",
]

When: TypeAlias = Literal["always", "short", "full"]
"""Whether something is part of every view, only of the short one, or only of the full one (--verbose)."""

Look: TypeAlias = Literal["", "strong", "good", "warning", "bad", "dim"]
"""The meaning of a text or bar; the renderer chooses the colour."""


def is_shown(when: When, verbose: bool) -> bool:
    """Return whether something is part of the view."""
    return when == "always" or (when == "full") == verbose


class Heading(msgspec.Struct, frozen=True):
    """A title inside a document; `level` 2 is below the document's own title."""

    text: str
    level: int = 2
    when: When = "always"


class Text(msgspec.Struct, frozen=True):
    """A paragraph with an optional `label` in front, as in "Source: a guide". `look` "dim" makes it a note in small
    print.
    """

    text: str
    label: str = ""
    look: Look = ""
    when: When = "always"


class Caveat(msgspec.Struct, frozen=True):
    """A limit of the trust in the answer, such as a repair of the file; `label` says what kind."""

    label: str
    text: str
    when: When = "always"


class VerdictBlock(msgspec.Struct, frozen=True):
    """The answer in a word (`kind`) and a sentence, and sentences that qualify it."""

    kind: str
    sentence: str
    caveats: tuple[str, ...] = ()
    look: Look = ""
    when: When = "always"


class Facts(msgspec.Struct, frozen=True):
    """Names with their values, one on each line."""

    rows: tuple[tuple[str, str], ...]
    title: str = ""
    when: When = "always"


class Code(msgspec.Struct, frozen=True):
    """Lines to be shown as they are: a piece of configuration, a drawing in characters."""

    lines: tuple[str, ...]
    language: str = "text"
    title: str = ""
    when: When = "always"


class Name(msgspec.Struct, frozen=True):
    """A name that may lose its middle where room is short, and what follows it, which may not.

    Attributes:
        depth: of a call in a tree of calls, how many are around it.
    """

    text: str
    after: str = ""
    depth: int = 0

    def __str__(self) -> str:
        return "  " * self.depth + self.text + self.after


class File(msgspec.Struct, frozen=True):
    """The path of a file, or a line of code; it may lose its beginning."""

    text: str

    def __str__(self) -> str:
        return self.text


class Calls(msgspec.Struct, frozen=True):
    """Names of calls, each made by the one before; `target` is the last one's place on a timeline, "" without one."""

    names: tuple[str, ...]
    target: str = ""

    def __str__(self) -> str:
        return " > ".join(self.names)


class Words(msgspec.Struct, frozen=True):
    """A sentence; it may go on several lines and loses nothing. `target`: what it is on a timeline, "" for nothing."""

    text: str
    target: str = ""

    def __str__(self) -> str:
        return self.text


class Amount(msgspec.Struct, frozen=True):
    """A number in words, and the number itself, by which a table can be sorted."""

    text: str
    value: float

    def __str__(self) -> str:
        return self.text


Cell: TypeAlias = str | Amount | Name | File | Calls | Words
"""A plain string is never cut nor broken."""


class Column(msgspec.Struct, frozen=True):
    """A column: its title, whether it holds numbers, and whether it continues on a second line where room is short.

    Attributes:
        sums: of numbers that add up over rows and steps what they are: "us", "B" or "count"; else "".
    """

    title: str = ""
    number: bool = False
    below: bool = False
    sums: Literal["", "us", "B", "count"] = ""


class Row(msgspec.Struct, frozen=True):
    """A row of a table.

    Attributes:
        cells: one for each column.
        when: in which view.
        total: marks the line of sums.
        weight: where there is room for some rows only, the heaviest stay; of equal ones the first.
    """

    cells: tuple[Cell, ...]
    when: When = "always"
    total: bool = False
    weight: float = 0.0


def rows_of(cells: list[tuple[Cell, ...]], limit: int | None = None) -> tuple[Row, ...]:
    """Return rows, those from `limit` on only for the full view."""
    return tuple(Row(row, "always" if limit is None or i < limit else "full") for i, row in enumerate(cells))


class Table(msgspec.Struct, frozen=True):
    """Rows under columns, with a title and sentences above them.

    Attributes:
        noun: what a row is, in the singular and the plural: "3 more ranks with -v".
        pair: whether the last two names of a row are compared, so that they are cut where they are alike.
        answers: whether it is the answer of the command, so that it stays where there is room for little.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    sentences: tuple[str, ...] = ()
    noun: tuple[str, str] = ("entry", "entries")
    pair: bool = False
    when: When = "always"
    answers: bool = False


class Bar(msgspec.Struct, frozen=True):
    """A part of a whole.

    Attributes:
        label: what it is.
        share: its length as a fraction of the whole; None for the name of a group of bars.
        amount, time, spread: the share, the time and the time in each step, in words; "" if absent.
        look: "good" for work, "bad" for time lost, "warning" for something between, "" for a sum without a bar.
        depth: 0 for groups, 1 for their parts.
        target: what it is on a timeline, as in "part:waiting"; "" for nothing.
    """

    label: str
    share: float | None = None
    amount: str = ""
    time: str = ""
    spread: str = ""
    look: Look = ""
    depth: int = 1
    target: str = ""
    when: When = "always"


class Bars(msgspec.Struct, frozen=True):
    """Parts that add up to a whole.

    Attributes:
        title: with the whole, as in "Where the time goes (4.00 ms)".
        bars: groups and parts in order.
        spread: the title of the column of spreads; "" if absent.
        whole: name and value of the whole's spread, shown below the bars; ("", "") if absent.
        sentences: below the bars.
    """

    title: str
    bars: tuple[Bar, ...]
    spread: str = ""
    whole: tuple[str, str] = ("", "")
    sentences: tuple[str, ...] = ()
    when: When = "always"


class Evidence(msgspec.Struct, frozen=True):
    """One of the names a finding rests on.

    Attributes:
        name: of the events; of kernels a short one.
        facts: how often, how long, what else is to see.
        details: its thread or stream and when it begins, for the full view.
        line: the line of the program's own code, as "train.py(34): step"; "" where it isn't known.
        target: what it is on a timeline, as in "evidence:0:2"; "" for nothing.
        full_name: as the file has it.
    """

    name: str
    facts: str = ""
    details: str = ""
    line: str = ""
    target: str = ""
    full_name: str = ""


class FindingItem(msgspec.Struct, frozen=True):
    """A finding, phrased.

    Attributes:
        code, slug, title, severity, confidence: of the finding.
        time_us: at stake.
        stake: that in words, as in "1.92 ms of 4.00 ms at stake (48%)"; "" for none.
        certainty: "" for sure, else "fairly sure" or "not sure".
        common: what is to see at all of the evidence.
        evidence: what it rests on.
        why, fix: cause and remedy; "" where they are left out.
        number: its place among the findings of a trace, which a timeline knows it by; -1 where there is no timeline.
        place: the first line of the program that the evidence names; "" for none.
        source: the source of that line; "" where it isn't known.
        id: by which `torchwhy finding` knows it; "" for none.
    """

    code: str
    slug: str
    title: str
    severity: str
    confidence: str = "high"
    time_us: float = 0.0
    stake: str = ""
    certainty: str = ""
    common: str = ""
    evidence: tuple[Evidence, ...] = ()
    why: str = ""
    fix: str = ""
    number: int = -1
    place: str = ""
    source: str = ""
    id: str = ""

    @property
    def rule(self) -> str:
        """Code and name of the rule."""
        return f"{self.code} {self.slug}".strip()


class Findings(msgspec.Struct, frozen=True):
    """Findings, the most important first.

    Attributes:
        items: all of them; those of severity "info" belong to the full view.
        nothing: what to say where none is shown.
        title: above them.
        brief: whether a line for each and its fix are enough.
    """

    items: tuple[FindingItem, ...]
    nothing: str = ""
    title: str = ""
    brief: bool = False
    when: When = "always"


class RuleOutcome(msgspec.Struct, frozen=True):
    """The fate of a rule: asked, muted (not asked, with the reason) or failed (with the error)."""

    code: str
    slug: str
    outcome: Literal["asked", "muted", "failed"] = "asked"
    reason: str = ""


class Rules(msgspec.Struct, frozen=True):
    """The rules behind the findings. Formats for machines list them all, others what was not asked or broke off."""

    outcomes: tuple[RuleOutcome, ...]
    when: When = "always"


class Check(msgspec.Struct, frozen=True):
    """One limit and whether it was kept.

    Attributes:
        name: of the test case.
        outcome: "passed", "failed", "skipped" (with the reason as `text`) or "error".
        text: what was found and what is allowed.
        evidence: what the number is made of, a line each.
        file: where the limit or the number comes from; "" where that is unknown.
        line: in that file, from 1; 0 where that is unknown.
    """

    name: str
    outcome: Literal["passed", "failed", "skipped", "error"]
    text: str
    evidence: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    when: When = "always"


class Checks(msgspec.Struct, frozen=True):
    """Limits, each kept or not."""

    items: tuple[Check, ...]
    title: str = ""
    when: When = "always"


Block: TypeAlias = (
    Heading | Text | Caveat | VerdictBlock | Facts | Code | Table | Bars | Findings | Rules | Checks
)  # fmt: skip


class Document(msgspec.Struct, frozen=True):
    """The answer of a command.

    Attributes:
        title: what the answer is about, such as the name of a trace; "" for none.
        about: facts on it, a line each.
        blocks: the answer, from the top.
        data: the answer as a msgspec struct or a dataclass, with `schema`: the JSON renderer encodes it.
        command: of the command line, such as "explain".
        file: the path of what was read; "" where that is no file.
    """

    title: str
    blocks: tuple[Block, ...]
    data: object
    about: tuple[str, ...] = ()
    command: str = ""
    file: str = ""
