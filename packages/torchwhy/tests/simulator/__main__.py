"""Judge the trace reader by simulated programs: `python -m tests.simulator --help`, in packages/torchwhy."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tests.simulator.chrome import write, write_job
from tests.simulator.faults import FAULTS
from tests.simulator.judge import as_json, details, judge_many, table
from tests.simulator.program import draw
from tests.simulator.run import saving, simulate


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulator",
        description="Simulate training programs with planted faults, let torchwhy explain their traces, and compare.",
    )
    parser.add_argument("--seeds", default="0-100", metavar="A-B", help="programs to draw, B left out (default: 0-100)")
    parser.add_argument(
        "--fault",
        action="append",
        metavar="NAME",
        help=f"plant this, not what the seed wants: {', '.join(FAULTS)}; 'none': no fault",
    )
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="default: 2")
    parser.add_argument("--details", action="store_true", help="print each disagreement with the seed that shows it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all judgements to a file")
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="simulate the first seed only, write its trace (of several ranks: a folder), print the truth",
    )
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    planted = None if options.fault is None else tuple(name for name in options.fault if name != "none")
    if options.write:
        one = simulate(draw(int(first), planted))
        print((write(one, options.write) if one.program.ranks == 1 else write_job(one, options.write)), one.plan.size)
        print(f"{one.time / 1e6:.3f} ms for {one.program.steps} steps; of the window:")
        for state, share in sorted(one.shares().items(), key=lambda each: -each[1]):
            print(f"  {100 * share:5.1f}%  {state}")
        for fault in one.program.planted:
            print(
                f"  {100 * saving(one.program, fault) / one.time:5.1f}%  saved without {fault}: {FAULTS[fault].wrong}"
            )
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    judgements = judge_many(range(int(first), int(last or int(first) + 1)), planted, processes=options.processes)
    print(table(judgements))
    if options.details:
        print("\n" + details(judgements))
    if options.json:
        options.json.write_text(as_json(judgements))


if __name__ == "__main__":
    main()
