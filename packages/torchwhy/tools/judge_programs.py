#!/usr/bin/env python3
"""Judge the findings of programs with a planted mistake, and of healthy ones, by what mending each mistake saves.

python tools/judge_programs.py [--runs N] [--cpu] [PROGRAM...]

Each program in tests/programs/faulty says in EXPECTED, a regular expression, which words name its mistake; comments
mark its line, and the argument `mended` runs the same program without the mistake. Both are timed, unprofiled and in
turn, from the first call of a module to the end. A row per program: the first two findings; whether one of the first
three names the cause, and the line or its function; the share of the time that finding states (its stake), and the
share that mending saves. A stake is right between 0.8 times the saving and 1.5 times the saving plus its noise; wrong
results lack one. Of healthy programs a row shows the findings that ask for a change. Exit status 1 when anything is
wrong.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PROGRAMS = Path(__file__).parents[1] / "tests" / "programs"
FIRST = 3
LEAST, MOST = 0.8, 1.5
TIMED = """
import os, runpy, sys, time
from torch.nn.modules.module import register_module_forward_pre_hook

clock = {"cpu": lambda: sum(os.times()[:4]), "wall": time.perf_counter}[sys.argv[1]]
began = []


def begin(*_):
    began.append(clock())
    handle.remove()


handle = register_module_forward_pre_hook(begin)
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
print(clock() - began[0])
"""


class Verdict(NamedTuple):
    """How the findings on a program with a planted mistake fit it; `stake` is None where no finding names the cause."""

    cause: bool
    line: bool
    stake: float | None


def run(*command: str | Path) -> str:
    """Return what a program prints; it runs with one thread, alone in a new process."""
    ran = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
        timeout=600,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with status {ran.returncode}:\n{ran.stderr}")
    return ran.stdout


def profile(program: Path, folder: Path) -> dict[str, Any]:
    """Profile a program as a user would, with default options, and return its report."""
    run("-m", "torchwhy", "profile", "-o", folder, program)
    report: dict[str, Any] = json.loads((folder / "findings.json").read_text())
    return report


def expected(program: Path) -> str:
    """Return the program's EXPECTED, without running it."""
    for statement in ast.parse(program.read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "EXPECTED":
            return str(ast.literal_eval(statement.value))
    raise ValueError(f"{program} has no EXPECTED")


def asking(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the findings that ask for a change."""
    return [finding for finding in findings if finding["severity"] != "info"]


def names_the_cause(finding: dict[str, Any], program: Path) -> bool:
    """Return whether a finding's words name the program's planted mistake."""
    words = f"{finding['slug']}: {finding['title']} {finding['cause']} {finding['fix']}"
    return bool(re.search(expected(program), words, re.DOTALL))


def names_the_line(finding: dict[str, Any], program: Path) -> bool:
    """Return whether a finding names a planted line, or a line of the innermost function that holds one."""
    text = program.read_text()
    planted = [i for i, line in enumerate(text.splitlines(), 1) if line.endswith("# planted")]
    evidence = " ".join(str(one["own_code"]) for one in finding["evidence"])
    named = set(map(int, re.findall(rf"\b{program.name}[(:](\d+)", f"{evidence} {finding['cause']} {finding['fix']}")))
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    called = set(re.findall(rf"\b{program.name}(?:\(\?\))?: (\w+)", f"{evidence} {finding['cause']} {finding['fix']}"))
    named |= {one.lineno for one in functions if one.name in called}  # open when recording began: without a line

    def holder(line: int) -> int:
        """Return the line of the innermost function around a line; outside of functions, the line itself."""
        spans = ((min([f.lineno, *(d.lineno for d in f.decorator_list)]), f.end_lineno or f.lineno) for f in functions)
        return max((start for start, end in spans if start <= line <= end), default=line)

    return not {holder(line) for line in named}.isdisjoint({holder(line) for line in planted})


def judge(report: dict[str, Any], program: Path) -> Verdict:
    """Compare a report with what was planted."""
    named = [one for one in asking(report["findings"])[:FIRST] if names_the_cause(one, program)]
    if not named:
        return Verdict(False, False, None)
    line = any(names_the_line(one, program) for one in named)
    return Verdict(True, line, named[0]["time_us"] / report["window"]["duration_us"])


def savings(program: Path, runs: int, clock: str) -> Iterator[float]:
    """Yield the share of a program's time that mending saves, as often as asked, each from one run after the other."""
    for _ in range(runs):
        faulty, mended = (float(run("-c", TIMED, clock, program, *words).split()[-1]) for words in ([], ["mended"]))
        yield 1 - mended / faulty


def row(program: Path, runs: int, clock: str, folder: Path) -> tuple[str, bool]:
    """Return a program's row, and whether all in it is right."""
    report = profile(program, folder)
    found = asking(report["findings"])
    first, second = [*(f"{one['code']} {one['slug']} ({one['severity']})" for one in found), "-", "-"][:2]
    if program.parent.name == "healthy":
        return f"{program.stem:26} {first:38} {second:38} {'no' if found else 'yes':>5}", not found
    verdict = judge(report, program)
    saved = sorted(savings(program, runs, clock))
    saving, noise = statistics.median(saved), saved[-1] - saved[0]
    wrong_results = verdict.stake == 0  # mending them saves no time
    fits = wrong_results or (verdict.stake is not None and LEAST * saving <= verdict.stake <= MOST * saving + noise)
    words = ["yes" if right else "no" for right in (verdict.cause, verdict.line)]
    stake = "-" if verdict.stake is None else f"{verdict.stake:.0%}"
    columns = f"{words[0]:>5} {words[1]:>5} {stake:>6} {saving:>6.0%} +-{noise:.0%} {'' if fits else 'off'}"
    return f"{program.stem:26} {first:38} {second:38} {columns}", verdict.cause and verdict.line and fits


def main() -> int:
    """Judge all programs, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="names without .py; all if left out")
    parser.add_argument("--runs", type=int, default=3, help="how often a program and its twin are timed (default: 3)")
    parser.add_argument("--cpu", action="store_true", help="time processors, for a busy machine; waits don't count")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error(f"--runs is {options.runs}; at least 1 is needed")
    programs = [one for kind in ("faulty", "healthy") for one in sorted((PROGRAMS / kind).glob("*.py"))]
    if unknown := set(options.programs) - {one.stem for one in programs}:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    print(f"{'program':26} {'first finding':38} {'second finding':38} cause  line  stake saving")
    right = True
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            if not options.programs or program.stem in options.programs:
                text, fine = row(program, options.runs, "cpu" if options.cpu else "wall", Path(folder) / program.stem)
                print(text, flush=True)
                right &= fine
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
