"""Programs profiled for real: a planted fault is among the first three findings shown, and healthy programs get none.

Each program says in EXPECTED which rules may name its fault, with a pattern for the advice. The default run takes some
of the programs; TORCHWHY_CASES=many takes all, and TORCHWHY_BUSY=1 runs them beside processes that keep every processor
busy, too. A recording is a sample of a few steps: two more have to confirm what the first one failed to show.
"""

import ast
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.consistency import contradictions

FOLDER = Path(__file__).parent
MANY = os.environ.get("TORCHWHY_CASES") == "many"
BUSY = os.environ.get("TORCHWHY_BUSY") == "1"
RECORDINGS = 3
FEW = ("without_no_grad",)
"""What no noise can hide: other tests run at the same time."""

JUSTIFIED = {}
"""Findings of medium severity or more that a healthy program deserves: program and slug, and why."""


def programs(kind):
    return [path for path in sorted((FOLDER / kind).glob("*.py")) if MANY or path.stem in FEW]


def expected(program):
    """The program's EXPECTED, without running it."""
    for statement in ast.parse(program.read_text()).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "EXPECTED":
            return ast.literal_eval(statement.value)
    raise AssertionError(f"{program} says nothing of what is expected")


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
        command = [sys.executable, "-m", "torchwhy", "profile", "-o", folder, program]
        with spinning(os.cpu_count() if request.param == "beside others" else 0):
            ran = subprocess.run(
                list(map(str, command)),
                capture_output=True,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"},
                cwd=tmp_path,
                timeout=300,
                check=False,
            )
        assert ran.returncode == 0, ran.stderr
        report = json.loads((folder / "findings.json").read_text())
        assert not (found := contradictions(report)), "\n".join(found)
        return report

    return lambda program: (run(program, tmp_path / f"run{i}") for i in range(RECORDINGS))


def told(findings):
    """Findings in a few words, for the message of a failed test."""
    return "\n".join(f"{one['code']} {one['slug']}, {one['severity']}: {one['title']}" for one in findings)


def complaint_about_a_fault(findings, wanted):
    """Why findings don't name a planted fault, or ""."""
    first = [finding for finding in findings if finding["severity"] != "info"][:3]
    named = [finding for finding in first if finding["slug"] in wanted]
    if not named:
        return f"not found:\n{told(first)}"
    advice = [f"{finding['cause']} {finding['fix']}" for finding in named]
    fits = any(re.search(wanted[f["slug"]], words) for f, words in zip(named, advice, strict=True))
    return "" if fits else f"the advice doesn't fit:\n{advice}"


def complaint_about_a_healthy_program(findings, name):
    """What is found in a program that has nothing wrong, or ""."""
    false = [one for one in findings if one["severity"] in ("medium", "high") and (name, one["slug"]) not in JUSTIFIED]
    return told(false)


@pytest.mark.parametrize("program", programs("faulty"), ids=lambda path: path.stem)
def test_a_planted_fault_is_among_the_first_three_findings(profiled, program):
    complaints = []
    for report in profiled(program):
        complaints.append(complaint_about_a_fault(report["findings"], expected(program)))
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
