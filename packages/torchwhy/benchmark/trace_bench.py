#!/usr/bin/env python3
"""Measure how fast and in how much memory a large trace is read, beside JSON libraries and other trace readers.

python benchmark/trace_bench.py my.pt.trace.json.gz --megabytes 174 --rounds 3

The given trace is repeated, with later times and other ids, up to the size requested. Every contender reads that file
in separate processes, on one core, alternately; what is not installed is left out. Times are those of the read alone,
peak memory is the whole process's. "torchwhy explain" reads, asks the rules and describes, as the command does.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import torchwhy
from torchwhy.trace.file.scanning import scan
from torchwhy.trace.file.source import Chunks

SHIFTED = re.compile(
    rb'(?:"(ts|id|correlation|[Ee]xternal id|Sequence number|Python id|Python parent id|Ev Idx)"\s*:\s*|'
    rb"(ProfilerStep)#)(\d+)"
)

# What each contender runs; `path` is the file, `result` what it read. Setting up, imports too, is not timed.
CONTENDERS = {
    "torchwhy scan": (
        "from torchwhy.trace.file.scanning import scan",
        "result = scan(path); events = len(result)",
    ),
    "torchwhy load": (
        "from torchwhy import load",
        "result = load(path); events = len(result)",
    ),
    "torchwhy explain": (
        "from torchwhy.loading.read import read_trace\nfrom torchwhy.report.trace_report import describe\n"
        "from torchwhy.rules.diagnose import diagnose\nfrom torchwhy.trace.model.trace import Trace",
        "trace = read_trace(path, Trace); result = describe(trace, diagnose(trace), ''); events = len(trace)",
    ),
    "torchwhy scan, Python": (
        "import os; os.environ['TORCHWHY_NATIVE'] = '0'\nfrom torchwhy.trace.file.scanning import scan",
        "result = scan(path); events = len(result)",
    ),
    "json": (
        "import json",
        "result = json.load(open(path, 'rb')); events = len(result['traceEvents'])",
    ),
    "json, gc off": (
        "import gc, json; gc.disable()",
        "result = json.load(open(path, 'rb')); events = len(result['traceEvents'])",
    ),
    "orjson": (
        "import orjson",
        "result = orjson.loads(open(path, 'rb').read()); events = len(result['traceEvents'])",
    ),
    "orjson, gc off": (
        "import gc, orjson; gc.disable()",
        "result = orjson.loads(open(path, 'rb').read()); events = len(result['traceEvents'])",
    ),
    "msgspec, typed, raw args": (
        """
import msgspec
class Event(msgspec.Struct, gc=False):
    ph: str
    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    pid: int | str = 0
    tid: int | str = 0
    id: int | str = 0
    args: msgspec.Raw = msgspec.Raw()
class Trace(msgspec.Struct, gc=False):
    traceEvents: list[Event]
decoder = msgspec.json.Decoder(Trace)
""",
        "result = decoder.decode(open(path, 'rb').read()); events = len(result.traceEvents)",
    ),
    "HTA": (
        "from hta.common.trace_parser import parse_trace_file",
        "result = parse_trace_file(path); events = 0",
    ),
    "TraceLens": (
        "from TraceLens import TreePerfAnalyzer",
        "result = TreePerfAnalyzer.from_file(path); events = 0",
    ),
}
NEEDS = {"orjson": "orjson", "msgspec": "msgspec", "HTA": "hta", "TraceLens": "TraceLens"}

RUN = """
import json, os, sys, time
def peak_bytes():
    try:  # on Linux ru_maxrss would include the parent's, from before this process ran its own program
        return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
path = {path!r}
{setup}
before = peak_bytes()
start = time.perf_counter()
{read}
seconds = time.perf_counter() - start
peak = peak_bytes()
print(json.dumps({{"seconds": seconds, "peak_mb": peak / 1e6, "added_mb": (peak - before) / 1e6, "events": events}}))
"""


def repeated(source: Path, megabytes: float, target: Path) -> int:
    """Write `source` over and over into one trace of at least `megabytes`; return how many times."""
    columns = scan(source)
    with Chunks(source) as chunks:
        data = b"".join(chunks)
    first, last = int(columns.offset[0]), int(columns.offset[-1])
    length = json.JSONDecoder(strict=False).raw_decode(data[last:].decode("latin-1"))[1]
    head, body, tail = data[:first], data[first : last + length], data[last + length :]
    # Texts and numbers by turns.
    pieces, numbers, is_time, is_step, at = [], [], [], [], 0
    for match in SHIFTED.finditer(body):
        pieces.append(body[at : match.start(3)])
        numbers.append(int(match[3]))
        is_time.append(match[1] == b"ts")
        is_step.append(match[2] is not None)
        at = match.end(3)
    end = body[at:]
    values, times, steps = np.array(numbers), np.array(is_time), np.array(is_step)
    usual = times & (
        np.abs(values - np.median(values[times])) < 3.6e9
    )  # an hour; some exporters' last event is far off
    span = int(np.ptp(values[usual])) + 1000
    ids = int(values[~times & ~steps & (values < 2**31)].max(initial=0)) + 1
    shift = np.where(times, span, np.where(values < 2**31, ids, 0))
    shift[steps] = len(np.unique(values[steps]))
    repeats = max(1, math.ceil((megabytes * 1e6 - len(head) - len(tail)) / len(body)))
    with target.open("wb") as file:
        file.write(head)
        for repeat in range(repeats):
            shifted = (values + repeat * shift).tolist()
            file.write(b",\n  " if repeat else b"")
            file.writelines(part for pair in zip(pieces, (b"%d" % n for n in shifted), strict=True) for part in pair)
            file.write(end)
        file.write(tail)
    return repeats


def present() -> list[str]:
    """The contenders that can run here."""
    names = [
        name
        for name in CONTENDERS
        if all(importlib.util.find_spec(module) for word, module in NEEDS.items() if name.startswith(word))
    ]
    return [name for name in names if name != "torchwhy load" or callable(getattr(torchwhy, "load", None))]


def measured(name: str, path: Path) -> dict[str, float] | None:
    """Read the file once in a fresh process; None when that fails."""
    setup, read = CONTENDERS[name]
    code = RUN.format(path=str(path), setup=setup, read=read)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if ran.returncode:
        print(f"{name} failed: {(ran.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
        return None
    answer: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, help="a real trace, .json or .json.gz")
    parser.add_argument("--megabytes", type=float, default=174, help="size of the trace to read (default: 174)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="a contender; may be given several times")
    parser.add_argument(
        "--python-scanner", action="store_true", help="measure the scanner in Python too, which is slow"
    )
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    names = options.only or [name for name in present() if options.python_scanner or "Python" not in name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "big.json")
        repeats = repeated(options.trace, options.megabytes, path)
        size = path.stat().st_size / 1e6
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for _ in range(options.rounds):
            for name in names:
                run = measured(name, path)
                if run is None:
                    continue
                runs[name].append(run)
    events = max((int(run["events"]) for all_runs in runs.values() for run in all_runs), default=0)
    print(f"{options.trace.name} {repeats} times: {size:.0f} MB, {events} events, {os.cpu_count()} cores, 1 used")
    print(f"{'':26} {'median s':>9} {'least s':>9} {'MB/s':>7} {'peak MB':>8} {'added MB':>9}")
    table = {}
    for name, all_runs in runs.items():
        if not all_runs:
            continue
        seconds = [run["seconds"] for run in all_runs]
        row = {
            "median_s": statistics.median(seconds),
            "least_s": min(seconds),
            "peak_mb": statistics.median(run["peak_mb"] for run in all_runs),
            "added_mb": statistics.median(run["added_mb"] for run in all_runs),
            "runs": all_runs,
        }
        table[name] = row
        print(
            f"{name:26} {row['median_s']:9.2f} {row['least_s']:9.2f} {size / row['median_s']:7.0f} "
            f"{row['peak_mb']:8.0f} {row['added_mb']:9.0f}"
        )
    if options.json:
        facts = {"trace": options.trace.name, "repeats": repeats, "megabytes": size, "events": events}
        options.json.write_text(json.dumps({**facts, "contenders": table}, indent=1))


if __name__ == "__main__":
    main()
