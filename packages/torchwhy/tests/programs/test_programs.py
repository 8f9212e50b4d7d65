"""Programs profiled for real: a planted fault is among the first three findings shown, and healthy programs get none.

Each program says in EXPECTED, a regular expression, which words name its fault: words of the finding's rule, title,
cause and fix. `tools/judge_programs.py` compares what a finding says is at stake with what mending saves. The default
run takes one program, TORCHWHY_CASES=many every fourth, as profiling one takes 7 to 20 s, TORCHWHY_PROGRAMS=all takes
all, and TORCHWHY_BUSY=1 runs them beside processes that keep every processor busy, too. A recording is a sample of a
few steps: two more have to confirm what the first one failed to show.
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

EVERY = 1 if os.environ.get("TORCHWHY_PROGRAMS") == "all" else 4 if os.environ.get("TORCHWHY_CASES") == "many" else None
BUSY = os.environ.get("TORCHWHY_BUSY") == "1"
RECORDINGS = 3
FEW = ("without_no_grad",)
"""What no noise can hide: other tests run at the same time."""

MISSED: dict[str, str] = {}
"""Programs whose fault is not found yet, or in which too much is found, and the facts in their traces that a rule could
go by. Whoever mends a rule takes its programs out."""

SOMETIMES = {
    "parametrization_uncached": "only frames show which weight is computed, and stacks are left out where they cost "
    "more than 5%: found in about half of the recordings",
}
"""Programs whose fault is found in some recordings, and what the others lack."""


def programs(kind):
    for i, path in enumerate(sorted((PROGRAMS / kind).glob("*.py"))):
        if path.stem in FEW or (EVERY and i % EVERY == 0):
            missed = path.stem in MISSED
            reason = MISSED.get(path.stem) or SOMETIMES.get(path.stem)
            marks = [pytest.mark.xfail(reason=reason, raises=AssertionError, strict=missed)] if reason else []
            yield pytest.param(path, 1 if missed else RECORDINGS, id=path.stem, marks=marks)


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

    def run(program, recordings):
        for i in range(recordings):
            with spinning(os.cpu_count() if request.param == "beside others" else 0):
                report = profile(program, tmp_path / f"run{i}")
            if found := contradictions(report):
                raise ValueError("\n".join(found))
            yield report["findings"]

    return run


def told(findings):
    """Findings in a few words, for the message of a failed test."""
    return "\n".join(f"{one['code']} {one['slug']}, {one['severity']}: {one['title']}" for one in findings)


@pytest.mark.parametrize(("program", "recordings"), [*programs("faulty")])
def test_a_planted_fault_is_among_the_first_three_findings(profiled, program, recordings):
    complaints = []
    for findings in profiled(program, recordings):
        first = asking(findings)[:FIRST]
        if any(names_the_cause(finding, program) for finding in first):
            return
        complaints.append(told(first))
    raise AssertionError("not found:\n" + "\n".join(complaints))


@pytest.mark.parametrize(("program", "recordings"), [*programs("healthy")])
def test_nothing_is_found_in_a_healthy_program(profiled, program, recordings):
    complaints = []
    for findings in profiled(program, recordings):
        false = [finding for finding in findings if finding["severity"] in ("medium", "high")]
        if not false:
            return
        complaints.append(told(false))
    raise AssertionError("\n".join(complaints))


def test_what_is_said_to_be_missed_exists():
    assert {*MISSED, *SOMETIMES} <= {path.stem for path in PROGRAMS.glob("*/*.py")}
