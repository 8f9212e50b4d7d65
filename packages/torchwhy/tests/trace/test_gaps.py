"""Why a device was idle, how far the host was ahead, and what its waits cost: on traces short enough to do by hand."""

import random

import pytest

from tests.traces import Story
from torchwhy.analysis.breakdown import breakdown
from torchwhy.analysis.caveats import caveats
from torchwhy.analysis.names import PartName, VerdictKind
from torchwhy.trace.derived.gaps import Cause, device_window, giant_gap, idle_gaps
from torchwhy.trace.derived.host_activity import host_during, outer_operators
from torchwhy.trace.derived.idle import idle_time, shown_from
from torchwhy.trace.derived.launches import (
    device_known,
    graph_captures,
    kernel_launches,
    launch_queues,
    queue_at_launch,
)
from torchwhy.trace.derived.waits import host_waits
from torchwhy.trace.model.intervals import Intervals

US = 1000


def story(us=1000):
    """A step of 1 ms with a kernel at its beginning."""
    made = Story()
    made.step(1, 0, us)
    made.kernel("first", 10, 90, launch_at=2)
    return made


def gap_before(name, trace):
    """The cause and the length in microseconds of the gap that a kernel ends."""
    gaps = idle_gaps(trace)
    i = [trace.name(int(row)) if row >= 0 else "" for row in gaps.work].index(name)
    return Cause(int(gaps.cause[i])), int(gaps.lengths[i]) / US


def test_a_launch_after_the_device_ran_dry_is_the_hosts():
    made = story()
    made.kernel("second", 310, 90, launch_at=300)
    assert gap_before("second", made.trace()) == (Cause.HOST, 210)


def test_a_launch_after_a_wait_is_the_waits():
    made = story()
    made.call("cudaStreamSynchronize", 20, 85)
    made.kernel("second", 150, 90, launch_at=140)
    assert gap_before("second", made.trace()) == (Cause.WAIT, 50)


def test_a_wait_on_a_thread_that_launches_nothing_holds_nobody_up():
    made = story()
    made.call("cudaEventSynchronize", 20, 85, tid=7)
    made.kernel("second", 150, 90, launch_at=140)
    assert gap_before("second", made.trace()) == (Cause.HOST, 50)


def test_a_short_wait_does_not_explain_a_long_gap():
    made = story()
    made.call("cudaStreamSynchronize", 90, 12)
    made.kernel("second", 510, 90, launch_at=500)
    trace = made.trace()
    assert gap_before("second", trace) == (Cause.HOST, 410)
    assert host_waits(trace).idle.tolist() == [12 * US], "no more than the call took"


def test_a_wait_of_another_name_counts_when_its_copy_was_over_before_it_returned():
    made = story()
    made.copy("DtoH (Device -> Pageable)", 100, 50, 4096, launch_at=20, launch_us=135)
    made.kernel("second", 200, 90, launch_at=190)
    assert gap_before("second", made.trace()) == (Cause.WAIT, 50)


def test_a_gap_is_the_hosts_until_the_launch_returns_and_the_devices_from_then_on():
    made = Story()
    made.step(1, 0, 3000)
    made.kernel("first", 1200, 1700, launch_at=300, launch_us=10)
    gaps = idle_gaps(made.trace())
    pieces = [(Cause(cause), length // US) for cause, length in zip(gaps.cause.tolist(), gaps.lengths, strict=True)]
    assert pieces == [(Cause.HOST, 310), (Cause.DEVICE, 890), (Cause.END, 100)]
    made = Story()
    made.step(1, 0, 3000)
    made.kernel("first", 320, 100, launch_at=300, launch_us=10)
    assert gap_before("first", made.trace()) == (Cause.HOST, 320), "a device takes a moment to begin"


def test_a_wait_is_answerable_until_the_next_launch_has_returned():
    made = story(us=3000)
    made.call("cudaStreamSynchronize", 20, 85)
    made.kernel("second", 2000, 90, launch_at=140, launch_us=10)
    trace = made.trace()
    assert host_waits(trace).idle.tolist() == [50 * US]
    gaps = idle_gaps(trace)
    assert gaps.total(Cause.WAIT) == 50 * US
    assert gaps.total(Cause.DEVICE) == 1850 * US


def test_without_steps_the_device_is_judged_from_the_first_launch():
    made = Story()
    made.op("aten::empty", 0, 100)
    made.kernel("first", 1200, 100, launch_at=300, launch_us=10)
    trace = made.trace()
    window = device_window(trace)
    assert (window.start - trace.beginning, window.end - trace.beginning) == (300 * US, 1300 * US)


def test_loading_a_kernels_code_is_the_programs():
    made = story()
    made.overhead("Lazy Function Loading", 105, 190)
    made.kernel("second", 310, 90, launch_at=90, launch_us=214)
    assert gap_before("second", made.trace()) == (Cause.CALL, 210)
    assert idle_time(made.trace()).total == 820 * US


def test_queued_work_that_does_not_begin_is_the_devices():
    made = story()
    made.kernel("second", 310, 90, launch_at=8)
    assert gap_before("second", made.trace()) == (Cause.DEVICE, 210)


def test_from_one_queued_kernel_to_the_next_is_a_switch():
    made = story()
    made.kernel("second", 102, 90, launch_at=8)
    assert gap_before("second", made.trace()) == (Cause.SWITCH, 2)


def test_a_launching_call_that_takes_its_time():
    made = story()
    made.kernel("second", 310, 90, launch_at=50, launch_us=258)
    assert gap_before("second", made.trace()) == (Cause.CALL, 210)


def test_the_profilers_buffers():
    made = story()
    made.overhead("Activity Buffer Request", 105, 190)
    made.kernel("second", 310, 90, launch_at=300)
    assert gap_before("second", made.trace()) == (Cause.PROFILER, 210)


def test_a_launch_from_before_the_trace():
    made = story()
    made.kernel("second", 310, 90)
    assert gap_before("second", made.trace()) == (Cause.UNKNOWN, 210)


def test_nothing_follows():
    gaps = idle_gaps(story().trace())
    assert [Cause(int(cause)) for cause in gaps.cause] == [Cause.HOST, Cause.END]
    assert gaps.lengths.tolist() == [10 * US, 900 * US]


def test_gaps_and_work_fill_the_window():
    made = story()
    for k in range(8):
        made.kernel("more", 120 + 100 * k, 60, launch_at=15 + 90 * k, stream=7 + k % 2)
    trace = made.trace()
    assert idle_gaps(trace).total() + trace.gpu.busy.total == trace.window.end - trace.window.start


def test_where_the_main_thread_waits_the_others_tell_what_the_host_did():
    made = Story()
    made.step(1, 0, 1000)
    made.op("aten::mm", 10, 20)
    made.op("autograd::engine::evaluate_function: MmBackward0", 100, 800, tid=200)
    trace = made.trace()
    rows, times = host_during(trace, 150_000, 850_000)
    assert ([trace.name(row) for row in rows.tolist()], times.tolist()) == (
        ["autograd::engine::evaluate_function: MmBackward0"],
        [700_000],
    )


def test_one_gap_longer_than_all_others():
    made = story()
    made.kernel("second", 900, 100, launch_at=890)
    trace = made.trace()
    assert giant_gap(trace) == (trace.window.start + 100 * US, trace.window.start + 900 * US)
    made = story(us=500)
    made.kernel("second", 200, 90, launch_at=190)
    made.kernel("third", 390, 110, launch_at=380)
    assert giant_gap(made.trace()) is None, "two of 100 us"


def test_the_queue_as_each_launch_found_it():
    made = Story()
    for k in range(4):
        made.kernel("k", 100 + 50 * k, 50, launch_at=10 * k)
    made.kernel("late", 400, 50, launch_at=390)
    made.kernel("elsewhere", 100, 50, launch_at=50, stream=8)
    trace = made.trace()
    assert [(queue.stream, queue.depth.tolist()) for queue in launch_queues(trace)] == [(7, [0, 1, 2, 3, 0]), (8, [0])]
    assert sorted(queue_at_launch(trace).tolist()) == [0, 0, 0, 1, 2, 3]


def test_a_graph_is_one_launch():
    made = Story()
    launch = made.call("cudaGraphLaunch", 0)
    for k in range(3):
        made.kernel("node", 10 + 20 * k, 20)["args"]["correlation"] = launch["args"]["correlation"]
    trace = made.trace()
    assert [len(queue.launches) for queue in launch_queues(trace)] == [1]
    assert device_known(trace)


def test_a_capture_is_known_by_frames():
    made = story()
    made.frame("torch/cuda/graphs.py(84): capture_begin", 200, 5)
    made.call("cudaLaunchKernel", 210)
    made.frame("torch/cuda/graphs.py(91): capture_end", 230, 5)
    made.call("cudaGraphInstantiate", 240, 10)
    trace = made.trace()
    assert len(kernel_launches(trace)) == 1
    assert graph_captures(trace).total == 45 * US
    made = story()
    made.frame("vllm/worker/gpu_model_runner.py(1934): capture_model", 200, 100)
    made.call("cudaLaunchKernel", 210)
    assert graph_captures(made.trace()).total == 100 * US
    made.kernel("second", 225, 5, launch_at=220)
    made.kernel("third", 235, 5, launch_at=230)
    assert graph_captures(made.trace()).total == 0, "it launches for real: who knows what it captures"


def test_launches_recorded_into_a_graph_are_none():
    made = story()
    made.call("cudaStreamBeginCapture", 200, 5)
    made.call("cudaLaunchKernel", 210)
    made.call("cudaLaunchKernel", 215, tid=7)
    made.call("cudaStreamEndCapture", 230, 5)
    assert len(kernel_launches(made.trace())) == 2, "the first kernel's, and that of another thread"


@pytest.mark.parametrize("lost", [0, 4])
def test_whether_idle_time_means_something(lost):
    made = story()
    for k in range(lost):
        made.call("cudaLaunchKernel", 200 + 10 * k)
    assert device_known(made.trace()) == (not lost)


def test_what_the_host_did_meanwhile():
    made = story()
    made.note("data", 200, 500)
    made.op("aten::cat", 210, 480)
    made.op("aten::copy_", 220, 100)
    made.op("aten::fill_", 330, 100)
    trace = made.trace()
    start = trace.window.start
    rows, times = host_during(trace, start + 200 * US, start + 700 * US)
    assert [trace.name(int(row)) for row in rows] == ["aten::cat"]
    assert times.tolist() == [480 * US]
    assert [trace.name(int(row)) for row in outer_operators(trace)] == ["aten::cat"]


def test_no_device_no_gaps():
    made = Story(gpu=None)
    made.op("aten::mm", 0, 10)
    trace = made.trace()
    assert len(idle_gaps(trace)) == len(host_waits(trace).rows) == len(queue_at_launch(trace)) == 0
    assert giant_gap(trace) is None


def late_to_begin(wait, host=100, other=0):
    """A step whose first kernel on stream 7 begins so many microseconds after its launch; then 50 ms of work."""
    made, begins = Story(), host + 8 + wait
    made.step(1, 0, host + 200)
    made.op("aten::addmm", 0, host + 200)
    if other:
        made.kernel("copies", 20, other, launch_at=10, stream=20)
    for i in range(50):
        made.kernel("gemm", begins + 1000 * i, 1000, launch_at=host + 2 * i, launch_us=2)
    return made.trace()


@pytest.mark.parametrize("other", [0, 30])
def test_a_stream_that_is_late_with_its_first_work_had_other_work_before(other):
    trace = late_to_begin(20_000, other=other)
    first = 20_108 * US
    assert shown_from(trace) == first
    assert device_window(trace).start == first
    assert not len(idle_gaps(trace))
    assert not len(idle_time(trace))
    parts = breakdown(trace)
    assert parts.share(PartName.COMPUTING) == 1
    assert (parts.steps, parts.window_us) == (1, 50_000)
    assert caveats(trace, VerdictKind.COMPUTE, frozenset())[1].startswith("The first 20.1 ms are left out")


@pytest.mark.parametrize(
    "trace",
    [
        late_to_begin(900),  # too short to prove anything
        late_to_begin(2000, host=2500),  # the host was late for most of it
        late_to_begin(20_000, other=5000),  # work was recorded before
    ],
)
def test_what_shows_a_device_without_work_is_kept(trace):
    assert shown_from(trace) == trace.window.start
    assert len(idle_gaps(trace))


def test_nothing_is_called_idle_that_a_cut_has_taken_away():
    chance = random.Random(5)
    for _ in range(60):
        length, ahead = chance.choice([300, 2000, 20_000]), chance.randrange(2, 40)
        work, free = [], 0
        for i in range(120):
            launched = max(20 * i, (work[i - ahead][1] if i >= ahead else 0))
            begins = max(free, launched + 6)
            free = begins + chance.randrange(length // 2, length)
            work.append((begins, free, launched))
        cut = chance.choice([launched for _, _, launched in work[20:100]])
        made = Story()
        for begins, ends, launched in work:
            if launched >= cut:
                made.kernel("gemm", begins - cut, ends - begins, launch_at=launched - cut)
        trace = made.trace()
        busy = Intervals.union([(b - cut) * US for b, _, _ in work], [(e - cut) * US for _, e, _ in work])
        assert (idle_time(trace) & busy).total <= 1_000_000  # less than it takes to prove anything
