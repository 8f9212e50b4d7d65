"""A dump without its earlier calls gives the same calls as the whole one."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from tests.hangs.jobs import WORLD, Rank, as_pytorch
from torchwhy.errors import TraceError
from torchwhy.hangs import dumps as reading
from torchwhy.hangs.earlier_calls import without_earlier_calls

TENSOR, DATA = ("1", "tensor"), ("2", "data")

calls = st.tuples(
    st.sampled_from(["all_reduce", "_all_gather_base", "send 0->1", "recv 0<-1", "barrier"]),
    st.sampled_from([WORLD, TENSOR, DATA]),
    st.sampled_from(["completed", "completed", "completed", "started", "scheduled"]),
    st.sampled_from([(), ((4,),), ((4, 300), (70_000,)), ((),), ((2**40, 1),)]),
    st.integers(0, 5),  # the line
    st.integers(1, 90),  # how often
)


def entries(rank, several):
    for name, group, state, sizes, line, count in several:
        for _ in range(count):
            rank.call(name, sizes, group=group, state=state, line=line)
    return rank


def calls_of(data):
    texts = reading._Texts()
    return reading._read("nccl_trace_rank_0", 0, data, texts)


@given(
    st.lists(calls, max_size=30),
    st.sampled_from([as_pytorch, lambda content: pickle.dumps(content, 2), lambda content: pickle.dumps(content, 4)]),
    st.sampled_from(["nccl", "gloo"]),
    st.integers(0, 2**70),
)
def test_the_same_calls_are_read(several, write, library, number):
    content = entries(Rank({WORLD: (0, 1), TENSOR: (0, 1)}), several).content()
    for i, entry in enumerate(content["entries"]):
        entry["profiling_name"] = entry["profiling_name"].replace("nccl", library)
        entry["retired"] = i % 3 > 0
        if i == number % 997:  # one that differs in form
            entry["duration_ms"] = 1.5
        if i % 7 == number % 7:
            entry["time_discovered_started_ns"] = 1_795_849_629_336_138_095
    data = write(content)
    assert calls_of(without_earlier_calls(data, reading.LAST, reading.UNFINISHED)) == calls_of(data)


LONG = as_pytorch(entries(Rank({WORLD: (0, 1)}), [("all_reduce", WORLD, "completed", ((4,),), 3, 300)]).content())


def test_most_of_a_dump_that_pytorch_wrote_is_left_out():
    assert len(without_earlier_calls(LONG, 24, 512)) < len(LONG) / 5


@given(st.integers(0, len(LONG)), st.integers(0, 9), st.binary(max_size=6))
def test_of_a_damaged_dump_the_same_is_read_where_the_whole_can_be(place, count, piece):
    data = LONG[:place] + piece + LONG[place + count :]
    try:
        whole = calls_of(data)
    except TraceError:
        return
    assert calls_of(without_earlier_calls(data, reading.LAST, reading.UNFINISHED)) == whole


def test_any_bytes_are_taken():
    for data in (b"", b"{}", b"\x80\x02}.", b"\x80\x02" + b"}(" * 9, LONG[:100], LONG[100:]):
        assert data.endswith(without_earlier_calls(data, 1, 1)[-1:])
