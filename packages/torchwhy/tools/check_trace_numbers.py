#!/usr/bin/env python3
"""Check the numbers `torchwhy explain` reports against plain arithmetic on the file's JSON.

python tools/check_trace_numbers.py FOLDER_OR_TRACE...

Everything is computed a second time the slow way: `json`, exact decimals, a sweep over sorted intervals. Nothing of the
reader is used for it. A line per trace; exit status 1 when a number is off by more than 0.01 %.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from torchwhy import load
from torchwhy.errors import TraceError
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose

TOLERANCE = 1e-4
COMMUNICATION = re.compile("nccl|rccl|xccl|oneccl|nvshmem|multimem|cross_device_reduce", re.IGNORECASE)
WORK = {"kernel": "kernel", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "fill", "memset": "fill"}
Span = tuple[Decimal, Decimal]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the union, sorted."""
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        elif end > start:
            result.append((start, end))
    return result


def length(spans: Iterable[Span]) -> Decimal:
    """Return the time a union covers."""
    return sum((end - start for start, end in merged(spans)), Decimal(0))


def plain_numbers(path: Path) -> dict[str, float]:
    """Compute what a report says of a trace, from its text alone; times in microseconds, over all devices."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")
    content = json.loads(text, strict=False, parse_float=Decimal, parse_int=Decimal)
    events = content["traceEvents"] if isinstance(content, dict) else content
    spans: dict[str, list[Span]] = defaultdict(list)
    correlations: dict[str, set[Any]] = defaultdict(set)
    launches: list[Any] = []
    kernels: list[Any] = []
    operators: dict[str, Counter[Any]] = {"launches": Counter(), "kernels": Counter()}
    streams = set()
    steps: dict[str, Span] = {}
    calls: list[Decimal] = []  # when operators and calls of the device's API begin
    for event in events:
        if event.get("ph") != "X" or "ts" not in event:
            continue
        category, name, args = str(event.get("cat", "")).lower(), str(event.get("name")), event.get("args", {})
        duration = event.get("dur", Decimal(0))
        span = event["ts"], event["ts"] + duration
        if category in WORK:
            kind = WORK[category]
            spans["communication" if kind == "kernel" and COMMUNICATION.search(name) else kind].append(span)
            correlations["device"].add(args.get("correlation"))
            streams.add((args.get("device"), args.get("stream")))
            if kind == "kernel":
                kernels.append(args.get("correlation"))
                operators["kernels"][args.get("External id")] += "correlation" not in args
        elif category == "runtime" or category.endswith(("_runtime", "_driver")):
            calls.append(event["ts"])
            correlations["host"].add(args.get("correlation"))
            if "LaunchKernel" in name or "GraphLaunch" in name or "ModuleLaunch" in name:
                launches.append(args.get("correlation"))
                operators["launches"][args.get("External id")] += "correlation" not in args
        elif name.startswith("ProfilerStep#") and category in {"user_annotation", "operator"}:
            steps[name] = max(span, steps.get(name, span), key=lambda each: each[1] - each[0])
        elif category in {"cpu_op", "operator"}:
            calls.append(event["ts"])
    # A step that begins when the loop is over calls nothing.
    *before, last = sorted(steps.values()) or [(Decimal(0), Decimal(0))]
    calling = [any(start <= call < end for call in calls) for start, end in (*before, last)]
    timed = before if before and not calling[-1] and all(calling[:-1]) else list(steps.values())
    # Launches and kernels without correlation belong together where both name the same operator.
    by_operator = operators["launches"] & operators["kernels"]
    linked = sum(count for operator, count in by_operator.items() if operator is not None)
    compute, communication, copies = spans["kernel"] + spans["fill"], spans["communication"], spans["copy"]
    every = compute + communication + copies
    ends = merged(every) or [(Decimal(0), Decimal(0))]
    total = ends[-1][1] - ends[0][0]
    busy = length(every)
    numbers: dict[str, int | Decimal] = {
        "events": len(events),
        "span_us": total,
        "busy_us": busy,
        "idle_us": total - busy,
        "compute_us": length(compute),
        "communication_us": length(communication),
        "exposed_communication_us": length(communication + compute) - length(compute),
        "memcpy_us": length(copies),
        "exposed_memcpy_us": busy - length(compute + communication),
        "kernels": len(kernels),
        "streams": len(streams),
        "launches": len(launches),
        "launches_without_kernel": sum(c is None or c not in correlations["device"] for c in launches) - linked,
        "kernels_without_launch": sum(c is None or c not in correlations["host"] for c in kernels) - linked,
        "steps": len(timed),
        "steps_us": sum((end - start for start, end in timed), Decimal(0)),
    }
    return {name: float(value) for name, value in numbers.items()}


def reported_numbers(path: Path) -> dict[str, float]:
    """Return the same numbers as the report has them; devices must not overlap for times to be comparable."""
    trace = load(path)
    report = describe(trace, diagnose(trace, rules=()))
    found: dict[str, float] = {"events": report.trace.events}
    for name in (
        "span",
        "busy",
        "idle",
        "compute",
        "communication",
        "exposed_communication",
        "memcpy",
        "exposed_memcpy",
    ):
        found[f"{name}_us"] = sum(getattr(gpu, f"{name}_us") for gpu in report.gpu)
    found |= {name: sum(getattr(gpu, name) for gpu in report.gpu) for name in ("kernels", "streams")}
    launches, steps = report.launches, report.window.steps if not report.window.inferred else ()
    found |= {"launches": launches.count, "launches_without_kernel": launches.without_kernel}
    found |= {"kernels_without_launch": launches.kernels_without_launch}
    found |= {"steps": len(steps), "steps_us": sum(step.duration_us for step in steps)}
    return found


def differences(path: Path) -> list[str]:
    """Return a sentence for each number that is off."""
    reported = reported_numbers(path)
    plain = plain_numbers(path)
    return [
        f"{name}: {reported[name]:.6g} reported, {value:.6g} computed"
        for name, value in plain.items()
        if abs(reported[name] - value) > TOLERANCE * abs(value)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Check every trace named or found in the folders named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, help="traces, or folders with traces in them")
    failed = 0
    for given in parser.parse_args(arguments).paths:
        for path in sorted(given.rglob("*.json*")) if given.is_dir() else [given]:
            try:
                wrong = differences(path)
            except TraceError:
                continue  # other JSON files lie beside traces
            print(f"{'FAIL' if wrong else 'ok  '}  {path.name}  {'; '.join(wrong)}".rstrip())
            failed += bool(wrong)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
