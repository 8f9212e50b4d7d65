"""Launches find their work by correlation, and only by that."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.model import trace
from tests.traces import Story


def call(ts, correlation, name="cudaLaunchKernel", dur=3, tid="1", cat="cuda_runtime"):
    return {"cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": {"correlation": correlation}}


def kernel(ts, correlation, dur=5):
    return {
        "cat": "kernel",
        "name": "k",
        "ts": ts,
        "dur": dur,
        "pid": "0",
        "tid": "7",
        "args": {"correlation": correlation},
    }


def launches(events):
    """The row of the launch of each piece of work, by start."""
    found = trace(events)
    return dict(zip(found.links.work.tolist(), found.links.launch.tolist(), strict=True))


def test_a_kernel_belongs_to_the_call_with_its_id():
    assert launches([call(0, 5), call(10, 6), kernel(20, 6), kernel(30, 5), kernel(40, 7)]) == {2: 1, 3: 0, 4: -1}


def test_zero_and_missing_ids_link_nothing():
    unknown = kernel(20, 0)
    del unknown["args"]
    assert launches([call(0, 0), kernel(10, 0), unknown]) == {1: -1, 2: -1}


def test_of_a_driver_call_inside_a_runtime_call_the_outer_one_counts():
    inner = call(1, 5, "cuLaunchKernel", dur=1, cat="cuda_driver")
    assert launches([inner, call(0, 5, dur=3), kernel(20, 5)]) == {2: 1}


def test_of_two_calls_with_one_id_the_one_that_launches_counts():
    around = call(0, 5, "cudaFuncGetAttributes", dur=9)
    assert launches([around, call(1, 5, "cuLaunchKernelEx", dur=1), kernel(20, 5)]) == {2: 1}


def test_an_id_used_again_belongs_to_the_latest_launch_before():
    events = [call(0, 5), kernel(10, 5), call(100, 5), kernel(110, 5), call(200, 5), kernel(190, 5), kernel(-1, 5)]
    assert launches(events) == {1: 0, 3: 2, 5: 2, 6: 0}


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), max_size=15),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), max_size=15),
)
def test_ids_used_again_and_again(calls, work):
    """Calls without length at distinct times: none is inside another."""
    calls = [(number, at) for i, (number, at) in enumerate(calls) if at not in [a for _, a in calls[:i]]]
    events = [call(at, number, dur=0) for number, at in calls] + [kernel(at, number) for number, at in work]
    found = launches(events)
    for i, (number, at) in enumerate(work):
        same = sorted((a, row) for row, (n, a) in enumerate(calls) if n == number and n != 0)
        before = [row for a, row in same if a <= at]
        expected = before[-1] if before else same[0][1] if same else -1
        assert found[len(calls) + i] == expected


def test_many_calls_with_one_id_are_read_in_no_time():
    n = 50_000
    found = trace([call(i, 5, dur=10**6) for i in range(n)] + [kernel(n, 5)])
    assert found.links.launch.tolist() == [0]


def test_a_graph_launch_puts_all_its_kernels():
    story = Story()
    launch = story.call("cudaGraphLaunch", 0, 5)
    for i in range(3):
        story.add("kernel", f"k{i}", 10 + i, 1, tid=7, pid=0, correlation=launch["args"]["correlation"], stream=7)
    links = story.trace().links
    assert links.graph_launches.tolist() == links.launches.tolist() == [0]
    assert links.put_by(links.graph_launches).tolist() == [1, 2, 3]
    assert links.work_count.tolist() == [3, 0, 0, 0]


def test_launches_of_all_vendors_are_known():
    names = ["cudaLaunchKernelExC", "cuLaunchKernelEx", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel"]
    names += ["urEnqueueKernelLaunch", "cudaGraphLaunch", "hipLaunchByPtr"]
    others = ["cudaMemcpyAsync", "cudaStreamSynchronize", "cudaGraphInstantiate"]
    found = trace([call(10 * i, i + 1, name) for i, name in enumerate(names + others)])
    assert found.links.launches.tolist() == list(range(len(names)))


def test_nothing_launched():
    links = trace([]).links
    assert [len(links.work), len(links.launch), len(links.launches), len(links.put_by(np.empty(0, np.int32)))] == [
        0
    ] * 4


def by_operator(cat, name, ts, external, tid="1"):
    """An event with an operator's id alone."""
    return {"cat": cat, "name": name, "ts": ts, "dur": 1, "tid": tid, "args": {"External id": external}}


def test_without_correlation_ids_the_operator_tells():
    events = [
        by_operator("cuda_runtime", "cudaLaunchKernel", 0, 5),
        by_operator("cuda_runtime", "cudaMemcpyAsync", 2, 5),
        by_operator("cuda_runtime", "cudaLaunchKernel", 4, 5),
        by_operator("cuda_runtime", "cudaLaunchKernel", 6, 6),
        by_operator("kernel", "first", 10, 5, "7"),
        by_operator("gpu_memcpy", "Memcpy", 12, 5, "7"),
        by_operator("kernel", "second", 14, 5, "7"),
        by_operator("gpu_memset", "Memset", 16, 5, "7"),
        by_operator("kernel", "of no known operator", 18, 8, "7"),
    ]
    assert launches(events) == {4: 0, 5: 1, 6: 2, 7: -1, 8: -1}
    links = trace(events).links
    assert links.inferred.tolist() == [True, True, True, False, False]
    assert links.of(links.work).tolist() == links.launch.tolist()
    assert links.put_by(links.launches).tolist() == [4, 6]


def test_what_the_operator_leaves_open_stays_open():
    """Two calls and three kernels; work that began before its only call; a graph's launch has all kernels."""
    call = by_operator("cuda_runtime", "cudaLaunchKernel", 5, 5)
    later = by_operator("cuda_runtime", "cudaLaunchKernel", 6, 5)
    kernels = [by_operator("kernel", "k", at, 5, "7") for at in (10, 20, 30)]
    assert launches([call, later, *kernels]) == {2: -1, 3: -1, 4: -1}
    assert launches([call, by_operator("kernel", "k", 1, 5, "7")]) == {1: -1}
    assert launches([by_operator("cuda_runtime", "cudaGraphLaunch", 5, 5), *kernels]) == {1: 0, 2: 0, 3: 0}


def test_a_correlation_id_counts_more_than_the_operator():
    launch = call(0, 5) | {"args": {"correlation": 5, "External id": 9}}
    work = kernel(20, 6) | {"args": {"correlation": 6, "External id": 9}}
    assert launches([launch, work]) == {1: -1}
    assert launches([launch, by_operator("kernel", "k", 20, 9, "7")]) == {1: -1}


def test_ids_lower_than_all_calls_were_launched_before_the_recording():
    calls = [call(100 + 10 * i, 50 + i) for i in range(30)]
    early = [kernel(90, 47), kernel(105, 48), kernel(109, 49)]
    lost = [kernel(1000, 300), kernel(1100, 301)]
    without = [kernel(10 * i, 0) for i in range(60)]
    links = trace([*calls, *early, *lost, *without, *(kernel(120 + 10 * i, 50 + i) for i in range(30))]).links
    assert links.before_recording.tolist() == [30, 31, 32]


def test_ids_in_no_order_leave_it_to_the_stream():
    ids = [7, 90, 3, 55, 1, 80]
    calls = [call(100 + 10 * i, number) for i, number in enumerate(ids)]
    early, late = [kernel(105, 40), kernel(112, 41)], [kernel(130, 2), kernel(300, 42)]
    links = trace([*calls, *early, *late, kernel(120, 7)]).links
    assert links.before_recording.tolist() == [6, 7]


def test_events_without_ids_are_not_from_before_the_recording():
    without = [{"cat": "kernel", "name": "k", "ts": 10 * i, "dur": 5, "tid": "7"} for i in range(9)]
    assert trace([call(40, 5), *without]).links.before_recording.tolist() == []
    assert trace(without).links.before_recording.tolist() == []


def test_ids_that_advance_by_hundreds_are_a_sample():
    def links(step, count=40):
        return trace([call(10 * i, 1 + step * i) for i in range(count)]).links

    assert (links(300).sampled, links(300).stride) == (True, 300)
    assert (links(11).sampled, links(11).stride) == (False, 11)
    assert not links(300, count=5).sampled
    shuffled = trace([call(10 * i, 1 + 300 * (i * 7 % 40)) for i in range(40)]).links
    assert not shuffled.sampled
