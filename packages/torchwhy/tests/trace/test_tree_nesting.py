"""Both nestings, natively and with NumPy, are those of a stack: with ties, events of no length, and overlaps."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.model import naive_parents
from torchwhy.trace.model import nesting, nesting_native

MODULES = [nesting, *([nesting_native] if nesting_native.available() else [])]

# Multiples of 400 ns make ends that are late by less and by more than what is tolerated likely.
event = st.tuples(st.integers(0, 2), st.integers(0, 25), st.integers(0, 15), st.booleans())
events = st.lists(event, max_size=60)


for_both = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.split(".")[-1])


def in_order(lane, start, end, chosen):
    """The chosen events in the order of a tree."""
    order = np.lexsort((-end, start, lane))
    return order[chosen[order]].astype(np.int32)


def drawn(events):
    """Events in any order, of which some are in the tree: lane, start, end, whether it is."""
    lane, at, length, chosen = np.array(events, np.int64).reshape(-1, 4).T
    return lane.astype(np.int32), 400 * at, 400 * (at + length), chosen.astype(np.bool_)


def random_events(count, seed):
    random = np.random.default_rng(seed)
    start = np.sort(random.integers(0, 40 * count, count))
    length = (random.pareto(0.4, count) * 10).clip(0, 20 * count).astype(np.int64)
    end = start + np.where(random.random(count) < 0.1, 0, length)
    mixed = random.permutation(count)
    lane = random.integers(0, 3, count).astype(np.int32)
    return lane, start[mixed], end[mixed], random.random(count) < 0.9


def assert_a_stacks(module, lane, start, end, chosen):
    rows = in_order(lane, start, end, chosen)
    spans = list(zip(lane[rows].tolist(), start[rows].tolist(), end[rows].tolist(), strict=True))
    above = naive_parents(spans)
    parent = module.parents(rows, lane, start, end, 1000)
    expected = np.full(len(lane), -1)
    expected[rows] = [rows[i] if i >= 0 else -1 for i in above]
    assert parent.dtype == np.int32
    assert parent.tolist() == expected.tolist()

    around, nearest, inside = np.zeros(len(lane), int), np.full(len(lane), -1), np.zeros(len(lane), int)
    wanted = start // 400 % 3 == 0
    for row, place in zip(rows.tolist(), above, strict=True):
        outer = rows[place] if place >= 0 else -1
        around[row] = around[outer] + 1 if place >= 0 else 0
        nearest[row] = row if wanted[row] else nearest[outer] if place >= 0 else -1
    for row, place in zip(rows.tolist()[::-1], above[::-1], strict=True):
        if place >= 0:
            inside[rows[place]] += inside[row] + 1
    for found, right in (
        (module.nearest(rows, parent, wanted), nearest),
        (module.around(rows, parent), around),
        (module.inside(rows, parent), inside),
    ):
        assert found.dtype == np.int32
        assert found.tolist() == right.tolist()


@for_both
@given(events=events)
def test_few_events_nest_as_a_stack_says(module, events):
    assert_a_stacks(module, *drawn(events))


@for_both
@pytest.mark.parametrize("seed", range(3))
def test_many_events_nest_as_a_stack_says(module, seed):
    assert_a_stacks(module, *random_events(3000, seed))


@for_both
def test_a_chain_and_a_row_of_events(module):
    n = 5000
    at, lane, every = np.arange(n, dtype=np.int64), np.zeros(n, np.int32), np.ones(n, np.bool_)
    assert_a_stacks(module, lane, 2000 * at, 2000 * (2 * n - at), every)
    assert_a_stacks(module, lane, 2000 * at, 2000 * at + np.where(at, 1000, 2000 * n), every)


@for_both
def test_times_at_the_end_of_their_range(module):
    end = np.array([np.iinfo(np.int64).max - 500, np.iinfo(np.int64).max - 400])
    rows, lane = np.arange(2, dtype=np.int32), np.zeros(2, np.int32)
    both = [each.parents(rows, lane, end - 5000, end, 1000).tolist() for each in (nesting, module)]
    assert both[0] == both[1]


@pytest.mark.skipif(not nesting_native.available(), reason="there is no native library")
def test_arrays_of_other_types_are_refused():
    rows = np.arange(3, dtype=np.int32)
    with pytest.raises(ctypes.ArgumentError):
        nesting_native.around(rows.astype(np.int64), rows)
