import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import Story
from torchwhy.page.rows import NO_ROW, drawn_rows
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.tree import Tree


def rows_of(spans):
    """The row of each operator (start, length), in microseconds, in the order of the spans."""
    story = Story(gpu=None)
    for i, (start, length) in enumerate(spans):
        story.op(f"op{i}", at=start, us=length)
    trace = story.trace()
    tree = Tree(trace.events, Kind.OPERATOR)
    found = np.empty(len(trace), np.int64)
    found[tree.rows] = drawn_rows(trace.events, tree)
    return found.tolist(), trace


def test_calls_stand_below_those_around_them():
    assert rows_of([(0, 100), (10, 50), (20, 10), (70, 10)])[0] == [0, 1, 2, 1]


def test_what_overlaps_takes_the_next_free_row():
    assert rows_of([(0, 100), (50, 100), (120, 100)])[0] == [0, 1, 0]


def test_the_inside_of_what_was_moved_moves_with_it():
    assert rows_of([(0, 100), (50, 100), (90, 20), (95, 5)])[0] == [0, 1, 2, 3]


def test_what_overlaps_hundreds_is_left_out():
    rows, _ = rows_of([(i, 1000 + i) for i in range(100)])
    assert rows[:64] == list(range(64))
    assert set(rows[64:]) == {NO_ROW}


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 100)), max_size=60))
def test_events_of_a_row_never_overlap(spans):
    rows, trace = rows_of(spans)
    for row in set(rows) - {NO_ROW}:
        mine = np.flatnonzero(np.array(rows) == row)
        mine = mine[np.lexsort((trace.events.end[mine], trace.events.ts[mine]))]
        assert (trace.events.ts[mine][1:] >= trace.events.end[mine][:-1]).all()


@pytest.mark.parametrize("spans", [[(0, 10)], [(0, 0), (0, 0)], [(0, 10), (10, 10)]])
def test_what_only_touches_shares_a_row(spans):
    assert set(rows_of(spans)[0]) == {0}
