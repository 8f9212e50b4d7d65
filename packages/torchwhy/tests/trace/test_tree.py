"""Nesting found from times equals that of a stack, whatever the times are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.model import columns, naive_parents
from torchwhy.trace.meaning.kinds import HOST, Kind
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.tree import Tree

# Multiples of 400 ns make ends that bleed by less and by more than the tolerated 1000 ns likely.
span = st.tuples(st.sampled_from("12"), st.integers(0, 25), st.integers(0, 15), st.sampled_from("abc"))
spans = st.lists(span, max_size=40)


def forest(spans):
    given = [{"tid": tid, "ts": 400 * at, "dur": 400 * us, "name": name} for tid, at, us, name in spans]
    events = Events(columns(given))
    return events, Tree(events, *HOST)


def around(tree, row):
    return list(tree.ancestors(row))


@given(spans)
def test_parents_are_those_of_a_stack(spans):
    events, tree = forest(spans)
    rows = tree.rows.tolist()
    assert sorted(rows) == list(range(len(spans)))
    ordered = [(int(events.lane[row]), int(events.ts[row]), int(events.end[row])) for row in rows]
    assert ordered == sorted(ordered, key=lambda one: (one[0], one[1], -one[2]))
    expected = [rows[i] if i >= 0 else -1 for i in naive_parents(ordered)]
    assert tree.parent[rows].tolist() == expected


@given(spans)
def test_depths_and_sizes_count_what_is_around_and_inside(spans):
    _, tree = forest(spans)
    above = {row: around(tree, row) for row in range(len(spans))}
    assert tree.depth.tolist() == [len(above[row]) for row in range(len(spans))]
    inside = {row: {other for other in above if row in above[other]} for row in above}
    assert tree.sizes.tolist() == [len(inside[row]) for row in above]
    for row in above:
        assert set(tree.inside(row).tolist()) == inside[row]
        assert set(tree.children(row).tolist()) == {other for other in above if above[other][:1] == [row]}


@given(spans, st.integers(0, 2**40 - 1))
def test_nearest_is_the_first_wanted_one_from_the_inside(spans, bits):
    _, tree = forest(spans)
    wanted = np.array([bool(bits >> i & 1) for i in range(len(spans))], np.bool_)
    expected = [next((i for i in (row, *around(tree, row)) if wanted[i]), -1) for row in range(len(spans))]
    assert tree.nearest(wanted).tolist() == expected


@given(spans, st.integers(0, 2**40 - 1))
def test_within_is_an_outer_event_or_inside_of_one(spans, bits):
    _, tree = forest(spans)
    outer = np.flatnonzero([bool(bits >> i & 1) for i in range(len(spans))]).astype(np.int32)
    rows = np.arange(len(spans), dtype=np.int32)[::-1]
    expected = [not {int(row), *around(tree, int(row))}.isdisjoint(outer.tolist()) for row in rows]
    assert tree.within(rows, outer).tolist() == expected


@given(spans)
def test_sums_add_up_everything_inside(spans):
    _, tree = forest(spans)
    amounts = np.arange(1, len(spans) + 1, dtype=np.int64) ** 2
    expected = [int(amounts[row]) + int(amounts[tree.inside(row)].sum()) for row in range(len(spans))]
    assert tree.sums(amounts).tolist() == expected


@given(spans)
def test_outermost_of_a_name_has_none_of_its_name_around(spans):
    events, tree = forest(spans)
    chosen = np.array([row for row in range(len(spans)) if row % 4], np.int32)
    among = set(chosen.tolist())
    expected = [
        row
        for row in chosen.tolist()
        if not any(other in among and events.name[other] == events.name[row] for other in around(tree, row))
    ]
    assert tree.outermost_of_name(chosen).tolist() == expected


def test_self_time_is_what_the_children_leave():
    given = [{"ts": 0, "dur": 10_000}, {"ts": 1000, "dur": 4000}, {"ts": 2000, "dur": 1000}, {"ts": 6000, "dur": 4900}]
    events = Events(columns(given))
    tree = Tree(events, *HOST)
    assert tree.parent.tolist() == [-1, 0, 1, 0]  # the last ends 900 ns too late, which is the clock's
    assert tree.self_time.tolist() == [2000, 3000, 1000, 4900]


def test_more_than_a_microsecond_too_late_is_no_child():
    assert Tree(Events(columns([{"ts": 0, "dur": 10_000}, {"ts": 6000, "dur": 5001}])), *HOST).parent.tolist() == [
        -1,
        -1,
    ]


def test_equal_times_nest_as_calls_do():
    same = [{"cat": cat, "ts": 0, "dur": 5} for cat in ("cuda_runtime", "cpu_op", "user_annotation", "python_function")]
    assert Tree(Events(columns(same)), *HOST).parent.tolist() == [1, 2, 3, -1]


def test_ten_thousand_levels():
    n = 10_000
    tree = Tree(Events(columns([{"ts": 2000 * i, "dur": 4000 * (n - i)} for i in range(n)])), *HOST)
    assert tree.depth.tolist() == list(range(n))
    assert tree.sizes.tolist() == list(range(n - 1, -1, -1))
    assert int(tree.nearest(np.arange(n) == 0).max()) == 0


def test_outermost_of_a_kind():
    given = [{"cat": "user_annotation", "ts": 0, "dur": 90}, {"ts": 10, "dur": 50}, {"ts": 20, "dur": 30}]
    tree = Tree(Events(columns(given)), *HOST)
    assert [tree.outermost(2), tree.outermost(2, Kind.OPERATOR), tree.outermost(0)] == [0, 1, 0]


def test_without_events_there_is_nothing():
    tree = Tree(Events(columns([])), *HOST)
    assert [len(part) for part in (tree.rows, tree.depth, tree.sizes, tree.self_time)] == [0, 0, 0, 0]
    assert len(tree.outermost_of_name(np.empty(0, np.int32))) == 0
