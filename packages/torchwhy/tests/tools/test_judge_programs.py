"""`tools/judge_programs.py`: a finding is right where it names what was planted, and states what mending saves."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from judge_programs import PROGRAMS, Verdict, expected, judge, names_the_line

PROGRAM = '''"""Waits."""

EXPECTED = r"naps: .*time\\.sleep"


def nap():
    if True:
        sleep()  # planted


def main():
    nap()
'''


def finding(severity="high", slug="naps", fix="Drop time.sleep.", place="nap.py(6): nap", us=30.0):
    return {
        "slug": slug, "severity": severity, "title": "It\nsleeps", "cause": "", "fix": fix, "time_us": us,
        "evidence": [{"own_code": place}, {"own_code": None}],
    }  # fmt: skip


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "nap.py"
    path.write_text(PROGRAM)
    return path


def verdict(program, *findings):
    return judge({"findings": list(findings), "window": {"duration_us": 100.0}}, program)


def test_the_first_three_findings_that_ask_for_a_change_count(program):
    other = finding(slug="gaps")
    assert verdict(program, other, finding("info"), other, finding()) == Verdict(True, True, 0.3)
    assert verdict(program, other, other, other, finding()) == Verdict(False, False, None)
    assert verdict(program, finding("info")) == Verdict(False, False, None)
    assert verdict(program, finding(fix="Drop it.")) == Verdict(False, False, None)


def test_the_stake_is_that_of_the_first_finding_that_names_the_cause(program):
    assert verdict(program, finding(us=20.0), finding(us=60.0)).stake == 0.2


@pytest.mark.parametrize(
    ("place", "right"),
    [
        ("nap.py(6): nap", True),  # traces name a function's first line, or where it was when recording began
        ("nap.py(7): nap", True),
        ("nap.py(8): nap", True),
        ("nap.py(11): main", False),
        ("snap.py(8): nap", False),
        ("nap.py(1): <module>", False),
    ],
)
def test_a_line_is_right_in_the_function_that_holds_a_planted_one(program, place, right):
    assert names_the_line(finding(place=place), program) == right


@pytest.mark.parametrize("program", sorted((PROGRAMS / "faulty").glob("*.py")), ids=lambda path: path.stem)
def test_each_program_says_what_is_planted_and_where_and_has_a_mended_twin(program):
    re.compile(expected(program))
    text = program.read_text()
    assert re.search("# planted$", text, re.MULTILINE)
    assert text.count("MENDED") > 1
