"""The time at stake of every rule, on every story: what the fix can save at most."""

import copy

import pytest
from hypothesis import HealthCheck, given, settings

from tests.random_stories import build, stories
from tests.rules.cases import FIRES, SILENT
from tests.traces import Story
from torchwhy.finding import severity_of
from torchwhy.rules.catalogue import find_rule
from torchwhy.rules.diagnose import diagnose
from torchwhy.rules.stake import ordinary_time
from torchwhy.trace.derived.idle import idle_time

EVERY = sorted({function for _, function in (*FIRES, *SILENT)}, key=lambda one: (one.__module__, one.__name__))
NS = 1e-3
"""A nanosecond: traces count in whole ones."""


def wrong(trace):
    """Return a sentence for each finding whose time at stake or severity is none that its rule may give."""
    idle = trace.derived(idle_time).total / 1000
    for finding in diagnose(trace).findings:
        stake, frees = finding.time_us, find_rule(finding.code).frees
        removed = finding.stretches.clip(trace.window.start, trace.window.end)
        exposed = (removed - trace.gpu.compute).total / 1000
        most = {"nothing": 0.0, "host": idle, "exposed": exposed} if trace.has_gpu else {"nothing": 0.0}
        named = f"{finding.code} {finding.slug} ({frees}): {stake} us"
        if not 0 <= stake <= finding.window.us + NS:
            yield f"{named} in a window of {finding.window.us} us"
        if len(removed) and stake > removed.total / 1000 + NS:
            yield f"{named} in stretches of {removed.total / 1000} us"
        if stake > most.get(frees, stake) + NS:
            yield f"{named}, at most {most[frees]} us"
        if finding.severity == "info" and stake:
            yield f"{named}, though nothing is to be done"
        if finding.ranked:
            ordinary = ordinary_time(trace, finding.stretches)
            if finding.severity != severity_of(1000 * stake / ordinary if ordinary else 0.0, finding.most):
                yield f"{named} of {ordinary / 1000} us is {finding.severity}"


def wrong_while_a_device_computes(story):
    """The same where a device computes all the time: no work of the host is worth anything, nor a copy."""
    hosts = [event for event in story.events if event["ph"] == "X"]
    if not hosts:
        return
    busy = copy.deepcopy(story)
    start, end = min(event["ts"] for event in hosts), max(event["ts"] + event["dur"] for event in hosts)
    busy.kernel("ampere_sgemm_128x64_nn", start - 10, end - start + 20, stream=99)
    trace = busy.trace()
    for finding in diagnose(trace).findings:
        if find_rule(finding.code).frees in ("host", "exposed") and finding.time_us:
            yield f"{finding.code} {finding.slug}: {finding.time_us} us at stake, though the device is never idle"


@pytest.mark.parametrize("story", EVERY, ids=lambda one: f"{one.__module__.rpartition('.')[2]}-{one.__name__}")
def test_stakes_are_what_the_fix_saves_at_most(story):
    found = [*wrong(story().trace()), *wrong_while_a_device_computes(story())]
    assert not found, "\n".join(found)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(stories)
def test_stakes_of_random_programs(recipe):
    story = build(recipe)
    found = [*wrong(story.trace()), *wrong_while_a_device_computes(story)]
    assert not found, "\n".join(found)


def test_room_in_a_queue_is_no_end_of_what_can_be_saved():
    """Every launch waits 60 us for room; of ten kernels of 100 us five could take an eighth of that."""
    story = Story()
    for k in range(40):
        name = "ampere_sgemm_128x64_nn" if k // 5 % 2 else "void at::native::add_kernel<float>(float*)"
        story.kernel(name, 1000 + 100 * k, 100, launch_at=100 * k, launch_us=60)
    (finding,) = (one for one in diagnose(story.trace()).findings if one.slug == "fp32-matmul-no-tc")
    assert finding.time_us == pytest.approx(20 * 100 * 7 / 8, rel=1e-3)
