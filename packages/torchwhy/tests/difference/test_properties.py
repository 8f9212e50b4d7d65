"""What holds for any pair of traces."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.difference.pairs import shown
from tests.traces import Story
from torchwhy import diff
from torchwhy.present.formats import FORMATS
from torchwhy.rules.host import batches

RULES = (batches.dataloader_wait, batches.dataloader_single_process)

NAMES = (
    "enumerate(DataLoader)#_X.__next__",
    "aten::mm",
    "aten::relu",
    "aten::_softmax",
    "Torch-Compiled Region: 0/0",
    "f(int) [x]",
    "",
)

event = st.tuples(
    st.sampled_from(["op", "note", "kernel", "copy", "call", "frame", "memory", "unlinked"]),
    st.sampled_from(NAMES),
    st.integers(0, 3000),
    st.integers(0, 400),
    st.sampled_from([100, 200]),
)
stories = st.tuples(st.lists(st.integers(1, 900), max_size=5), st.lists(event, max_size=25), st.booleans())


def build(recipe):
    durations, events, gpu = recipe
    story = Story(gpu="NVIDIA A100-SXM4-80GB" if gpu else None)
    story.op("aten::mm", 0, 10)
    at = 0
    for i, us in enumerate(durations):
        story.step(i, at, us)
        at += us
    for kind, name, start, us, tid in events:
        if kind in ("op", "note", "frame", "call"):
            getattr(story, kind)(name, start, us, tid)
        elif kind == "memory":
            story.memory(start, us * 10**6, us * 10**7)
        elif kind == "copy":
            story.copy("HtoD (Pageable -> Device)", start + 5, us + 1, 1000, launch_at=start)
        else:
            story.kernel(name, start + 5, us, launch_at=start if kind == "kernel" else None)
    return story


@settings(max_examples=5 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow])
@given(stories)
def test_a_trace_does_not_differ_from_itself(recipe):
    story = build(recipe)
    found = diff(story.trace("a"), story.trace("b"), rules=RULES)
    assert found.empty
    assert found.verdict.kind == "identical"
    assert found.step_us[0] == found.step_us[1]


@settings(max_examples=5 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow])
@given(stories, stories)
def test_swapping_sides_mirrors_the_difference(one, other):
    a, b = build(one).trace("a"), build(other).trace("b")
    there, back = diff(a, b, rules=RULES), diff(b, a, rules=RULES)
    mirrored = {"faster": "slower", "slower": "faster"}
    assert back.verdict.kind == mirrored.get(there.verdict.kind, there.verdict.kind)
    states = {"added": "gone", "gone": "added", **mirrored}
    for kind in ("calls", "runtime", "kernels", "copies"):
        first, second = getattr(there, kind), getattr(back, kind)
        assert {(c.name, states[c.state]) for c in first.shown} == {(c.name, c.state) for c in second.shown}
        assert (first.trifles, first.same) == (second.trifles, second.same)
    assert {total.name: (total.b, total.a) for total in there.totals} == {t.name: (t.a, t.b) for t in back.totals}
    assert {(o.path, round(-o.change_us, 6)) for o in there.origins} == {
        (o.path, round(o.change_us, 6)) for o in back.origins
    }
    for found in (there, back):
        assert all(
            place.share is None or place.share <= 1 + 1e-9 for place in (*found.origins, found.main_path) if place
        )
    assert there.likeness.share == pytest.approx(back.likeness.share)
    fates = {"fixed": "new", "new": "fixed", "worse": "better", "better": "worse"}
    assert sorted((f.finding.slug, fates.get(f.state, f.state)) for f in there.findings) == sorted(
        (f.finding.slug, f.state) for f in back.findings
    )


@pytest.mark.parametrize("durations", [[], [0], [0, 0, 0], [0, 100]])
def test_traces_without_any_time_do_not_raise(durations):
    a, b = (build((durations, [(kind, "", 0, 0, 100)], True)) for kind in ("op", "kernel"))
    a.events, b.events = a.events[1:], b.events[1:]
    for one, other in ((a, b), (b, a), (a, Story()), (Story(), b)):
        assert str(diff(one.trace("a"), other.trace("b"), rules=()))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(stories, stories)
def test_every_pair_can_be_shown(one, other):
    found = diff(build(one).trace("a"), build(other).trace("b"))
    for form in FORMATS:
        for verbose in (False, True):
            text = shown(found, form, verbose=verbose)
            assert found.verdict.sentence.split()[0] in text or form in ("sarif", "junit", "github")
