"""Events of a row nest, whatever they did before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchwhy.export.nesting import nested


def ordered(pairs):
    found = sorted(((start, start + length) for start, length in pairs), key=lambda pair: (pair[0], -pair[1]))
    return np.array(found, np.int64).reshape(-1, 2).T


def overlap_partly(start, end):
    return [
        (i, j)
        for i in range(len(start))
        for j in range(i + 1, len(start))
        if start[i] < start[j] < end[i] < end[j] or (start[i] == start[j] and end[i] < end[j] and start[i] < end[i])
    ]


@pytest.mark.parametrize("scale", [100, 1000])
@given(pairs=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=25))
def test_events_of_a_row_nest(scale, pairs):
    start, end = ordered([(scale * begin, scale * length) for begin, length in pairs])
    for one_row in (True, False):
        ends, row = nested(start, end, one_row=one_row)
        assert (ends <= end).all()
        assert (ends >= start).all()
        assert one_row <= (row == 0).all()
        if not one_row:
            assert ((end - ends) <= 1000 * len(start)).all()
        for number in set(row.tolist()):
            assert overlap_partly(start[row == number], ends[row == number]) == []


def test_what_nests_stays_as_it_is():
    start, end = ordered([(0, 10_000), (0, 5000), (2000, 3000), (5000, 5000), (10_000, 0), (10_000, 1)])
    for one_row in (True, False):
        ends, row = nested(start, end, one_row=one_row)
        assert ends.tolist() == end.tolist()
        assert not row.any()


def test_inexact_clocks_cost_no_row():
    """A child that ends 500 ns after its parent, and a kernel that begins 900 ns before the last one ended."""
    ends, row = nested(np.array([0, 5000, 20_000, 24_100]), np.array([10_000, 10_500, 25_000, 30_000]), one_row=False)
    assert ends.tolist() == [10_000, 10_000, 24_100, 30_000]
    assert not row.any()


def test_the_shorter_piece_is_lost():
    """A step that begins just before the frame that began it has ended."""
    ends, _ = nested(np.array([0, 90_000]), np.array([100_000, 9_000_000]), one_row=True)
    assert ends.tolist() == [90_000, 9_000_000]
