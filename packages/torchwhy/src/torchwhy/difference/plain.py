"""A difference as plain values: what `torchwhy diff --format json` prints. Pairs are [A, B], of an average step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from torchwhy.difference.call_tree import Origin
from torchwhy.difference.changes import STATES, Change, Changes
from torchwhy.difference.difference import Difference, RecordedTrace
from torchwhy.difference.findings import Fate
from torchwhy.difference.jobs import JobDifference, Pair
from torchwhy.difference.kernel_sets import KernelSets, KernelUse
from torchwhy.difference.labels import LabelTimes
from torchwhy.difference.likeness import Likeness
from torchwhy.difference.step_times import StepTimes
from torchwhy.difference.totals import Total
from torchwhy.finding import Evidence, Finding
from torchwhy.schema import SCHEMA

__all__ = ["plain"]


def plain(found: Difference | JobDifference) -> dict[str, Any]:
    """Return everything there is to say of a difference, `schema` 1."""
    if isinstance(found, Difference):
        return _difference(found)
    return {
        "schema": SCHEMA,
        "ranks": [_pair(pair) for pair in found.pairs],
        "only_on_a": found.only_a,
        "only_on_b": found.only_b,
        "rank": found.rank,
        "difference": _difference(found.difference),
    }


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "a": _recording(found.a),
        "b": _recording(found.b),
        "verdict": asdict(found.verdict),
        "step_times": _step_times(found.steps),
        "likeness": _likeness(found.likeness),
        "conditions": found.conditions,
        "totals": [_total(total) for total in found.totals],
        "operators": _changes(found.calls),
        "runtime_calls": _changes(found.runtime),
        "kernels": _changes(found.kernels),
        "copies": _changes(found.copies),
        "kernel_sets": _kernel_sets(found.kernel_sets) if found.kernel_sets else None,
        "host_us_per_step": _rounded(found.step_us),
        "main_path": _origin(found.main_path) if found.main_path else None,
        "origins": [_origin(origin) for origin in found.origins],
        "findings": [_fate(fate) for fate in found.findings],
        "labels": [_per_step(label) for label in found.labels],
    }


def _rounded(values: Iterable[float], digits: int = 3) -> list[float]:
    return [round(value, digits) for value in values]


def _pair(pair: Pair) -> dict[str, Any]:
    parts = {"window": "duration", "compute": "compute", "exposed_communication": "exposed"}
    return {"rank": pair.rank} | {f"{name}_us_per_step": _rounded(pair.per_step_us(parts[name])) for name in parts}


def _recording(one: RecordedTrace) -> dict[str, Any]:
    rounds = one.rounds
    steps = {"name": rounds.name, "count": len(rounds), "are_steps": rounds.are_steps, "inferred": rounds.inferred}
    steps["cold_first_step_us"] = rounds.cold_us
    return {"file": one.file, "device": one.device, "vendor": one.vendor, "events": one.events, "steps": steps}


def _step_times(times: StepTimes) -> dict[str, Any]:
    shift = times.shift
    pairs = {name: _rounded(getattr(times, name)) for name in ("a_us", "b_us", "median_us", "mean_us")}
    ratio, low, high = _rounded((shift.ratio, shift.low, shift.high), 5)
    return {
        "clock": times.clock,
        **pairs,
        "b_over_a": {"ratio": ratio, "low": low, "high": high, "judged": shift.judged},
    }


def _likeness(found: Likeness) -> dict[str, Any]:
    share = None if found.share is None else round(found.share, 4)
    return {"share": share, "compared": found.what, "same_program": found.same_program}


def _total(total: Total) -> dict[str, Any]:
    a, b = (None if value is None else round(value, 3) for value in (total.a, total.b))
    return {"name": total.name, "unit": total.unit, "a": a, "b": b, "changed": total.changed}


def _changes(changes: Changes) -> dict[str, Any]:
    listed = {state: [_change(change) for change in changes[state]] for state in STATES}
    return {**listed, "too_small_to_list": changes.trifles, "unchanged": changes.same}


def _change(change: Change) -> dict[str, Any]:
    name, times = change.name, _per_step(change)
    return {"name": name, "state": change.state, **times, "bytes_per_step": [round(size) for size in change.size]}


def _per_step(one: Change | LabelTimes) -> dict[str, Any]:
    times = {f"{name}_per_step": _rounded(getattr(one, name)) for name in ("calls", "host_us", "device_us")}
    return {"name": one.name, **times}


def _kernel_sets(sets: KernelSets) -> dict[str, Any]:
    return {
        "identical": sets.identical,
        "in_common": sets.in_common,
        "only_a": sets.only_a,
        "only_b": sets.only_b,
        "counts_differ": [(name, *_rounded(counts)) for name, *counts in sets.counts_differ],
        "replaced": [
            {"operator": one.operator, "before": _uses(one.before), "after": _uses(one.after)} for one in sets.replaced
        ],
    }


def _uses(uses: Iterable[KernelUse]) -> list[dict[str, Any]]:
    return [{"name": name, "calls_per_step": round(calls, 3), "us_per_step": round(us, 3)} for name, calls, us in uses]


def _origin(origin: Origin) -> dict[str, Any]:
    return {
        "path": origin.path,
        "state": origin.state,
        "calls_per_step": _rounded(origin.calls),
        "us_per_step": _rounded(origin.us),
        "change_us_per_step": round(origin.change_us, 3),
        "replaced": origin.replaced,
        "share": None if origin.share is None else round(origin.share, 4),
    }


def _fate(fate: Fate) -> dict[str, Any]:
    finding = _finding(fate.finding)
    times = _rounded(fate.us)
    return {"state": fate.state, "us_per_step": times, "note": fate.note, "ids": fate.ids, "finding": finding}


def _finding(finding: Finding) -> dict[str, Any]:
    window = finding.window
    return {
        "id": finding.id,
        "code": finding.code,
        "slug": finding.slug,
        "title": finding.title,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "time_us": round(finding.time_us, 3),
        "window": {"name": window.name, "start_us": window.start / 1000, "duration_us": window.us},
        "evidence": [_evidence(item) for item in finding.evidence],
        "cause": finding.cause,
        "cause_is": "linked" if finding.linked else "inferred",
        "fix": finding.fix,
        "source": finding.source,
    }


def _evidence(item: Evidence) -> dict[str, Any]:
    names = ("name", "count", "time_us", "start_us", "where", "stack", "note")
    time_us = None if item.time_us is None else round(item.time_us, 3)
    return {name: getattr(item, name) for name in names} | {"time_us": time_us}
