"""A finding's id stays: whatever the order of a file's events, the folders of the program, or the machine."""

import copy
import random
import re
from functools import cache

import pytest

from tests.rules.cases import FIRES
from tests.traces import Story, a_finding
from torchwhy.finding import Evidence, identified
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.meaning.frames import code_of
from torchwhy.trace.model.intervals import Window

STORIES = list(dict.fromkeys(story for _, story in FIRES))
WINDOW = Window("all", 0, 1000)


@cache
def ids(story):
    return {finding.id for finding in diagnose(story().trace()).findings}


def ids_of(story):
    return {finding.id for finding in diagnose(story.trace()).findings}


def moved(name):
    """A frame of the program as on a machine where it lies in another folder."""
    return f"/srv/work/{name}" if code_of(name) == "program" and not name.startswith("/") else name


def elsewhere(story):
    story = copy.deepcopy(story)
    for event in story.events:
        if event.get("cat") == "python_function":
            event["name"] = moved(event["name"])
    samples = story.top.get("torchwhy_stack_samples")
    if samples:
        samples["frames"] = [moved(name) for name in samples["frames"]]
    return story


def shuffled(story, seed):
    """The same events in another order, but for those of memory, whose order is that of the program."""
    story = copy.deepcopy(story)
    memory = iter([event for event in story.events if event["name"] == "[memory]"])
    random.Random(seed).shuffle(story.events)
    story.events = [next(memory) if event["name"] == "[memory]" else event for event in story.events]
    return story


SOME = [
    pytest.param(story, id=story.__name__, marks=[] if i % 12 == 0 else [pytest.mark.many])
    for i, story in enumerate(STORIES)
]


@pytest.mark.parametrize("story", SOME)
def test_the_order_of_events_and_the_folders_change_no_id(story):
    assert ids(story)
    if type(story()).text is Story.text:  # what is cut off, or broken, depends on the order
        assert ids_of(shuffled(story(), 1)) == ids(story)
    assert ids_of(elsewhere(story())) == ids(story)


@pytest.mark.parametrize("story", SOME)
def test_ids_tell_findings_apart(story):
    findings = diagnose(story().trace()).findings
    assert len({finding.id for finding in findings}) == len(findings)
    assert all(re.fullmatch(rf"{finding.code}-[0-9a-f]{{4}}(\.\d+)?", finding.id) for finding in findings)


def finding(name, start_us, code="B9", **changes):
    return a_finding(WINDOW, code=code, evidence=(Evidence(name, start_us=start_us),), **changes)


def test_the_later_of_two_alike_has_a_number():
    late, early, other = finding("gemm", 30.0), finding("gemm", 10.0), finding("gemm", 20.0, "B8")
    first, second, third = (one.id for one in identified((late, early, other)))
    assert first == f"{second}.2"
    assert third == second.replace("B9", "B8")
    assert identified(identified((late, early))) == identified((late, early))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("/home/me/net/train.py(34): step", "C:\\work\\train.py(71): step"),
        ("break at /home/me/net.py:33 in forward", "break at net.py:34 in forward"),
        ("/home/my own/net.py(33): forward", "net.py(33): forward"),
        ("ProfilerStep#5", "ProfilerStep#12"),
        ("triton_poi_fused_add_relu_3", "triton_poi_fused_add_relu_7"),
    ],
)
def test_what_changes_from_run_to_run_is_no_part_of_an_id(a, b):
    (first,), (second,) = identified([finding(a, 1.0)]), identified([finding(b, 2.0)])
    assert first.id == second.id
    assert first.id != identified([finding("aten::mm", 1.0)])[0].id


def test_a_finding_without_evidence_has_an_id():
    assert re.fullmatch(r"A1-[0-9a-f]{4}", identified([a_finding(WINDOW, code="A1")])[0].id)
