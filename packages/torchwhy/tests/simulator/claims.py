"""What a report says in numbers, held against the record of the run: counts, durations, shares of the device's time.

A trace may lack events, so a report may tell of less than happened. It must never tell of more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tests.simulator.run import Run
from torchwhy.report.trace_report import TraceReport

__all__ = ["false_claims"]

PERCENT = r"(\d+(?:\.\d+)?)%"
SHARES = (
    (re.compile(rf"idle {PERCENT} of the time"), "idle"),
    (re.compile(rf"for {PERCENT} it waits for the next launch"), "idle"),
    (re.compile(rf"{PERCENT} of the time no PyTorch operator runs and the device has no work"), "idle"),
    (re.compile(rf"for {PERCENT} of .* it has no work"), "idle"),
    (re.compile(rf"{PERCENT} of the time with nothing else running"), "copy"),
    (re.compile(rf"{PERCENT} of .* the GPU does nothing but copy"), "copy"),
    (re.compile(rf"For {PERCENT} of the window the device only communicates"), "communication"),
    (re.compile(rf"device is busy {PERCENT}"), "busy"),
    (re.compile(rf"it computes for (?:at least )?{PERCENT}"), "compute"),
)
"""Sentences that name a share of the device's time, and what the device does or doesn't do then."""
WAITING = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpyAsync", "cudaFree")
COUNTS = (
    (re.compile(r"([\d,]+) waits for the device"), WAITING),
    (re.compile(r"([\d,]+) numbers per step are read"), ("aten::item",)),
    (re.compile(r"zero_grad writes zeros: ([\d,]+) fills"), ("aten::zero_",)),
    (re.compile(r"updates its parameters one by one: ([\d,]+) launches"), ("cudaLaunchKernel", "cudaLaunchKernelExC")),
    (re.compile(r"([\d,]+) collectives per step"), ("c10d::allreduce_",)),
)  # fmt: skip
"""Sentences that count, and the events that may be counted so; "per step" where they say so."""
ROUNDING = 0.01
"""Of the window: shares are written with two digits."""


def false_claims(run: Run, report: TraceReport) -> Iterator[str]:
    """Tell which numbers of a report exceed what happened on the first rank of a run, while it was recorded."""
    count, spent = _happened(run)
    shares = _shares(run)
    whole = (run.window()[1] - run.window()[0]) / 1000
    for finding in report.findings:
        for item in finding.evidence:
            if item.count > count.get(item.name, item.count):
                yield f"{finding.slug}: {item.count} times {item.name}, which happened {count[item.name]} times"
            if item.name in spent and (item.time_us or 0.0) > spent[item.name] / 1000 + ROUNDING * whole:
                yield f"{finding.slug}: {item.time_us} us of {item.name}, which took {spent[item.name] / 1000} us"
        per = run.program.steps if "per step" in finding.title else 1
        for pattern, names in COUNTS:
            happened = sum(count[name] for name in names)
            yield from (
                f"{finding.slug}: {finding.title}, of which there were {happened}"
                for number in pattern.findall(finding.title)
                if (int(number.replace(",", "")) - 1) * (1 if pattern is COUNTS[0][0] else per) > happened
            )
        yield from (
            f"{finding.slug}: {text}" for text in _exceeding(finding.title, shares, finding.window.duration_us / whole)
        )
    part = report.breakdown.window_us / whole  # without a cold first step
    yield from (f"verdict: {text}" for text in _exceeding(report.verdict.sentence, shares, part))


def _exceeding(text: str, shares: dict[str, float], part: float) -> Iterator[str]:
    """Shares in a text about a part of the window that are more than the whole window has."""
    for pattern, state in SHARES:
        for number in pattern.findall(text):
            if float(number) / 100 * min(part, 1.0) > shares[state] + ROUNDING:
                yield f"{text}: {state} for {100 * shares[state]:.1f}% of the window"


def _happened(run: Run) -> tuple[Counter[str], Counter[str]]:
    """How often events of each name took place, and how long in all, nanoseconds; steps begun or ended count whole."""
    machine = run.machines[0]
    begin, end = machine.marks["start"], machine.marks["stop"]
    count, spent = Counter[str](), Counter[str]()
    host = ((event.name, event.begin, event.end) for event in machine.events)
    device = ((work.name, work.begin, work.end) for work in machine.works)
    for name, start, stop in (*host, *device):
        if start < end and stop > begin:
            count[name] += 1
            spent[name] += stop - start
    return count, spent


def _shares(run: Run) -> dict[str, float]:
    """Parts of the window in which the device is idle, busy, or only does something."""
    shares = run.shares()
    idle = sum(share for state, share in shares.items() if state.startswith("idle"))
    return {"idle": idle, "busy": 1 - idle} | {
        name: shares.get(name, 0.0) for name in ("compute", "copy", "communication")
    }
