"""Findings of rules: symptom, evidence, cause, fix, and the time at stake."""

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
"""A line of code within a name: the file's name in a group, its folders before it, its number after it."""

_LONGEST_PLACE: Final = 1000
"""Characters of a name that may hold a line of code; kernels have longer ones."""

_NO_ROWS: Final = np.empty(0, np.int32)


@dataclass(frozen=True)
class Evidence:
    """Evidence of a finding: events of the trace, one entry per name.

    Attributes:
        name: name of the events.
        count: number of events.
        time_us: total time, if meaningful.
        start_us: start of the longest event, in the file's time, to look it up in a viewer.
        where: thread or stream of that event.
        stack: Python frames around that event, innermost first.
        note: further details, such as "115.6 MB at 10.1 GB/s".
        rows: all events, as rows of `trace.events`; empty if the evidence has no events, such as a count over a job.
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
    """Return the severity of a fraction of the window: low below 5%, medium from 5%, high from 20%; at most `most`."""
    rank = "high" if share >= 0.2 else "medium" if share >= 0.05 else "low"
    return min(rank, most, key=SEVERITIES.index)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A problem, or a fact worth knowing.

    Attributes:
        title: the symptom in one line, with a number.
        severity: one of `SEVERITIES`. By default it follows from the time at stake. A rule sets it only if there is
            nothing to fix ("info") or if results or the trace are wrong.
        most: upper limit of a severity that follows from the time at stake.
        confidence: one of `CONFIDENCES`.
        time_us: time at stake, microseconds of `window`: the most that the fix can save. A rule gives the time that the
            fix removes, by default the length of `stretches`, or 0. `diagnose` replaces it by the time that this saves
            (`most_saved`). The savings of several findings do not add up.
        window: length of the window that `time_us` is part of, microseconds.
        left_out_us: one giant gap of the window, microseconds, which the share excludes because the finding is not
            about it; set by `diagnose`.
        once: whether the time is spent only once. Set by rules about one-time costs, and by `diagnose` if all of it
            lies in a cold first step, which the verdict excludes.
        evidence: the events behind the finding.
        cause: the reason, in one or two sentences.
        linked: True if ids in the trace connect cause and symptom; False if the cause is inferred.
        fix: what to do, adapted to what the program already does.
        stretches: the time ranges within the window that the fix removes. The default, set by `diagnose`, is the times
            of the evidence's rows.
        code, slug, source: of the rule; set by `diagnose`.
        id: identifies the finding in commands, such as "B9-3f1c"; set by `diagnose` (`identified`).
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
        """Time at stake as a fraction of the window without `left_out_us`; 0 if that has no length."""
        whole = self.window.us - self.left_out_us
        return self.time_us / whole if whole else 0.0

    @property
    def subject(self) -> str:
        """The subject of the finding, a name that is the same in other recordings of the program; "" for the whole
        program.

        It is the first name of the evidence, without folders, line numbers, addresses and step numbers.
        """
        name = self.evidence[0].name if self.evidence else ""
        return stable_name(_PLACE.sub(r"\1", name) if ".py" in name and len(name) < _LONGEST_PLACE else name)

    def __str__(self) -> str:
        lines = [f"{self.code} {self.slug}: {self.title}"]
        lines += [f"  {item.name}" + (f" ({item.note})" if item.note else "") for item in self.evidence[:3]]
        return "\n".join([*lines, f"  Cause: {self.cause}", f"  Fix: {self.fix}"])


def identified(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Assign ids to findings: the rule's code, and digits derived from the finding's subject.

    An id therefore does not depend on the order of events or the program's folder, and is usually the same in the next
    recording. If a rule has two findings with the same subject, the second id ends in ".2".
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
