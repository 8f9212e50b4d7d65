"""What a rule found: symptom, evidence, cause, fix, and the time at stake."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import isnan, nan
from typing import Final

import numpy as np

from torchwhy.errors import ArgumentError
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.programs import stable_name
from torchwhy.trace.model.intervals import Intervals, Window

__all__ = ["CONFIDENCES", "SEVERITIES", "Evidence", "Finding", "identified", "severity_of"]

SEVERITIES: Final = ("info", "low", "medium", "high")
"""info: worth knowing; the others rank the share of the window (`severity_of`), or how wrong a result is."""

CONFIDENCES: Final = ("low", "medium", "high")

_PLACE: Final = re.compile(r"(?:^(?:[A-Za-z]:)?[/\\].*[/\\]|[^\s'\"(]*[/\\])?([^\s'\"(/\\]+\.py)(?:\(\d+\)|:\d+)?")
"""A line of code within a name: the file's name in a group, its folders before it, its number behind it."""

_LONGEST_PLACE: Final = 1000
"""Characters of a name that may hold a line of code; kernels have longer ones."""

_NO_ROWS: Final = np.empty(0, np.int32)


@dataclass(frozen=True)
class Evidence:
    """Rows of the trace a finding rests on, one entry per name.

    Attributes:
        name: of the events.
        count: how many.
        time_us: their time together, where that means something.
        start_us: when the longest of them begins, in the file's own time, for looking it up in a viewer.
        where: its thread or stream.
        stack: Python frames around it, innermost first.
        note: what else is to see, such as "115.6 MB at 10.1 GB/s".
        rows: all of them, as rows of `trace.events`; none where it rests on no events, such as on a count of a job's.
    """

    name: str
    count: int = 1
    time_us: float | None = None
    start_us: float | None = None
    where: str = ""
    stack: tuple[str, ...] = ()
    note: str = ""
    rows: Int32 = field(default_factory=lambda: _NO_ROWS, compare=False, repr=False)


def severity_of(share: float, most: str = "high") -> str:
    """Rank a fraction of the window: low below 5%, medium from there, high from 20%; no higher than `most`."""
    rank = "high" if share >= 0.2 else "medium" if share >= 0.05 else "low"
    return min(rank, most, key=SEVERITIES.index)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    Attributes:
        title: the symptom in one line, with its number.
        severity: one of `SEVERITIES`. A rule gives it only where there is nothing to act on ("info") or where
            results or the trace itself are wrong; left out, it follows from the time at stake.
        most: the severest it may be, where it follows from the time at stake.
        confidence: one of `CONFIDENCES`.
        time_us: time at stake, microseconds of `window`: what the fix can save at most. A rule gives the time that the
            fix removes; left out, it is the length of `stretches`, or 0 without them. Whoever runs the rule replaces it
            by what that saves (`most_saved`). Savings of several findings don't add up.
        window: what `time_us` is a part of.
        left_out_us: one giant gap of the window, microseconds, which the share leaves out since the finding isn't about
            it; whoever runs the rule fills it in.
        once: whether that time is spent once. Rules say so of what does not return; filled in where all of it lies in a
            cold first step, which the verdict leaves out.
        evidence: what it rests on.
        cause: why, in a sentence or two.
        linked: True where ids in the trace tie cause and symptom; False where the cause is inferred.
        fix: what to do, fitted to what the program does already.
        stretches: when the time that the fix removes is spent, within the window. A rule that leaves it out means the
            times of its evidence's rows; whoever runs the rule fills that in.
        code, slug, source: of the rule; filled in by whoever runs it.
        id: by which it can be asked for, such as "B9-3f1c"; filled in by whoever runs the rules (`identified`).
    """

    title: str
    severity: str = ""
    most: str = "high"
    confidence: str
    time_us: float = nan
    window: Window
    left_out_us: float = 0.0
    once: bool = False
    evidence: tuple[Evidence, ...]
    cause: str
    fix: str
    linked: bool = False
    stretches: Intervals | None = field(default=None, compare=False, repr=False)
    code: str = ""
    slug: str = ""
    source: str = ""
    id: str = ""
    ranked: bool = field(init=False, compare=False, repr=False)
    """Whether the severity follows from the time at stake."""

    def __post_init__(self) -> None:
        stake = self.stretches.total / 1000 if self.stretches else 0.0
        # Rules compute with NumPy, and JSON cannot be written from its numbers.
        object.__setattr__(self, "time_us", stake if isnan(self.time_us) else float(self.time_us))
        object.__setattr__(self, "ranked", not self.severity)
        object.__setattr__(self, "severity", self.severity or severity_of(self.share, self.most))
        if self.severity not in SEVERITIES:
            raise ArgumentError(f"severity must be one of {', '.join(SEVERITIES)}, got {self.severity!r}")
        if self.confidence not in CONFIDENCES:
            raise ArgumentError(f"confidence must be one of {', '.join(CONFIDENCES)}, got {self.confidence!r}")

    @property
    def share(self) -> float:
        """Time at stake as a fraction of the window without what is left out; 0 where that has no length."""
        whole = self.window.us - self.left_out_us
        return self.time_us / whole if whole else 0.0

    @property
    def subject(self) -> str:
        """What it is about, in a word that stays from one recording of a program to the next; "" for the whole.

        The first name of its evidence, without folders, lines of code, addresses and numbers of steps.
        """
        name = self.evidence[0].name if self.evidence else ""
        return stable_name(_PLACE.sub(r"\1", name) if ".py" in name and len(name) < _LONGEST_PLACE else name)

    def __str__(self) -> str:
        lines = [f"{self.code} {self.slug}: {self.title}"]
        lines += [f"  {item.name}" + (f" ({item.note})" if item.note else "") for item in self.evidence[:3]]
        return "\n".join([*lines, f"  Cause: {self.cause}", f"  Fix: {self.fix}"])


def identified(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Give findings their ids: the rule's code, and digits that follow from what the finding is about.

    So an id is the same whatever the order of a file's events and the folders of the program, and mostly in the next
    recording too. Where a rule finds the same twice, the later one's id ends in ".2".
    """
    given = tuple(findings)
    alike: dict[str, list[int]] = defaultdict(list)
    for i, one in enumerate(given):
        digits = blake2b(one.subject.encode(errors="replace"), digest_size=2).hexdigest()
        alike[f"{one.code}-{digits}"].append(i)
    ids = [""] * len(given)
    for name, places in alike.items():
        for number, i in enumerate(sorted(places, key=lambda i: _begins(given[i])), 1):
            ids[i] = name if number == 1 else f"{name}.{number}"
    return tuple(replace(one, id=name) for one, name in zip(given, ids, strict=True))


def _begins(finding: Finding) -> tuple[float, str]:
    """When what a finding is about begins first; of equal ones what they say decides."""
    starts = [one.start_us for one in finding.evidence if one.start_us is not None]
    when = finding.stretches
    return (int(when.starts[0]) / 1000 if when else min(starts, default=0.0)), finding.title
