"""Write a job of many ranks, and measure how fast and in how much memory it is read; run in packages/torchwhy:

    python -m benchmark.job_bench write FOLDER --ranks 100 --megabytes 50 --straggler 37
    python -m benchmark.job_bench read FOLDER --workers 2

The traces come from a simulated program (tests/simulator) with one rank whose device is slower, repeated with later
times and other ids up to the requested size. Ranks differ in rank, clock, process and device. With --distinct, only so
many files are written; the other ranks are hard links to them, and their names show their ranks.

"read" reads all ranks without kept summaries, describes the job and renders its page, each once, and prints seconds per
GB, the processor's seconds, and the peak memory of this process and of the largest worker.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmark.trace_bench import repeated
from tests.simulator.chrome import PROCESS, write
from tests.simulator.program import Recording, draw
from tests.simulator.run import Run, simulate
from tests.simulator.script import late_rank
from torchwhy import load_job
from torchwhy.page.report_page import job_page
from torchwhy.report.job_report import describe_job

SIMULATED = 4
"""Ranks that are simulated: one that is late, and three that wait for it."""

SEED = 5
EVENTS = b'"traceEvents": ['


def write_ranks(folder: Path, ranks: int, megabytes: float, straggler: int, distinct: int | None = None) -> None:
    """Write the traces of a job.

    Args:
        folder: is made.
        ranks: how many.
        megabytes: the least size of each trace; 0: of the simulated steps alone.
        straggler: the rank that all others wait for.
        distinct: how many files are written; None: all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = replace(draw(SEED, ("straggler",), recording=Recording(stacks=False)), ranks=SIMULATED)
    run = simulate(program)
    late = late_rank(program)
    on_time = [rank for rank in range(SIMULATED) if rank != late]
    bodies = {rank: _body(run, rank, ranks, megabytes) for rank in range(SIMULATED)}
    written: list[Path] = []
    for rank in range(ranks):
        target = folder / f"rank{rank}.json"
        if distinct is not None and len(written) >= distinct and rank != straggler:
            os.link(written[rank % len(written)], target)
            continue
        like = late if rank == straggler else on_time[rank % len(on_time)]
        head, body = bodies[like]
        head["baseTimeNanoseconds"] += 1_000_003 * rank  # the clocks of machines disagree
        head["distributedInfo"] |= {"rank": rank, "world_size": ranks}
        head["distributedInfo"]["pg_config"][0] |= {"pg_size": ranks, "ranks": list(range(ranks))}
        process = b'"pid": %d,' % (100_000 + 7 * rank)
        with target.open("wb") as file:
            file.write(json.dumps(head).encode()[:-1] + b", " + EVENTS)
            file.write(body.replace(b'"pid": %d,' % (PROCESS + like), process))
        if rank != straggler:
            written.append(target)


def _body(run: Run, rank: int, ranks: int, megabytes: float) -> tuple[dict, bytes]:
    """The head of a rank's trace, and what follows it, with groups of as many ranks as the job has."""
    with tempfile.TemporaryDirectory() as folder:
        one = write(run, Path(folder, "one.json"), rank)
        if megabytes:
            repeated(one, megabytes, one.with_name("many.json"))
            one = one.with_name("many.json")
        text = one.read_bytes()
    head, _, body = text.partition(EVENTS)
    sizes = b'"Group size": %d'
    return json.loads(head.rstrip(b", \n") + b"}"), body.replace(sizes % SIMULATED, sizes % ranks)


def _peak_mb(who: int) -> float:
    return resource.getrusage(who).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def _processor_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def read_ranks(folder: Path, workers: int) -> None:
    """Read a job and print what that took."""
    size = sum(path.stat().st_size for path in folder.glob("*.json")) / 1e9
    before, start = _processor_s(), time.perf_counter()
    job = load_job(folder, workers=workers, keep=False)
    print(f"{len(job)} ranks, {size:.1f} GB, {sum(s.events for s in job.summaries):,} events, {workers} workers")
    _say("read", before, start, size)
    _say_memory(f"the largest worker {_peak_mb(resource.RUSAGE_CHILDREN):.0f} MB, ")
    before, start = _processor_s(), time.perf_counter()
    findings = job.diagnose()
    report = describe_job(job, findings)
    _say("compare the ranks", before, start, size)
    before, start = _processor_s(), time.perf_counter()
    page = job_page(job, report)
    _say(f"page of {len(page) / 1e6:.1f} MB", before, start, size)
    _say_memory()
    print(f"  last: rank {report.stragglers[0].rank}; first finding: {findings[0].title if findings else '-'}")


def _say_memory(others: str = "") -> None:
    print(f"  peak memory: {others}this process {_peak_mb(resource.RUSAGE_SELF):.0f} MB")


def _say(what: str, before: float, start: float, size: float) -> None:
    seconds, processor = time.perf_counter() - start, _processor_s() - before
    print(f"  {what}: {seconds:.1f} s, {processor:.1f} s of the processor, {processor / size:.1f} s per GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "read"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=100)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--straggler", type=int, default=37)
    parser.add_argument("--distinct", type=int, metavar="N", help="files that are written; the others are hard links")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.what == "write":
        write_ranks(options.folder, options.ranks, options.megabytes, options.straggler, options.distinct)
    else:
        read_ranks(options.folder, options.workers)


if __name__ == "__main__":
    main()
