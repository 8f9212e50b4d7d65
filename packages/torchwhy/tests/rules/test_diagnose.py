"""Running many rules: some deny others their ground, some break off, and the rest are heard all the same."""

from types import SimpleNamespace

import pytest

from tests.rules.case_batches import loop as batches_without_workers
from tests.rules.cases import FIRES
from tests.traces import Story, a_finding
from torchwhy import plugins
from torchwhy.errors import ArgumentError
from torchwhy.loading.trace import load
from torchwhy.rules import catalogue
from torchwhy.rules.diagnose import diagnose
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule


def losing(lost, of=100):
    """Launches of which some have no kernel; the device waits for each of the others."""
    story = Story()
    story.step(1, 0, 100 * of)
    for k in range(of):
        story.op("aten::add", 100 * k, 60)
        if k < lost:
            story.call("cudaLaunchKernel", 100 * k + 20)
        else:
            story.kernel("add", 100 * k + 50, 5, launch_at=100 * k + 46)
    return story.trace()


def test_a_few_lost_kernels_are_told_and_deny_nothing():
    found = diagnose(losing(5))
    assert {"dropped-kernels", "overhead-bound"} <= {finding.slug for finding in found.findings}
    assert "B1" not in found.muted


def test_many_lost_kernels_deny_idle_time():
    found = diagnose(losing(20))
    assert "dropped-kernels" in {finding.slug for finding in found.findings}
    assert found.muted["B1"].startswith("A3 dropped-kernels: The kernels of 20 of 100 launches")


def test_inferred_rounds_are_named_as_in_the_heading():
    story = Story(gpu=None)
    for i in range(4):
        story.op("aten::mm", 100 * i, 40)
        story.op("aten::item", 100 * i + 50, 40)
    (one,) = [finding for finding in diagnose(story.trace()).findings if finding.slug == "steps-missing"]
    assert one.title == "No recorded steps; 4 rounds were inferred, from one aten::item to the next"


def test_recorded_stacks_make_waiting_for_launches_doubtful():
    def found(stacks):
        story = Story()
        story.step(1, 0, 10_000)
        for k in range(100):
            story.op("aten::add", 100 * k, 60)
            story.kernel("add", 100 * k + 50, 60, launch_at=100 * k + 46)
        if stacks:
            story.frame("train.py(3): main", 0, 10_000)
        (one,) = [finding for finding in diagnose(story.trace()).findings if finding.slug == "overhead-bound"]
        return one.severity, one.confidence

    assert found(stacks=False) == ("high", "medium")
    assert found(stacks=True) == ("medium", "low")


@rule("X1", "breaks-off", source="a test")
def breaks_off(trace, *, after=0):
    """Looks, finds something, and fails."""
    yield a_finding(trace.window)
    raise KeyError("Input\nDims")


@rule("X2", "finds", source="a test")
def finds(trace):
    """Finds something."""
    yield a_finding(trace.window)


@rule("X3", "invents-a-severity", source="a test")
def invents(trace):
    """Uses a word there isn't."""
    yield a_finding(trace.window, severity="terrible")


def test_a_rule_that_fails_is_named_and_the_others_are_heard():
    found = diagnose(losing(0), rules=(breaks_off, invents, finds))
    assert [finding.code for finding in found.findings] == ["X2"]
    assert found.failed == {
        "X1": "KeyError: 'Input\\nDims'",
        "X3": "ArgumentError: severity must be one of info, low, medium, high, got 'terrible'",
    }


def test_a_loaded_trace_warns_of_rules_that_fail(tmp_path, monkeypatch):
    story = Story(gpu=None)
    story.op("aten::mm", 0, 10)
    monkeypatch.setattr(catalogue, "all_rules", lambda: (breaks_off, finds))
    loaded = load(story.write(tmp_path / "story.json"))
    with pytest.warns(RuntimeWarning, match="rule X1 could not look: KeyError"):
        found = loaded.diagnose()
    assert [finding.code for finding in found] == ["X2"]


def test_a_threshold_that_does_not_exist_is_the_users_mistake():
    with pytest.raises(ArgumentError, match="threshold of breaks-off must be one of: after"):
        diagnose(losing(0), rules=(breaks_off,), thresholds={"X1": {"before": 3}})


def test_a_threshold_of_a_rule_that_does_not_exist_is_the_users_mistake():
    with pytest.raises(ArgumentError, match="no rule is called 'dataloder-wait'; nearest: B9 dataloader-wait"):
        diagnose(losing(0), rules=(finds,), thresholds={"dataloder-wait": {"share": 0.3}})


@pytest.mark.parametrize("labels", ["C1", "C1,", ("C1",), ["c1"], "pageable-copy"])
def test_a_label_may_be_a_text(labels):
    assert catalogue.matching(labels) == {"C1"}
    assert [rule.code for rule in catalogue.chosen_rules(labels)] == ["C1"]
    assert "C1" not in {rule.code for rule in catalogue.chosen_rules((), labels)}


def test_a_label_may_be_several():
    assert catalogue.matching("C1, B9") == {"C1", "B9"}


def test_rules_of_a_package_that_cannot_be_imported_are_named(monkeypatch):
    def load():
        raise ImportError("no module named house")

    def forget():
        plugins.offered.cache_clear()
        catalogue.all_rules.cache_clear()

    entry = SimpleNamespace(name="house", load=load)
    entries = SimpleNamespace(select=lambda group: [entry] if group == "torchwhy.rules" else [])
    monkeypatch.setattr(plugins, "_all", lambda: entries)
    forget()
    try:
        found = diagnose(losing(0))
    finally:
        forget()
    assert found.failed == {"house": "ImportError: no module named house"}
    assert "overhead-bound" in {finding.slug for finding in found.findings}


def test_the_programs_own_line_is_within_the_stack():
    story = Story()
    story.frame("train.py(3): main", 0, 100)
    for depth in range(40):
        story.frame(f"torch/nn/modules/module.py({depth}): _call_impl", 1 + depth, 99 - 2 * depth)
    story.op("aten::mm", 45, 3)
    trace = story.trace()
    (one,) = evidence(trace, [len(trace) - 1])
    assert one.stack[-1] == "train.py(3): main"


def test_rules_go_by_the_thresholds_of_their_neighbours():
    """A wait of 15% is reported by one of two rules, wherever the limit between them is set."""
    trace = batches_without_workers(150, "SingleProcess", gpu=False).trace()
    waits = {"dataloader-wait", "dataloader-single-process"}
    found = {finding.slug for finding in diagnose(trace).findings}
    moved = {finding.slug for finding in diagnose(trace, thresholds={"B9": {"share": 0.3}}).findings}
    assert (found & waits, moved & waits) == ({"dataloader-wait"}, {"dataloader-single-process"})
    assert {finding.slug for finding in diagnose(trace).findings} == found


def test_a_rule_that_depends_on_another_goes_by_its_thresholds():
    """Views matter where the program is overhead-bound, and that rule says when it is."""
    trace = next(story for slug, story in FIRES if slug == "view-dispatch")().trace()
    given = {"overhead-bound": {"share": 0.99}}
    assert {"overhead-bound", "view-dispatch"} <= {finding.slug for finding in diagnose(trace).findings}
    assert {"overhead-bound", "view-dispatch"}.isdisjoint(f.slug for f in diagnose(trace, thresholds=given).findings)
