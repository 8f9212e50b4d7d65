"""Rules: functions from a trace to findings, with a code, a name and documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np

from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.finding import CONFIDENCES, Finding, severity_of
from torchwhy.rules.stake import FREES, most_saved, ordinary_time
from torchwhy.trace.derived.processor_time import BUSY, waited_share
from torchwhy.trace.derived.steady_state import settled
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace

__all__ = ["ASPECTS", "SUBJECTS", "Rule", "rule", "setting"]

_SET: ContextVar[Mapping[str, Mapping[str, Any]]] = ContextVar("thresholds", default={})  # noqa: B039 - never changed

WORTH: Final = 0.002
"""A finding whose fix can save less than this part of the time is only good to know."""

ASPECTS: Final = {
    "gpu": "work on a device was recorded",
    "idle": "idle time of the device is real",
    "order": "the clocks of host and device agree",
    "host": "durations on the host are the program's, not the profiler's",
    "operators": "the operators that the program called were recorded, those of the backward pass too",
}
"""Conditions that a rule may require of a trace; a rule about trust that fires may deny them to the others."""

SUBJECTS: Final = ("trace", "job")
"""The input of a rule: one trace, or the traces of all ranks of a job."""

Function = Callable[..., Iterable[Finding]]


@dataclass(frozen=True)
class Rule:
    """A rule and its metadata.

    Attributes:
        code: a family's letter and a number, such as "B9".
        slug: its name, such as "dataloader-wait".
        source: where symptom and threshold come from.
        needs: aspects of a trace that the rule requires (`ASPECTS`).
        mutes: aspects that other rules cannot rely on if this rule has a finding.
        function: takes the trace, and thresholds by keyword.
        on: its subject, a trace or a job (`SUBJECTS`).
        frees: the kind of time that the fix removes (`torchwhy.rules.stake.FREES`).
    """

    code: str
    slug: str
    source: str
    needs: frozenset[str]
    mutes: frozenset[str]
    function: Function
    on: str = "trace"
    frees: str = "all"

    @property
    def family(self) -> str:
        """The letter of the code."""
        return self.code.rstrip("0123456789")

    @property
    def title(self) -> str:
        """First line of its documentation."""
        return self.documentation.partition("\n")[0]

    @property
    def documentation(self) -> str:
        """The function's docstring."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def thresholds(self) -> dict[str, Any]:
        """Names and defaults of its keyword arguments."""
        return dict(_keywords(self.function))

    @property
    def in_force(self) -> dict[str, Any]:
        """The thresholds set by `diagnose`, or the defaults; for rules that depend on this one."""
        return {**self.thresholds, **_SET.get().get(self.slug, {})}

    def check(self, subject: Any, thresholds: Mapping[str, Any] | None = None) -> Iterator[Finding]:
        """Run it.

        Args:
            subject: a `Trace`, or a `Job` for rules on jobs.
            thresholds: values for some of `Rule.thresholds`; checked before the rule runs.
        """
        given = _SET.get().get(self.slug, {}) if thresholds is None else thresholds
        return self._findings(subject, self.checked(given))

    def _findings(self, subject: Any, thresholds: Mapping[str, Any]) -> Iterator[Finding]:
        for finding in self.function(subject, **thresholds):
            weighed = _weighed(finding, subject, self.frees) if self.on == "trace" else finding
            yield replace(weighed, code=self.code, slug=self.slug, source=self.source)

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return thresholds.

        Raises:
            ArgumentError: the rule does not have the threshold.
            ArgumentTypeError: a value is not a number.
        """
        known = self.thresholds
        for name, value in given.items():
            if name not in known:
                names = ", ".join(known) or "none"
                raise ArgumentError(f"threshold of {self.slug} must be one of: {names}; got {name!r}")
            if isinstance(value, bool) != isinstance(known[name], bool) or not isinstance(value, int | float):
                raise ArgumentTypeError(f"threshold {name} of {self.slug} must be a number, got {value!r}")
        return dict(given)


@cache
def _keywords(function: Function) -> tuple[tuple[str, Any], ...]:
    """Names and defaults of a function's keyword arguments; `diagnose` asks for those of all rules."""
    parameters = inspect.signature(function).parameters.values()
    return tuple((p.name, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY)


@contextmanager
def setting(thresholds: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Context manager that sets thresholds, by slug and name, for all rules."""
    token = _SET.set(thresholds)
    try:
        yield
    finally:
        _SET.reset(token)


def _weighed(finding: Finding, trace: Trace, frees: str) -> Finding:
    """A finding with the time at stake: what the fix can save at most of the time that it removes."""
    removed = 0.0 if finding.severity == "info" and not finding.ranked else finding.time_us * 1000
    when = _times_of(finding, trace.events) if finding.stretches is None else finding.stretches
    if len(when):
        # Microseconds are rounded: all of the time is all of it.
        saved = most_saved(trace, frees, when, 1.0 if removed > when.total - 1 else removed / when.total)
    else:  # it is not known when: no more than all such time of the window
        saved = most_saved(trace, frees, Intervals.union([trace.window.start], [trace.window.end]))
    saved = min(saved, removed)
    ordinary = ordinary_time(trace, when)
    gap = trace.window.us - ordinary / 1000 if finding.window == trace.window else 0.0
    once = finding.once or (saved > 0 and len(when) > 0 and int(when.ends[-1]) <= settled(trace))
    weighed = replace(finding, time_us=saved / 1000, stretches=when, left_out_us=gap, once=once)
    if finding.ranked:
        share = saved / ordinary if ordinary else 0.0
        waited = trace.derived(waited_share)
        if frees == "host" and waited >= BUSY:
            weighed = _doubted(weighed, share - waited)
        weighed = (
            replace(weighed, severity=severity_of(share, weighed.most))
            if share >= WORTH
            else replace(weighed, severity="info", time_us=0.0)
        )
    return weighed


def _doubted(finding: Finding, surely: float) -> Finding:
    """A finding about the host's time on a busy machine: only this share of it is no wait for a processor for sure."""
    less = CONFIDENCES[max(CONFIDENCES.index(finding.confidence) - 1, 0)]
    return replace(finding, confidence=less, most=severity_of(surely, finding.most))


def _times_of(finding: Finding, events: Events) -> Intervals:
    """When the rows of a finding's evidence take place, within its window."""
    rows = np.concatenate([np.empty(0, np.int32), *(item.rows for item in finding.evidence)])
    return events.times_of(rows).clip(finding.window.start, finding.window.end)


def rule(
    code: str,
    slug: str,
    *,
    source: str,
    frees: str = "all",
    needs: Iterable[str] = (),
    mutes: Iterable[str] = (),
    on: str = "trace",
) -> Callable[[Function], Rule]:
    """Decorator that makes a function a rule; see `Rule` for the arguments.

    The function takes a `Trace` (a `Job` with on="job"), thresholds as keyword-only numbers with defaults, and yields
    findings. `torchwhy rule CODE` prints its docstring: a line with the symptom, then the paragraphs "Sees:",
    "Costs:" and "Fix:".
    """
    unknown = {*needs, *mutes} - set(ASPECTS)
    if unknown:
        raise ArgumentError(f"aspects of {slug} must be among {', '.join(ASPECTS)}, got {', '.join(sorted(unknown))}")

    if frees not in FREES:
        raise ArgumentError(f"frees of {slug} must be one of {', '.join(FREES)}, got {frees!r}")
    if on not in SUBJECTS:
        raise ArgumentError(f"on of {slug} must be one of {', '.join(SUBJECTS)}, got {on!r}")

    def decorate(function: Function) -> Rule:
        return Rule(code, slug, source, frozenset(needs), frozenset(mutes), function, on, frees)

    return decorate
