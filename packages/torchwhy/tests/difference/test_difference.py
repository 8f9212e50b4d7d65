"""What changed: operators, kernels, calls, copies, memory, the call tree, findings."""

import json

import pytest

from tests.difference.pairs import OPERATORS, loop, shown, traces
from tests.traces import Story, a_finding
from torchwhy import diff
from torchwhy.rules.catalogue import all_rules
from torchwhy.rules.rule import rule
from torchwhy.trace.meaning.annotations import NEXT_BATCH

STEADY = [1000, 1010, 990, 1005, 995]
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def between(a, b, **options):
    return diff(*traces(a, b), **options)


def test_a_trace_against_itself_is_identical():
    found = between(loop(STEADY), loop(STEADY))
    assert found.verdict.kind == "identical"
    assert found.empty
    assert "identical" in str(found)


def test_numbers_are_per_step():
    """Three steps against nine of the same: nothing differs but their number."""
    found = between(loop(STEADY[:3]), loop(STEADY[:3] * 3), rules=())
    assert found.verdict.kind == "no difference"
    assert found.empty
    assert (len(found.a.rounds), len(found.b.rounds)) == (3, 9)
    assert {total.name: (total.a, total.b) for total in found.totals}["kernel launches"] == (8, 8)


def test_an_operator_comes_and_another_goes():
    found = between(loop(STEADY, extra=[("aten::old", 0.1, "op")]), loop(STEADY, extra=[("aten::new", 0.1, "op")]))
    assert [change.name for change in found.calls["gone"]] == ["aten::old"]
    assert [change.name for change in found.calls["added"]] == ["aten::new"]
    assert found.calls["gone"][0].calls == (1, 0)
    assert found.calls["gone"][0].host_us == (pytest.approx(100), 0)


def test_trifles_are_counted_and_not_listed():
    found = between(loop(STEADY), loop(STEADY, extra=[("aten::tiny", 0.001, "op")]))
    assert (found.calls.shown, found.calls.trifles) == ((), 1)


def test_changes_within_the_noise_are_not_listed():
    """One step of B has a slow operator: its mean moves by 2 % of the step, its noise is larger."""
    a, b = (loop(STEADY, operators=OPERATORS[:2]) for _ in range(2))
    for i in range(5):
        a.op("aten::sort", 1000 * i + 600, 100)
        b.op("aten::sort", 1000 * i + 600, 200 if i == 3 else 100)
    assert between(a, b).calls.shown == ()


def test_changes_are_ordered_by_time():
    a = loop(STEADY, operators=OPERATORS[:2], extra=[("aten::x", 0.05, "op"), ("aten::y", 0.2, "op")])
    b = loop(STEADY, operators=OPERATORS[:2], extra=[("aten::x", 0.1, "op"), ("aten::y", 0.4, "op")])
    slower = between(a, b).calls["slower"]
    assert [change.name for change in slower] == ["aten::y", "aten::x"]
    assert slower[0].change_us == pytest.approx(200, rel=0.01)


def test_the_same_kernels_as_often_are_the_same_work():
    slow = [2 * us for us in STEADY]
    found = between(loop(STEADY), loop(slow))
    assert found.kernel_sets.identical
    assert "That is the same GPU work." in str(found)


def test_an_operator_with_another_kernel_has_it_replaced():
    sets = between(loop(STEADY), loop(STEADY, kernel_name="hopper_gemm")).kernel_sets
    assert not sets.identical
    replaced = {item.operator: (item.before[0][0], item.after[0][0]) for item in sets.replaced}
    assert replaced["aten::mm"] == ("ampere_gemm_mm", "hopper_gemm_mm")


def test_kernels_that_run_more_often_are_not_the_same_work():
    sets = between(loop(STEADY, kernels=1), loop(STEADY, kernels=2)).kernel_sets
    assert not sets.identical
    assert sets.only_a == sets.only_b == sets.replaced == ()
    assert ("ampere_gemm_mm", 1, 2) in sets.counts_differ


def test_no_kernels_no_sets():
    assert between(loop(STEADY, gpu=False), loop(STEADY[:3], gpu=False)).kernel_sets is None


def test_launches_waits_copies_and_memory_per_step():
    a, b = loop(STEADY), loop(STEADY)
    for i in range(5):
        at = 1000 * i + 850
        a.call("cudaStreamSynchronize", at, 50)
        a.copy("HtoD (Pageable -> Device)", at + 60, 20, 4096, launch_at=at + 55)
        b.copy("HtoD (Pinned -> Device)", at + 60, 5, 8192, launch_at=at + 55)
        a.memory(at, 100, 2 * 10**9)
        b.memory(at, 100, 3 * 10**9)
    found = between(a, b)
    totals = {total.name: (total.a, total.b) for total in found.totals}
    assert totals["waits for the device"] == (1, 0)
    assert totals["time waiting for the device"] == (50, 0)
    assert totals["copies"] == (1, 1)
    assert totals["copied bytes"] == (4096, 8192)
    assert totals["peak of device memory"] == (2e9, 3e9)
    assert {change.name: change.state for change in found.copies.shown} == {"HtoD (Pageable -> Device)": "gone"}


def test_the_call_tree_says_where_the_time_went():
    def story(us):
        found = Story(gpu=None)
        for i in range(4):
            found.step(i, 2000 * i, 1000 + us)
            found.note("forward", 2000 * i + 10, 500 + us)
            found.note("attention", 2000 * i + 20, 300 + us)
            found.op("aten::_softmax", 2000 * i + 30, 200 + us)
            found.note("backward", 2000 * i + 600 + us, 300)
        return found

    found = between(story(0), story(400))
    assert found.main_path.path == ("forward", "attention", "aten::_softmax")
    assert found.main_path.change_us == pytest.approx(400)
    assert [origin.path for origin in found.origins] == [("forward", "attention", "aten::_softmax")]
    assert "100% of what is added arises in forward > attention > aten::_softmax." in str(found)


def test_origins_add_up_to_the_change():
    a = loop(STEADY, extra=[("aten::old", 0.1, "op")])
    b = loop([1.4 * us for us in STEADY], extra=[("aten::new", 0.15, "op")])
    found = between(a, b)
    total = found.step_us[1] - found.step_us[0]
    assert sum(origin.change_us for origin in found.origins) == pytest.approx(total, rel=0.05)


def replaced(name, us, loader=0):
    story = Story(gpu=None)
    for i in range(4):
        story.step(i, 20_000 * i, 10_000 + us + loader)
        story.note("forward", 20_000 * i, us + 10)
        story.op(name, 20_000 * i + 5, us)
        if loader:
            story.note("load_data", 20_000 * i + 12_000, loader)
    return story


def test_what_came_in_the_place_of_what_is_gone_counts_with_it():
    """9 ms of one call are replaced by 8 ms of another: what is saved is 1 ms, not 905% of it."""
    found = between(replaced("model_eager", 9000), replaced("model_compiled", 8000))
    (place,) = found.origins
    assert (place.path, place.state, place.replaced) == (
        ("forward",),
        "replaced",
        (("model_eager",), ("model_compiled",)),
    )
    assert (place.us, place.share) == ((9000, 8000), 1)
    assert found.main_path.path == ("forward",)
    assert "100% of what is saved arises in forward." in str(found)
    assert "model_eager -> model_compiled" in str(found)


def test_a_share_is_of_all_that_takes_less():
    """The loader is gone (4 ms), and the model takes 3 ms more: no part of the 1 ms saved is 400% of it."""
    found = between(replaced("model", 1000, loader=4000), replaced("model", 4000))
    assert {place.path: place.share for place in found.origins} == {("load_data",): 1, ("forward", "model"): 1}
    assert found.main_path.path == ("load_data",)
    text = " ".join(str(found).split())
    assert "100% of what is saved arises in load_data." in text
    assert "4.00 ms less in some places, 3.00 ms more in others" in text


def test_what_cancels_out_is_still_told():
    def story(x, y):
        found = Story(gpu=None)
        for i in range(4):
            found.step(i, 1000 * i, 1000)
            found.note("forward", 1000 * i, 800)
            found.op("aten::mm", 1000 * i, x)
            found.op("aten::_softmax", 1000 * i + 400, y)
        return found

    found = between(story(100, 300), story(300, 100))
    changes = {origin.path[-1]: origin.change_us for origin in found.origins}
    assert changes == {"aten::mm": pytest.approx(200), "aten::_softmax": pytest.approx(-200)}


def test_other_threads_have_a_place_of_their_own():
    def story(us):
        found = Story(gpu=None)
        for i in range(4):
            found.step(i, 1000 * i, 1000)
            found.op("aten::mm", 1000 * i, 100)
            found.op("MulBackward0", 1000 * i + 200, us, tid=200)
        return found

    (origin,) = between(story(100), story(500)).origins
    assert origin.path == ("(other threads)", "MulBackward0")


def test_a_finding_is_fixed_and_new_the_other_way_round():
    waits = loop(STEADY, operators=OPERATORS[:2], kernels=0, gpu=False, extra=[(LOADER, 0.3, "note")])
    loads = loop(STEADY, operators=OPERATORS[:2], kernels=0, gpu=False)
    there, back = between(waits, loads), between(loads, waits)
    assert ("fixed", "dataloader-wait") in [(fate.state, fate.finding.slug) for fate in there.findings]
    assert ("new", "dataloader-wait") in [(fate.state, fate.finding.slug) for fate in back.findings]
    fate = next(fate for fate in there.findings if fate.finding.slug == "dataloader-wait")
    assert fate.us == (pytest.approx(300, rel=0.1), 0)


def test_a_finding_that_costs_more_is_worse():
    def waits(share):
        return loop(STEADY, operators=OPERATORS[:2], gpu=False, extra=[(LOADER, share, "note")])

    states = {fate.finding.slug: fate.state for fate in between(waits(0.2), waits(0.4)).findings}
    assert states["dataloader-wait"] == "worse"
    states = {fate.finding.slug: fate.state for fate in between(waits(0.3), waits(0.301)).findings}
    assert states["dataloader-wait"] == "unchanged"


def test_only_the_rules_asked_for_are_compared():
    a, b = traces(loop(STEADY, gpu=False, extra=[(LOADER, 0.15, "note")]), loop(STEADY[:4], gpu=False))
    assert diff(a, b, rules=()).findings == ()


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_every_format_holds_the_verdict(form):
    found = between(loop(STEADY), loop([2 * us for us in STEADY], extra=[("aten::new", 0.1, "op")]))
    for verbose in (False, True):
        text = shown(found, form, verbose=verbose)
        assert "B is 2.00x slower" in text
        assert "aten::new" in text.replace("\\", "")


def test_json_has_a_version_and_plain_values():
    values = json.loads(shown(between(loop(STEADY), loop(STEADY[:4])), "json"))
    assert values["schema"] == 1
    assert values["a"]["steps"]["count"] == 5
    assert values["step_times"]["b_us"] == [1000, 1010, 990, 1005]


def test_a_finding_just_below_its_threshold_is_not_fixed():
    def waits(share):
        return loop(STEADY, operators=OPERATORS[:2], kernels=0, gpu=False, extra=[(LOADER, share, "note")])

    (rule,) = (found for found in all_rules() if found.slug == "dataloader-wait")
    least = rule.thresholds["share"]
    found = diff(*traces(waits(least + 0.02), waits(least - 0.01)), rules=[rule])
    assert [(fate.state, fate.note) for fate in found.findings] in (
        [("better", "on B below the rule's threshold")],
        [("unchanged", "on B below the rule's threshold")],
    )


@rule("X7", "breaks-off-on-one-side", source="a test")
def breaks_off(trace, *, share=0.1):
    """Finds something where there is a loader, and fails elsewhere, or when asked for less."""
    if share < 0.1 or not trace.events.any_of(NEXT_BATCH):
        raise KeyError("Input Dims")
    yield a_finding(trace.window, time_us=100.0)


def test_where_a_rule_failed_nothing_is_fixed():
    a, b = loop(STEADY, gpu=False, extra=[(LOADER, 0.15, "note")]), loop(STEADY, gpu=False)
    (fate,) = diff(*traces(a, b), rules=[breaks_off]).findings
    assert fate.state == "unknown"
    assert fate.note == "could not be checked on B: KeyError: 'Input Dims'"


@rule("X8", "fails-when-asked-for-less", source="a test")
def fails_when_asked_for_less(trace, *, share=0.1):
    """Finds something where there is a loader, and fails with another threshold."""
    if share < 0.1:
        raise KeyError("Input Dims")
    if trace.events.any_of(NEXT_BATCH):
        yield a_finding(trace.window, time_us=100.0)


def test_a_rule_that_fails_with_a_lower_threshold_stops_nothing(monkeypatch):
    monkeypatch.setattr("torchwhy.difference.findings.all_rules", lambda: (fails_when_asked_for_less,))
    a, b = loop(STEADY, gpu=False, extra=[(LOADER, 0.15, "note")]), loop(STEADY, gpu=False)
    (fate,) = diff(*traces(a, b), rules=[fails_when_asked_for_less]).findings
    assert (fate.state, fate.note) == ("unknown", "could not be checked on B: KeyError: 'Input Dims'")
