"""The screen, compared with kept ones; TORCHFX_WRITE_SNAPSHOTS=1 keeps what comes out now."""

import os
import re
from pathlib import Path

import pytest

from profiler.report.programs import PROGRAMS, computing, hint, report_on, training, waiting
from torchfx.profiler.report import Style
from torchfx.profiler.report.text import text
from torchfx.profiler.report.told import SHOWN

SNAPSHOTS = Path(__file__).parent / "snapshots"
FANCY = Style(width=80, unicode=True)


def screens():
    for name, program in PROGRAMS.items():
        yield name, text(report_on(program()), FANCY)
    muted = {"B10": "A5 graph-replay-unrecorded: a graph's nodes are not recorded"}
    full = report_on(training(load=480), waiting, lambda trace: waiting(trace, confidence="low", linked=False), hint)
    yield "findings", text(full, FANCY)
    yield "findings-verbose", text(full, FANCY, verbose=True)
    yield "findings-ascii", text(full, Style(width=80))
    yield "muted", text(report_on(computing(), muted=muted, ran=("B9", "B10")), FANCY)


SCREENS = dict(screens())


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name):
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("TORCHFX_WRITE_SNAPSHOTS"):
        path.write_text(SCREENS[name] + "\n", encoding="utf-8")
    assert SCREENS[name] + "\n" == path.read_text(encoding="utf-8")


def test_every_snapshot_is_of_something():
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == set(SCREENS)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_fit(name, width):
    shown = text(report_on(PROGRAMS[name](), waiting), Style(width=width, unicode=True), verbose=True)
    table = re.compile(r"[█▏▎▍▌▋▊▉]|^  |per step|a step, on")
    assert max(len(line) for line in shown.splitlines() if width >= 80 or not table.search(line)) <= width


def test_ascii_where_the_terminal_has_no_more():
    assert SCREENS["findings-ascii"].isascii()


def test_colour_only_where_asked():
    report = report_on(training(load=480), waiting, muted={"B10": "no reason"})
    report["trace"]["repairs"] = [{"kind": "stray_commas", "count": 3, "sentence": "3 commas too many, " * 6}]
    assert "\x1b" not in text(report, FANCY)
    coloured = text(report, Style(width=80, colour=True, unicode=True))
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == text(report, FANCY)
    assert coloured != text(report, FANCY)


def test_names_cannot_reach_the_terminal():
    evil = "evil\x1b[2J\x07name"
    report = report_on(
        training(), lambda trace: waiting(trace, title=evil, cause=evil, fix=evil, slug="x"), name=f"{evil}.json"
    )
    report["trace"]["devices"][0]["name"] = evil
    for style in (FANCY, Style(width=80), Style(width=80, colour=True, unicode=True)):
        shown = text(report, style, verbose=True)
        assert "\x1b[2J" not in shown
        assert "\x07" not in shown


def test_only_some_findings_are_told_in_full():
    many = [lambda trace, n=n: waiting(trace, title=f"finding {n}") for n in range(SHOWN + 3)]
    report = report_on(training(), *many)
    shown, everything = text(report, FANCY), text(report, FANCY, verbose=True)
    assert shown.count("Fix  ") == SHOWN
    assert everything.count("Fix  ") == SHOWN + 3
    assert f"finding {SHOWN + 2}" in shown
    assert "3 findings are told by the title only: -v shows all." in shown
    assert "what they would save doesn't add up" in shown


def test_information_is_hidden_but_counted():
    report = report_on(training(), hint)
    assert "1 more thing is good to know: -v shows all." in text(report, FANCY)
    assert "The DataLoader has no workers" in text(report, FANCY, verbose=True)
    assert "The DataLoader has no workers" not in text(report, FANCY)


def test_nothing_is_at_stake_where_something_is_only_told():
    report = report_on(training(), lambda trace: waiting(trace, severity="info"))
    assert "B9 dataloader-wait, info: 1.92 ms of 4.00 ms (48%)" in text(report, FANCY, verbose=True)


def test_the_line_to_change_is_shown():
    assert "at train.py(34): main" in SCREENS["findings"]
    assert "dataloader.py(708)" not in SCREENS["findings"]


def test_an_inferred_cause_is_called_so():
    assert SCREENS["findings"].count("Why  Probably: ") == 1


def test_idle_time_is_told_twice_where_the_windows_differ():
    story = training(steps=1, load=10, work=400)
    assert "From its first to its last work, 400 us, the GPU is idle for 0%" in text(report_on(story), FANCY)


def test_no_advice_on_a_healthy_trace():
    assert "2 rules looked and found nothing that asks to be changed." in SCREENS["compute-bound"]
    assert "Fix" not in SCREENS["compute-bound"]


def test_what_matters_little_is_told_in_short():
    report = report_on(training(), lambda trace: waiting(trace, severity="low", time_us=3.0))
    assert "Why" not in text(report, FANCY)
    assert "Fix  Give the DataLoader" in text(report, FANCY)
    assert "Why" in text(report, FANCY, verbose=True)
