"""What findings say of their evidence is true of its rows, over all stories that make a rule fire."""

import re
from functools import cache

import numpy as np
import pytest

from tests.rules.cases import FIRES
from torchwhy.rules.catalogue import find_rule
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.meaning.kinds import Kind

STORIES = sorted({story for _, story in FIRES}, key=lambda story: (story.__module__, story.__name__))

NVIDIAS = re.compile(
    r"CUDA_MODULE_LOADING|[Tt]ensor cores?|nvidia-smi(?!.*rocm-smi)|\bncu\b|Nsight(?!.*rocprof)|cuBLAS|NVLink"
)
"""Names of things that a machine with another maker's devices doesn't have."""


@cache
def found(story):
    trace = story().trace()
    return trace, diagnose(trace).findings


def on_amd(story):
    """The same program on a device of AMD."""
    made = story()
    for device in made.top["deviceProperties"]:
        device["name"] = "AMD Instinct MI300X"
    for event in made.events:
        event["name"] = re.sub("^cuda(?=[A-Z])", "hip", event["name"])
    return made


def name(story):
    return story.__name__


@pytest.mark.parametrize("story", STORIES, ids=name)
def test_a_time_that_is_not_all_of_its_rows_says_what_it_is(story):
    trace, findings = found(story)
    for finding in findings:
        for one in finding.evidence:
            if one.time_us is None or not len(one.rows):
                continue
            whole = float(trace.events.dur[one.rows].sum()) / 1000
            assert one.note or one.time_us == pytest.approx(whole, abs=1e-3), (finding.code, one.name)


@pytest.mark.parametrize("story", STORIES, ids=name)
def test_evidence_is_called_upon_only_where_there_is_some(story):
    for finding in found(story)[1]:
        if "evidence" in finding.cause:
            assert any(len(one.rows) or one.stack for one in finding.evidence), finding.code


@pytest.mark.parametrize("story", STORIES, ids=name)
def test_python_between_operators_is_no_longer_than_the_frames_without_them(story):
    trace, findings = found(story)
    operators = trace.events.times_of(trace.events.rows(Kind.OPERATOR))
    for finding in findings:
        for one in finding.evidence:
            if one.note == "Python between operators":
                free = (trace.events.times_of(one.rows) - operators).total / 1000
                assert one.time_us <= free + 1e-3, (finding.code, one.name)


@pytest.mark.parametrize("story", STORIES, ids=name)
def test_one_kernel_is_one(story):
    trace, findings = found(story)
    for finding in findings:
        if finding.title.startswith("One kernel"):
            rows = np.concatenate([one.rows for one in finding.evidence])
            assert len(np.unique(trace.events.name[rows])) == 1


@pytest.mark.parametrize("story", STORIES, ids=name)
def test_advice_names_nothing_of_another_maker(story):
    trace = on_amd(story).trace()
    if trace.info.vendor != "amd":
        pytest.skip("no device")
    for finding in diagnose(trace).findings:
        assert not NVIDIAS.search(finding.fix), (finding.code, finding.fix)


DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


@pytest.mark.parametrize("story", STORIES, ids=name)
def test_a_device_whose_work_is_missing_is_not_taken_for_a_processor(story):
    """Nothing is known of how long its work takes, nor is the host's time what the program needs."""
    made = story()
    made.events = [event for event in made.events if event["cat"] not in DEVICE_WORK]
    trace = made.trace()
    if not trace.derived(recorded).worked:
        pytest.skip("nothing tells of a device")
    for finding in diagnose(trace).findings:
        assert "on the CPU" not in finding.title, (finding.code, finding.title)
        if find_rule(finding.code).frees == "device":
            assert finding.time_us == 0, (finding.code, finding.title)
