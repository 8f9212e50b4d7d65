"""The time of a whole run, before its steps and outside of the recording, is read, compared, and put into words."""

import pytest

from tests.analysis.programs import report_on
from tests.present.documents import shown
from tests.traces import Story, samples
from torchwhy.trace.derived.run_times import run_times

LOOP, METRIC = "train.py(20): loop", "train.py(31): metric"


def noted(**changes):
    """A run of 20 s: 8 s pass before its second step, and 10 s of the rest outside of the recording."""
    return {
        "seconds": 20.0,
        "steps": 1,
        "optimizer": True,
        "later_steps": 100,
        "start_up": {
            "seconds": 8.0,
            "lines": [
                ["train.py(9): read", "rows = parse(file)", 6.0, 0.0],
                ["train.py(1): <module>", "import torch", 1.5, 1.4],
            ],
        },
        "outside": {
            "seconds": 10.0,
            "lines": [
                [LOOP, "loss.backward()", 5.0, 0.0],
                [METRIC, "for t in thresholds:", 3.0, 0.0],
                ["train.py(32): metric", "hits += 1", 1.0, 0.0],
            ],
        },
        **changes,
    }


def story_of(written, seen=(LOOP,) * 30, unrecorded=()):
    """A recording with samples of these lines, and what the run's times say."""
    story = samples(Story(gpu=None), [(line,) for line in seen])
    story.top |= {"torchwhy_run_times": written, "torchwhy_unrecorded_steps": list(enumerate(unrecorded))}
    for at in story.steps(3, 200):
        story.op("aten::mm", at + 10, 150)
    return story


def recorded(*arguments, **keywords):
    return story_of(*arguments, **keywords).trace()


def outside(*arguments, **keywords):
    return [(line.line, line.time_us) for line in run_times(recorded(*arguments, **keywords)).outside.lines]


def test_the_times_are_those_of_the_run():
    run = run_times(recorded(noted()))
    assert (run.run_us, run.steps, run.optimizer, run.start_up.time_us) == (20e6, 1, True, 8e6)
    assert [(one.line, one.time_us, one.import_us) for one in run.start_up.lines][1] == (
        "train.py(1): <module>",
        1.5e6,
        1.4e6,
    )


def test_outside_are_the_functions_that_the_recording_has_less_of_with_all_of_their_lines():
    assert outside(noted()) == [(METRIC, 4e6)]
    assert outside(noted(), seen=[LOOP] * 26 + [METRIC] * 4) == [(METRIC, 4e6)]  # 13% of the recording, 40% outside
    assert outside(noted(), seen=[LOOP] * 24 + [METRIC] * 4 + ["train.py(32): metric"] * 2) == []


def test_outside_is_a_line_that_the_recording_has_less_of_than_the_rest_of_its_function():
    lines = [
        ["train.py(8): main", "step(model, batch)", 5.0, 0.0],
        ["train.py(9): main", "json.dump(history, f)", 5.0, 0.0],
    ]
    written = noted(outside={"seconds": 10.0, "lines": lines})
    seen = ["train.py(8): main"] * 34 + ["train.py(9): main"] * 6
    assert outside(written, seen=seen) == [("train.py(9): main", 5e6)]
    assert outside(written, seen=seen[24:]) == []  # too few to tell


def test_a_short_recording_is_no_measure_unless_usual_steps_explain_little():
    short = {"seen": [LOOP] * 3}
    assert outside(noted(), **short) == []
    assert outside(noted(), unrecorded=[80_000.0] * 9, **short) == []
    assert outside(noted(), unrecorded=[9_000.0] * 9, **short) == [(METRIC, 4e6)]
    assert outside(noted(outside={"seconds": 0.0, "lines": [[LOOP, "", 0.0, 0.0]]})) == []


@pytest.mark.parametrize(
    "written",
    [
        None,
        [],
        {},
        noted(seconds=0.0),
        noted(seconds=float("inf")),
        noted(seconds="20"),
        noted(steps=-1),
        noted(start_up={"seconds": 30.0, "lines": []}),
        noted(start_up={"seconds": -1.0, "lines": []}),
        noted(outside={"seconds": 10.0, "lines": [[LOOP, "", 5.0, 6.0]]}),
        noted(outside={"seconds": 10.0, "lines": [[LOOP, "", -5.0, 0.0]]}),
        noted(outside={"seconds": 10.0, "lines": [[LOOP, "", 5.0]]}),
    ],
)
def test_times_that_make_no_sense_are_none(written):
    assert run_times(recorded(written)) is None


def texts(written, verbose=False):
    return " ".join(shown(report_on(story_of(written)), verbose=verbose).split())


def test_a_long_start_up_is_stated_with_its_lines():
    text = texts(noted())
    assert "Start-up: 8.00 s of 20.0 s passed before step 2: 6.00 s in train.py(9): read (rows = parse(file))" in text
    assert "1.50 s with what it imports in train.py(1): <module> (import torch)" in text
    assert "Outside of the recording: 4.00 s in train.py(31): metric (for t in thresholds:), of 10.0 s." in text


def test_a_short_start_up_is_left_to_the_full_view():
    few = [["train.py(9): read", "", 1.8, 0.0]]
    little = noted(start_up={"seconds": 1.9, "lines": few}, outside={"seconds": 17.0, "lines": []}, steps=0)
    assert "Start-up" not in texts(little)
    assert "Start-up: 1.90 s of 20.0 s passed before the first step: 1.80 s in" in texts(little, verbose=True)
    assert "Start-up" not in texts(None, verbose=True)


def test_a_start_up_of_imports_is_left_to_the_full_view():
    lines = [["train.py(1): <module>", "import torch", 7.5, 7.3]]
    imports = noted(start_up={"seconds": 8.0, "lines": lines}, outside={"seconds": 10.0, "lines": []})
    assert "Start-up" not in texts(imports)
    assert "7.50 s with what it imports in train.py(1): <module>" in texts(imports, verbose=True)
