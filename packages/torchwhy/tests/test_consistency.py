"""Reports on random programs: shares within the window, parts that make it up, no two sentences that disagree."""

import json
import random
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from typer.testing import CliRunner

from tests.consistency import amounts, contradictions, uneven_amounts
from tests.random_stories import build, stories
from torchwhy.cli.app import app
from torchwhy.present.formats import FORMATS

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from check_trace_numbers import differences

PLACES = ("start_us", "at_us", "starts_us", "step_starts_us", "bytes")

CASES = min(settings().max_examples, 25)
"""Each is a whole explanation, or several."""

suppressed = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


def explained(story, folder, form="json"):
    path = story.write(folder / "trace.json")
    ran = CliRunner().invoke(app, ["explain", str(path), "--format", form, "-v"])
    assert ran.exit_code == 0, (ran.output, ran.exception)
    return ran.stdout


@settings(max_examples=CASES, suppress_health_check=suppressed)
@given(stories)
def test_no_report_contradicts_itself(tmp_path, recipe):
    found = contradictions(json.loads(explained(build(recipe), tmp_path)))
    assert not found, "\n".join(found)


@settings(max_examples=min(CASES, 8), suppress_health_check=suppressed)
@given(stories)
def test_the_same_trace_gets_the_same_report_in_every_format(tmp_path, recipe):
    story = build(recipe)
    for form in FORMATS:
        assert explained(story, tmp_path, form) == explained(story, tmp_path, form)


@settings(max_examples=CASES, suppress_health_check=suppressed)
@given(stories)
def test_a_share_follows_from_the_two_times_beside_it(tmp_path, recipe):
    assert uneven_amounts(explained(build(recipe), tmp_path, "markdown")) == []


def test_a_share_that_does_not_follow_is_seen():
    text = "for 27% of the 6 steps (224 ms of 847 ms); 103 ms of 847 ms (ProfilerStep) at stake (12%)"
    assert len([*amounts(text)]) == 2
    assert uneven_amounts(text) == ["27% of the 6 steps (224 ms of 847 ms)"]


@settings(max_examples=CASES, suppress_health_check=suppressed)
@given(stories)
def test_numbers_are_those_of_plain_arithmetic(tmp_path, recipe):
    assert differences(build(recipe).write(tmp_path / "trace.json")) == []


@settings(max_examples=CASES, suppress_health_check=suppressed)
@given(stories)
def test_a_report_depends_on_neither_the_order_of_events_nor_the_clock(tmp_path, recipe):
    def without_places(report):
        """Everything but where in the file, and when by its clock."""
        if isinstance(report, dict):
            return {key: without_places(value) for key, value in report.items() if key not in PLACES}
        return [without_places(item) for item in report] if isinstance(report, list) else report

    story = build(recipe)
    plain = without_places(json.loads(explained(story, tmp_path)))
    random.Random(0).shuffle(story.events)
    assert without_places(json.loads(explained(story, tmp_path))) == plain
    for event in story.events:
        event["ts"] += 4096  # a power of two: durations are exact
    assert without_places(json.loads(explained(story, tmp_path))) == plain
