"""The time at stake of every rule, on every story: what the fix can save at most."""

import copy
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.random_stories import build, stories
from tests.rules.cases import FIRES, SILENT
from tests.traces import Story
from torchwhy import load
from torchwhy.finding import CONFIDENCES, SEVERITIES, Finding, severity_of
from torchwhy.present.findings import finding_item
from torchwhy.report.trace_report import reported
from torchwhy.rules.catalogue import find_rule
from torchwhy.rules.diagnose import by_weight, diagnose, turn
from torchwhy.rules.stake import ordinary_time
from torchwhy.trace.derived.idle import idle_time
from torchwhy.trace.model.intervals import Intervals, Window

EVERY = sorted({function for _, function in (*FIRES, *SILENT)}, key=lambda one: (one.__module__, one.__name__))
RECORDED = sorted((Path(__file__).parents[1] / "recorded").glob("*.json.gz"))
WRONG_RESULTS = {"optimizer-each-step"}
"""Rules whose findings are as severe as what they spoil, whatever time that takes."""
NS = 1e-3
"""A nanosecond: traces count in whole ones."""


def wrong(trace):
    """Return a sentence for each finding that is out of its turn, or has a stake or severity its rule may not give."""
    idle = trace.derived(idle_time).total / 1000
    findings = diagnose(trace).findings
    turns = [turn(finding) for finding in findings]
    if turns != sorted(turns):
        yield f"turns are {turns}"
    for finding in findings:
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
        lenient = finding.slug in WRONG_RESULTS or not stake
        if not lenient and SEVERITIES.index(finding.severity) > SEVERITIES.index(severity_of(said(finding))):
            yield f"{named} is {finding.severity}, but the screen says {said(finding):.1%}"
        if finding.ranked:
            ordinary = ordinary_time(trace, finding.stretches)
            if finding.severity != severity_of(1000 * stake / ordinary if ordinary else 0.0, finding.most):
                yield f"{named} of {ordinary / 1000} us is {finding.severity}"


def said(finding):
    """The share of the time at stake that a reader sees."""
    text = finding_item(reported(finding), 0).stake
    return min(float(re.search(r"([\d.]+)%", text)[1]) / 100 + 5e-3, 1) if ">99" not in text else 1


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
    trace = story().trace()
    found = [*wrong(trace), *wrong_while_a_device_computes(story())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_stakes_of_recorded_traces(path):
    found = list(wrong(load(path)))
    assert not found, "\n".join(found)


HOSTS = [(slug, story) for slug, story in FIRES if find_rule(slug).on == "trace" and find_rule(slug).frees == "host"]


@pytest.mark.parametrize(("slug", "story"), HOSTS, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_a_busy_machine_lowers_what_is_said_of_the_host_first(slug, story):
    """Waits for a processor lie somewhere in the host's time: what is said of it is less sure, and less severe."""
    idle, busy = story(), story()
    idle.top.pop("torchwhy_processor_time", None)
    noted = busy.top.get("torchwhy_processor_time", {})
    rule = find_rule(slug)
    before = [one for one in rule.check(idle.trace()) if one.ranked]
    for waited in (0.1, 0.3, 0.95):
        busy.top["torchwhy_processor_time"] = {"cores": 2, **noted, "wall_us": 1e6, "waited_us": waited * 1e6}
        for one in rule.check(busy.trace()):
            same = [other for other in before if other.title == one.title and one.ranked]
            for other in same:
                lower = max(CONFIDENCES.index(other.confidence) - 1, 0)
                assert one.confidence == CONFIDENCES[lower]
                assert SEVERITIES.index(one.severity) <= SEVERITIES.index(other.severity)
            assert waited < 0.95 or not one.ranked or SEVERITIES.index(one.severity) <= SEVERITIES.index("low")


def test_rules_about_the_host_are_found():
    assert len({slug for slug, _ in HOSTS}) >= 30


def finding(**fields):
    window = Window("the whole trace", 0, 1_000_000)
    return Finding(
        **{"title": "", "confidence": "high", "window": window, "evidence": (), "cause": "", "fix": ""} | fields
    )


def test_what_an_expert_would_do_first_comes_first():
    """The largest time at stake is no reason to warm up before graph breaks of every step are mended."""
    doubt = finding(title="the trace is wrong", severity="high")
    every, sure = finding(title="every step", time_us=90, confidence="low"), finding(title="surer", time_us=90)
    once, known = finding(title="once", time_us=500, once=True), finding(title="good to know", severity="info")
    assert by_weight([known, once, every, sure, doubt]) == (doubt, sure, every, once, known)


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


@pytest.mark.parametrize("begins", [-2, 0, 4])
def test_a_slow_launch_is_no_wait_for_room_though_its_work_begins_before_it_returns(begins):
    """30 ms in one launch of an idle device: its work begins some us before, when, or after the call returns."""
    story = Story()
    for k in range(20):
        story.op("aten::mm", 100 * k, 40)
        story.kernel("gemm", 100 * k + 30, 20, launch_at=100 * k + 10)
    story.op("aten::mm", 3000, 30_100)
    story.kernel("another", 33_010 - begins, 20, launch_at=3010, launch_us=30_000)
    (finding,) = find_rule("launch-outliers").check(story.trace(), {})
    assert finding.time_us == pytest.approx(30_000, rel=0.01)


@pytest.mark.parametrize("stepped", [False, True])
def test_what_happens_once_is_said_to_in_recordings_with_and_without_steps(stepped):
    story = Story()
    if stepped:
        story.step(0, 0, 40_000)
    story.op("aten::mm", 0, 40)
    story.kernel("gemm", 30, 20, launch_at=10)
    story.op("aten::mm", 3000, 30_100)
    story.kernel("another", 33_010, 20, launch_at=3010, launch_us=30_000)
    trace = story.trace()
    (finding,) = find_rule("launch-outliers").check(trace, {})
    assert finding_item(reported(finding, trace), None).stake.endswith(", once only")


@pytest.mark.parametrize("us", [10, 900, 1500, 5900, 6100, 8000, 50_000])
def test_no_gap_is_left_out_beside_time_that_lasts_as_long(us):
    """What takes 30 s of 43 s is 69% of them, whatever gap of 10 s there is besides."""
    story = Story()
    for k in range(12):
        at = 1000 * k + (6000 if k > 5 else 0)  # one gap of six milliseconds
        story.op("aten::mm", at, 900)
        story.kernel("sgemm", at + 40, 900, launch_at=at + 20)
    story.op("aten::mm", 20_000, 50_000)
    trace = story.trace()
    start, whole = 20_000_000, trace.window.end - trace.window.start
    found = ordinary_time(trace, Intervals.union([start], [start + 1000 * us]))
    gap = whole - ordinary_time(trace, Intervals.union([start], [start + 1]))
    assert gap > 5_000_000
    assert found == (whole if 1000 * us >= gap else whole - gap)
