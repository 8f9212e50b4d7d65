"""Intervals behave as the sets of integers they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchwhy.trace.model.intervals import NOTHING, Intervals

pairs = st.lists(st.tuples(st.integers(-30, 60), st.integers(-30, 60)), max_size=12)


def union(spans):
    return Intervals.union([a for a, _ in spans], [b for _, b in spans])


def points(spans):
    return {i for a, b in spans for i in range(a, b)}


def covered(intervals):
    return points(zip(intervals.starts.tolist(), intervals.ends.tolist(), strict=True))


def check_shape(intervals):
    """Sorted, disjoint, not even touching, none empty, int64."""
    assert intervals.starts.dtype == intervals.ends.dtype == np.int64
    assert (intervals.ends > intervals.starts).all()
    assert (intervals.starts[1:] > intervals.ends[:-1]).all()


@given(pairs)
def test_a_union_covers_every_point_once(spans):
    found = union(spans)
    check_shape(found)
    assert covered(found) == points(spans)
    assert found.total == len(points(spans)) == found.lengths.sum()


@given(pairs, pairs)
def test_set_operations_are_those_of_sets(a, b):
    one, other = union(a), union(b)
    for found, expected in (
        (one | other, points(a) | points(b)),
        (one & other, points(a) & points(b)),
        (one - other, points(a) - points(b)),
    ):
        check_shape(found)
        assert covered(found) == expected


@given(pairs)
def test_gaps_lie_between(spans):
    found, inside = union(spans), points(spans)
    expected = set(range(min(inside), max(inside) + 1)) - inside if inside else set()
    assert covered(found.gaps()) == expected


@given(pairs, st.integers(-40, 70), st.integers(-40, 70))
def test_clip_keeps_what_lies_within(spans, start, end):
    found = union(spans).clip(start, end)
    check_shape(found)
    assert covered(found) == points(spans) & set(range(start, end))


@given(pairs, pairs)
def test_overlap_counts_the_common_points_of_each(spans, questions):
    found = union(spans).overlap([a for a, _ in questions], [b for _, b in questions])
    assert found.tolist() == [len(points(spans) & set(range(a, b))) for a, b in questions]


@given(pairs, st.lists(st.integers(-40, 70), max_size=8))
def test_covered_before_counts_the_points_before(spans, moments):
    found = union(spans).covered_before(moments)
    assert found.tolist() == [len([i for i in points(spans) if i < moment]) for moment in moments]


def test_nothing_is_neutral_or_absorbing():
    some = Intervals.union([1], [4])
    assert covered(some | NOTHING) == covered(some - NOTHING) == {1, 2, 3}
    assert len(some & NOTHING) == len(NOTHING - some) == len(NOTHING.gaps()) == NOTHING.total == 0


def test_times_since_1970_in_nanoseconds_stay_exact():
    start = 1_712_195_495_502_094_565
    found = Intervals.union([start, start + 5], [start + 3, start + 6])
    assert found.total == 4
    assert found.overlap([start + 2], [start + 10]).tolist() == [2]


@pytest.mark.parametrize("n", [0, 1, 5, 6])
def test_printing_shows_the_first_five(n):
    text = repr(Intervals.union(np.arange(n) * 10, np.arange(n) * 10 + 1))
    assert text.count("[") == min(n, 5)
    assert ("..." in text) == (n > 5)
