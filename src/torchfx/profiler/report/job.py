"""The report on a job: the traces of all ranks of a program. Its keys are those of a trace's report where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from torchfx.profiler.ranks.job import Job
from torchfx.profiler.report.report import SCHEMA, finding_of, slug_of
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.wording import counted, percent

__all__ = ["describe_job"]

_LARGE = 0.2
"""From this share of the window on, exchanging and nothing else is what limits a job."""


def describe_job(job: Job, findings: Sequence[Finding], ran: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return everything there is to say of a job.

    Args:
        job: what was read.
        findings: what the rules found in it.
        ran: codes of the rules that were asked.
    """
    plain = job.to_dict(findings)
    ranks = plain["ranks"]
    name = PurePath(job.folder).name or job.folder
    return {
        **plain,
        "schema": SCHEMA,
        "trace": {
            "file": job.folder,
            "name": name,
            "events": sum(summary.events for summary in job.summaries),
            "start_us": 0.0,
            "repairs": _gaps(plain),
        },
        "verdict": _verdict(ranks, on_gpu=any(summary.on_gpu for summary in job.summaries)),
        "findings": [finding_of(finding) for finding in findings],
        "muted": [],
        "failed": [{"code": code, "slug": slug_of(code), "error": why} for code, why in job.failed.items()],
        "ran": [code for code in ran if code not in job.failed],
    }


def _gaps(plain: dict[str, Any]) -> list[dict[str, Any]]:
    """What of the folder takes no part."""
    found = [
        {"kind": "unreadable", "count": 1, "sentence": f"{item['file']} could not be read: {item['reason']}"}
        for item in plain["unreadable"]
    ]
    if plain["duplicates"]:
        files = counted(len(plain["duplicates"]), "further trace")
        sentence = f"{files} of ranks that are there already left out: {', '.join(plain['duplicates'][:3])}"
        found.append({"kind": "duplicates", "count": len(plain["duplicates"]), "sentence": sentence})
    return found


def _verdict(ranks: list[dict[str, Any]], *, on_gpu: bool) -> dict[str, Any]:
    """What limits the rank in the middle, by the time it only communicates: one slow rank makes all others wait.

    All numbers are that rank's, so that they are parts of one window.
    """
    names = ("compute", "exposed", "busy")
    timed = [row for row in ranks if row["window_us"]]
    each = [({name: row[f"{name}_us"] / row["window_us"] for name in names}, row["rank"]) for row in timed]
    each.sort(key=lambda item: item[0]["exposed"])
    shares, middle = each[len(each) // 2] if each else (dict.fromkeys(names, 0.0), None)
    compute, exposed, rest = percent(shares["compute"]), percent(shares["exposed"]), percent(1 - shares["busy"])
    numbers = (
        f"the GPU computes for {compute} of the time, only communicates for {exposed} and is idle for {rest}"
        if on_gpu
        else f"operators compute for {compute} of the time, it only communicates for {exposed} and does neither for "
        f"{rest}"
    )
    if middle is not None:
        place = {1: "", 2: "the one of 2 that communicates more, "}.get(
            len(ranks), f"the middle one of {counted(len(ranks), 'rank')} by communication, "
        )
        numbers = f"on rank {middle}, {place}{numbers}"
    if shares["exposed"] >= _LARGE and shares["exposed"] >= 1 - shares["busy"]:
        return {"kind": "communication-bound", "sentence": f"The ranks wait for each other: {numbers}.", "caveats": []}
    limit = "GPUs" if on_gpu else "processors"
    if shares["compute"] >= 0.5:
        return {"kind": "compute-bound", "sentence": f"The {limit} are the limit: {numbers}.", "caveats": []}
    waits = "its GPU waits for" if on_gpu else "it does the rest of the time"
    hint = f"`torchfx explain` on the trace of one rank tells what {waits}"
    return {"kind": "unknown", "sentence": f"Can't tell from the ranks together: {numbers}; {hint}.", "caveats": []}
