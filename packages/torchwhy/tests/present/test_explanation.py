"""The screen, compared with kept ones; TORCHWHY_WRITE_SNAPSHOTS=1 keeps what comes out now."""

import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.analysis.programs import PROGRAMS, computing, hint, report_on, training, waiting
from tests.present.documents import shown
from torchwhy.analysis.recording import DeviceName
from torchwhy.analysis.repairs import Repair
from torchwhy.finding import Evidence
from torchwhy.present.style import Style
from torchwhy.present.text import SCREEN, WITH_FIX
from torchwhy.trace.model.intervals import Window

SNAPSHOTS = Path(__file__).parent / "snapshots"
FANCY = Style(width=80, unicode=True)


def screens():
    for name, program in PROGRAMS.items():
        yield name, shown(report_on(program()), style=FANCY)
    muted = {"B10": "A5 graph-replay-unrecorded: a graph's nodes are not recorded"}
    full = report_on(training(load=480), waiting, lambda trace: waiting(trace, confidence="low", linked=False), hint)
    yield "findings", shown(full, style=FANCY)
    yield "findings-verbose", shown(full, style=FANCY, verbose=True)
    yield "findings-ascii", shown(full, style=Style(width=80))
    yield "muted", shown(report_on(computing(), muted=muted, ran=("B9", "B10")), style=FANCY)


SCREENS = dict(screens())


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name):
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("TORCHWHY_WRITE_SNAPSHOTS"):
        path.write_text(SCREENS[name], encoding="utf-8")
    assert SCREENS[name] == path.read_text(encoding="utf-8")


def test_every_snapshot_is_of_something():
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == set(SCREENS)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_fit(name, width):
    drawn = shown(report_on(PROGRAMS[name](), waiting), style=Style(width=width, unicode=True), verbose=True)
    table = re.compile(r"[█▏▎▍▌▋▊▉]|^  |per step|a step, on")
    assert max(len(line) for line in drawn.splitlines() if width >= 80 or not table.search(line)) <= width


def test_ascii_where_the_terminal_has_no_more():
    assert SCREENS["findings-ascii"].isascii()


def test_colour_only_where_asked():
    report = report_on(training(load=480), waiting, muted={"B10": "no reason"})
    repairs = (Repair("stray_commas", 3, "3 commas too many, " * 6),)
    report = replace(report, trace=replace(report.trace, repairs=repairs))
    assert "\x1b" not in shown(report, style=FANCY)
    coloured = shown(report, style=Style(width=80, colour=True, unicode=True))
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == shown(report, style=FANCY)
    assert coloured != shown(report, style=FANCY)


def test_names_cannot_reach_the_terminal():
    evil = "evil\x1b[2J\x07name"
    report = report_on(
        training(), lambda trace: waiting(trace, title=evil, cause=evil, fix=evil, slug="x"), name=f"{evil}.json"
    )
    report = replace(report, trace=replace(report.trace, devices=(DeviceName(0, evil),)))
    for style in (FANCY, Style(width=80), Style(width=80, colour=True, unicode=True)):
        drawn = shown(report, style=style, verbose=True)
        assert "\x1b[2J" not in drawn
        assert "\x07" not in drawn


def test_findings_are_told_in_full_as_long_as_the_screen_has_room():
    many = [lambda trace, n=n: waiting(trace, title=f"finding {n}") for n in range(WITH_FIX + 3)]
    report = report_on(training(), *many)
    drawn, everything = shown(report, style=FANCY), shown(report, style=FANCY, verbose=True)
    assert 1 <= drawn.count("Why  ") < WITH_FIX
    assert 1 < drawn.count("Fix  ") <= WITH_FIX
    assert everything.count("Why  ") == everything.count("Fix  ") == WITH_FIX + 3
    assert f"finding {WITH_FIX + 2}" in drawn
    assert len(drawn.splitlines()) <= SCREEN
    assert "-v shows all evidence." in drawn
    assert drawn.count("At stake is the most that the fix can save; findings overlap") == 1


def test_a_long_finding_leaves_room_for_the_screen():
    long = " ".join(["word"] * 40)
    many = [
        lambda trace, n=n: waiting(
            trace, title=f"finding {n} {long}", cause=long, evidence=(Evidence("a", 1, 1.0, 0.0, long),) * 3
        )
        for n in range(9)
    ]
    drawn = shown(report_on(training(), *many), style=FANCY)
    assert len(drawn.splitlines()) <= SCREEN
    assert "findings more" in drawn
    assert "and 2 more" in drawn


def test_nothing_is_explained_where_nothing_is_at_stake():
    assert "At stake" not in SCREENS["compute-bound"]


def test_few_findings_are_told_in_full():
    two = [lambda trace, n=n: waiting(trace, title=f"finding {n}") for n in range(2)]
    drawn = shown(report_on(training(), *two), style=FANCY)
    assert drawn.count("Why  ") == 2
    assert "all evidence" not in drawn


def test_information_is_hidden_but_counted():
    report = report_on(training(), hint)
    assert "-v shows 1 thing good to know." in shown(report, style=FANCY)
    assert "The DataLoader has no workers" in shown(report, style=FANCY, verbose=True)
    assert "The DataLoader has no workers" not in shown(report, style=FANCY)


def test_a_script_has_no_line_where_recording_began():
    wait = lambda trace: waiting(trace, evidence=(Evidence("a", 1, 1.0, 0.0, "", ("train.py(57): <module>",)),))  # noqa: E731
    assert "at train.py: <module>" in shown(report_on(training(), wait), style=FANCY)


def test_nothing_is_at_stake_where_something_is_only_told():
    report = report_on(training(), lambda trace: waiting(trace, severity="info"))
    assert "B9 dataloader-wait, info: 1.92 ms of 4.00 ms (48%)" in shown(report, style=FANCY, verbose=True)


def test_the_line_to_change_is_shown():
    assert "at train.py(34): main" in SCREENS["findings"]
    assert "dataloader.py(708)" not in SCREENS["findings"]


def test_an_inferred_cause_is_called_so():
    assert SCREENS["findings"].count("Why  Probably: ") == 1


def test_idle_time_is_told_twice_where_the_windows_differ():
    story = training(steps=1, load=10, work=400)
    assert "In the whole recording" not in shown(report_on(story), style=FANCY), "the work has no gap"
    story.kernel("gemm", 990, 10, launch_at=980)
    drawn = " ".join(shown(report_on(story), style=FANCY).split())
    assert (
        "In the whole recording, from its first to its last work (450 us), the GPU is idle 8.9% of the time." in drawn
    )


def test_a_stake_in_another_window_says_in_which():
    own = report_on(training(), waiting)
    assert " of 4.00 ms at stake" in shown(own, style=FANCY)
    window = Window("the first launch to the last work", 0, 3_000_000)
    other = shown(report_on(training(), lambda trace: waiting(trace, window=window)), style=FANCY)
    assert " of 3.00 ms (the first launch to the last work) at stake" in " ".join(other.split())


def test_no_advice_on_a_healthy_trace():
    assert "2 rules looked and found nothing to change." in SCREENS["compute-bound"]
    assert "Fix" not in SCREENS["compute-bound"]


def test_what_matters_little_is_told_in_short():
    report = report_on(training(), lambda trace: waiting(trace, severity="low", time_us=3.0))
    assert "Why" not in shown(report, style=FANCY)
    assert "Fix  Give the DataLoader" in shown(report, style=FANCY)
    assert "Why" in shown(report, style=FANCY, verbose=True)
