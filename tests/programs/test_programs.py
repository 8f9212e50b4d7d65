"""Programs profiled for real: a planted fault is among the first three findings shown, and healthy programs get none.

Each program says in EXPECTED which rules may name its fault, with a pattern for the advice. The default run takes some
of the programs; TORCHFX_CASES=many takes all, alone and beside processes that keep every processor busy.
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

from profiler.consistency import contradictions

FOLDER = Path(__file__).parent
MANY = os.environ.get("TORCHFX_CASES") == "many"
FEW = ("doubles", "without_no_grad", "spectra")

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


@pytest.fixture(params=["alone", "beside others"] if MANY else ["alone"])
def profiled(request, tmp_path):
    """Profile a program as a user would, with default options, and read its findings."""

    def run(program):
        command = [sys.executable, "-m", "torchfx", "profile", "-o", tmp_path / "run", program]
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
        report = json.loads((tmp_path / "run" / "findings.json").read_text())
        assert not (found := contradictions(report)), "\n".join(found)
        return report

    return run


def told(findings):
    """Findings in a few words, for the message of a failed test."""
    return "\n".join(f"{one['code']} {one['slug']}, {one['severity']}: {one['title']}" for one in findings)


@pytest.mark.parametrize("program", programs("faulty"), ids=lambda path: path.stem)
def test_a_planted_fault_is_among_the_first_three_findings(profiled, program):
    wanted = expected(program)
    first = [finding for finding in profiled(program)["findings"] if finding["severity"] != "info"][:3]
    named = [finding for finding in first if finding["slug"] in wanted]
    assert named, told(first)
    advice = [f"{finding['cause']} {finding['fix']}" for finding in named]
    assert any(re.search(wanted[f["slug"]], words) for f, words in zip(named, advice, strict=True)), advice


@pytest.mark.parametrize("program", programs("healthy"), ids=lambda path: path.stem)
def test_nothing_is_found_in_a_healthy_program(profiled, program):
    found = profiled(program)["findings"]
    false = [
        finding
        for finding in found
        if finding["severity"] in ("medium", "high") and (program.stem, finding["slug"]) not in JUSTIFIED
    ]
    assert not false, told(false)
