"""Events of any year and state become kinds, lanes and times that can be relied on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.model import columns
from torchwhy.trace.file.columns import ABSENT
from torchwhy.trace.meaning.kinds import HOST, Kind, Meaning
from torchwhy.trace.model.events import DAY, Damage, Events, parse_list

EPOCH = 1_712_195_495_502_094_565


def kinds_of(events):
    return [Kind(kind) for kind in events.kind.tolist()]


def test_kinds_by_category_and_name():
    events = Events(
        columns(
            [
                {"cat": "Operator", "name": "ProfilerStep#3"},
                {"cat": "operator", "name": "aten::mm"},
                {"cat": "privateuse1_driver"},
                {"cat": "Kernel", "ts": 5, "dur": 1},
                {"cat": "cpu_instant_event", "name": "[memory]", "ph": "i", "ts": 5},
                {"cat": "cpu_op", "ph": "B", "ts": 5},
                {"cat": None, "ts": 5},
                {"cat": "cpu_op", "name": None, "ts": 5},
            ]
        )
    )
    # Without a time the first three take part in nothing.
    assert kinds_of(events) == [0, 0, 0, Kind.KERNEL, Kind.MEMORY, Kind.OTHER, Kind.OTHER, Kind.OPERATOR]
    assert events.damage.without_time == 3
    assert events.named(7) == ""


def test_lanes_are_pairs_of_process_and_thread_of_any_type():
    name = {"ph": "M", "name": "thread_name", "cat": None, "args": {"name": "stream 7 "}, "pid": "0", "tid": "7"}
    events = Events(
        columns(
            [
                {"pid": "-1", "tid": "Spans", "ts": 1},
                {"pid": "0", "tid": "7", "ts": 1},
                {"pid": None, "tid": None, "ts": 1},
                {"pid": "0", "tid": "stream 7", "ts": 1},
                name,
            ]
        )
    )
    lanes = [events.lanes[i] for i in events.lane]
    assert [(lane.pid, lane.tid) for lane in lanes] == [
        ("-1", "Spans"),
        ("0", "7"),
        ("", ""),
        ("0", "stream 7"),
        ("0", "7"),
    ]
    assert [lane.label for lane in lanes[:4]] == ["Spans", "stream 7", "", "stream 7"]


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("12345678")), max_size=30))
def test_equal_pairs_share_a_lane(pairs):
    events = Events(columns([{"pid": pid, "tid": tid, "ts": 1} for pid, tid in pairs]))
    assert [(events.lanes[i].pid, events.lanes[i].tid) for i in events.lane] == pairs
    assert len(events.lanes) == len(set(pairs))


def test_as_many_threads_as_events():
    n = 2000
    events = Events(columns([{"pid": f"p{i}", "tid": f"t{i}", "ts": i} for i in range(n)]))
    assert len(events.lanes) == n
    assert events.lanes[int(events.lane[1234])].tid == "t1234"


def test_damaged_times_take_part_in_nothing():
    events = Events(
        columns(
            [
                {"ts": EPOCH, "dur": 100},
                {"dur": 100},
                {"ts": EPOCH, "dur": -5},
                {"ts": EPOCH, "dur": DAY + 1},
                {"cat": "kernel", "ts": 0, "dur": 0},
                {"cat": "kernel", "ts": 0, "dur": 10},
                {"ts": 0, "dur": 10},
                {"ts": EPOCH + 2 * DAY, "dur": 10},
                {"cat": "kernel", "ts": EPOCH, "dur": 10},
            ]
        )
    )
    assert events.damage == Damage(without_time=1, negative=1, absurd=3, zero=2)
    assert [row for row, kind in enumerate(kinds_of(events)) if kind != Kind.OTHER] == [0, 2, 8]
    assert (events.end >= events.ts).all()
    assert events.dur.tolist() == [100, 0, 0, 0, 0, 10, 0, 0, 10]


def test_a_trace_may_begin_at_zero():
    events = Events(columns([{"cat": "kernel", "ts": 0, "dur": 10}, {"cat": "kernel", "ts": 20, "dur": 0}]))
    assert events.damage == Damage()


@pytest.mark.parametrize("ts", [np.iinfo(np.int64).max, np.iinfo(np.int64).min + 1])
def test_the_ends_of_int64_do_not_overflow(ts):
    events = Events(columns([{"ts": EPOCH, "dur": 5}, {"ts": EPOCH, "dur": 5}, {"ts": ts, "dur": 10**18}]))
    assert events.damage.absurd == 1
    assert events.rows(*HOST).tolist() == [0, 1]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from(["cpu_op", "cuda_runtime"])), max_size=30)
)
def test_rows_come_by_start_then_longer_first_then_who_calls_whom(given):
    events = Events(columns([{"ts": 10 + at, "dur": us, "cat": cat} for at, us, cat in given]))
    key = [(at, -us, cat == "cuda_runtime", i) for i, (at, us, cat) in enumerate(given)]
    assert events.rows(Kind.OPERATOR, Kind.RUNTIME).tolist() == sorted(range(len(given)), key=lambda i: key[i])


def test_arguments_by_row_under_their_newest_name():
    events = Events(
        columns(
            [
                {"ts": 1, "args": {"External id": 7, "grid": "[1,2,3]"}},
                {"ts": 2},
                {"ts": 3, "args": {"external id": 9, "est. achieved occupancy %": 0.5}},
            ]
        )
    )
    assert events.integers("External id", [0, 1, 2]).tolist() == [7, ABSENT, 9]
    assert events.floats("est. achieved occupancy %", [2, 0])[0] == 0.5
    assert np.isnan(events.floats("est. achieved occupancy %", [2, 0])[1])
    assert [events.text("grid", row) for row in range(3)] == ["[1,2,3]", None, None]
    assert [events.has(key) for key in ("grid", "block", "no such key")] == [True, False, False]


def test_find_matches_names_from_their_beginning():
    events = Events(columns([{"ts": i, "name": name} for i, name in enumerate(["aten::mm", "mm", "aten::add"])]))
    assert events.of(Meaning("aten::", Kind.OPERATOR)).tolist() == [0, 2]
    assert events.of(Meaning("mm|aten::mm", Kind.OPERATOR)).tolist() == [0, 1]


def test_rows_are_sorted_once():
    events = Events(columns([{"ts": i, "name": "aten::mm"} for i in range(3)]))
    assert events.rows(Kind.OPERATOR) is events.rows(Kind.OPERATOR)


def test_no_events():
    events = Events(columns([]))
    assert len(events) == len(events.rows(*HOST)) == len(events.lanes) == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [("[[2, 3], []]", [[2, 3], []]), ("{}", []), ("[1,", []), (None, []), ("", []), ("[" * 99999, [])],
)
def test_lists_in_arguments(text, found):
    assert parse_list(text) == found
