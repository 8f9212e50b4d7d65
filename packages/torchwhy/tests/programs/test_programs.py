"""Programs profiled for real: a planted fault is among the first three findings shown, and healthy programs get none.

Each program says in EXPECTED, a regular expression, which words name its fault: words of the finding's rule, title,
cause and fix. `tools/judge_programs.py` compares what a finding says is at stake with what mending saves. The default
run takes some of the programs; TORCHWHY_CASES=many takes all, and TORCHWHY_BUSY=1 runs them beside processes that keep
every processor busy, too. A recording is a sample of a few steps: two more have to confirm what the first one failed to
show.
"""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.consistency import contradictions

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from judge_programs import FIRST, PROGRAMS, asking, names_the_cause, profile

MANY = os.environ.get("TORCHWHY_CASES") == "many"
BUSY = os.environ.get("TORCHWHY_BUSY") == "1"
RECORDINGS = 3
FEW = ("without_no_grad",)
"""What no noise can hide: other tests run at the same time."""

JUSTIFIED = {}
"""Findings of medium severity or more that a healthy program deserves: program and slug, and why."""


def programs(kind):
    return [path for path in sorted((PROGRAMS / kind).glob("*.py")) if MANY or path.stem in FEW]


@contextmanager
def spinning(count):
    """Keep `count` processors busy."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.fixture(params=["alone", "beside others"] if BUSY else ["alone"])
def profiled(request, tmp_path):
    """Profile a program as a user would, with default options, and read its findings."""

    def run(program, folder):
        with spinning(os.cpu_count() if request.param == "beside others" else 0):
            report = profile(program, folder)
        assert not (found := contradictions(report)), "\n".join(found)
        return report

    return lambda program: (run(program, tmp_path / f"run{i}") for i in range(RECORDINGS))


def told(findings):
    """Findings in a few words, for the message of a failed test."""
    return "\n".join(f"{one['code']} {one['slug']}, {one['severity']}: {one['title']}" for one in findings)


def complaint_about_a_fault(findings, program):
    """Why findings don't name a planted fault, or ""."""
    first = asking(findings)[:FIRST]
    return "" if any(names_the_cause(finding, program) for finding in first) else f"not found:\n{told(first)}"


def complaint_about_a_healthy_program(findings, name):
    """What is found in a program that has nothing wrong, or ""."""
    false = [one for one in findings if one["severity"] in ("medium", "high") and (name, one["slug"]) not in JUSTIFIED]
    return told(false)


@pytest.mark.parametrize("program", programs("faulty"), ids=lambda path: path.stem)
def test_a_planted_fault_is_among_the_first_three_findings(profiled, program):
    complaints = []
    for report in profiled(program):
        complaints.append(complaint_about_a_fault(report["findings"], program))
        if not complaints[-1]:
            return
    pytest.fail("\n".join(complaints))


@pytest.mark.parametrize("program", programs("healthy"), ids=lambda path: path.stem)
def test_nothing_is_found_in_a_healthy_program(profiled, program):
    complaints = []
    for report in profiled(program):
        complaints.append(complaint_about_a_healthy_program(report["findings"], program.stem))
        if not complaints[-1]:
            return
    pytest.fail("\n".join(complaints))
