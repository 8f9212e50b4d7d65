import numpy as np
import pytest

from tests.page.generated import generated
from tests.traces import Story
from torchwhy.page.size import without
from torchwhy.page.timeline import DEVICE, FRAMES, HOST, LABELS, timeline_of
from torchwhy.trace.model.intervals import Intervals


@pytest.fixture(scope="module")
def story():
    made = Story()
    made.step(1, at=0, us=100)
    made.frame("train.py(3): step", at=1, us=98)
    made.op("aten::mm", at=10, us=20)
    made.kernel("void gemm<float>(int)", at=40, us=30, launch_at=15)
    made.add("gpu_user_annotation", "forward", at=40, us=40, tid=7, pid=0)
    made.op("aten::add", at=5, us=3, tid=200)
    made.memory(at=12, size=512, allocated=512)
    return made.trace()


def test_bands_begin_with_the_loops_thread_and_the_streams_it_launches_on(story):
    timeline = timeline_of(story)
    assert [(band.side, band.rows) for band in timeline.bands] == [
        (FRAMES, 1),
        (HOST, 3),
        (LABELS, 1),
        (DEVICE, 1),
        (HOST, 1),
    ]
    assert timeline.bands[3].label == "GPU 0 stream 7"


def test_events_are_those_of_the_trace(story):
    timeline = timeline_of(story)
    there = np.flatnonzero(timeline.position >= 0)
    events = timeline.position[there]
    assert sorted(events.tolist()) == list(range(len(timeline)))
    assert (timeline.start[events] == story.events.ts[there] - story.beginning).all()
    assert (timeline.end[events] == story.events.end[there] - story.beginning).all()
    assert [timeline.names[i] for i in timeline.name[events]] == [story.name(row) for row in there.tolist()]
    assert (timeline.kind[events] == story.events.kind[there]).all()


def test_links_are_those_of_the_trace():
    trace = generated(2000)
    timeline = timeline_of(trace)
    known = trace.links.launch >= 0
    expected = zip(
        timeline.position[trace.links.launch[known]].tolist(),
        timeline.position[trace.links.work[known]].tolist(),
        strict=True,
    )
    assert set(zip(timeline.launch.tolist(), timeline.work.tolist(), strict=True)) == set(expected)
    assert (np.diff(timeline.work) > 0).all()


def test_operators_of_the_backward_pass_are_tied_to_those_of_the_forward_pass():
    story = Story()
    for number in range(3):
        story.op("aten::mm", at=10 * number, us=5, **{"Sequence number": number})
        node = {"Sequence number": number, "Fwd thread id": 1}
        story.op("MmBackward0", at=100 - 10 * number, us=8, tid=300, **node)
    trace = story.trace()
    timeline = timeline_of(trace)
    pairs = zip(timeline.forward, timeline.backward, strict=True)
    assert sorted((int(timeline.start[f]), int(timeline.start[b])) for f, b in pairs) == [
        (10_000 * number, 100_000 - 10_000 * number) for number in range(3)
    ]
    assert (np.diff(timeline.backward) > 0).all()
    smaller = without(timeline, timeline.start == 10_000)
    assert sorted(int(smaller.start[f]) for f in smaller.forward) == [0, 20_000]


def test_kernels_have_their_short_name(story):
    timeline = timeline_of(story)
    assert timeline.short_names[timeline.names.index("void gemm<float>(int)")] == "gemm float32"


def test_frequent_names_come_first():
    timeline = timeline_of(generated(2000))
    counts = np.bincount(timeline.name)
    assert (np.diff(counts) <= 0).all()


def test_parts_are_moved_to_the_beginning_of_the_trace():
    story = Story(gpu=None)
    story.op("aten::mm", at=1000, us=20)
    timeline = timeline_of(story.trace(), parts={"operators": Intervals.union([1_005_000], [1_010_000])})
    assert timeline.parts["operators"].starts.tolist() == [5000]
    assert timeline.start.tolist() == [0]


def test_foreign_text_is_made_safe():
    story = Story(gpu=None)
    story.op("two\nlines\u202e\x00", at=0, us=20)
    story.op("x" * 5000, at=30, us=20)
    names = timeline_of(story.trace()).names
    assert names[0] == "two lines\ufffd\ufffd"
    assert len(names[1]) == 2000


def test_what_is_not_drawn_is_told():
    story = Story()
    story.kernel("k", at=10, us=5, launch_at=0)
    story.add("cuda_sync", "Stream Sync", at=10, us=5, tid=7, pid=0)
    assert timeline_of(story.trace()).notes == ("Not drawn: 1 record of a synchronisation.",)


def test_a_trace_without_events_has_an_empty_timeline():
    timeline = timeline_of(Story(gpu=None).trace())
    assert (len(timeline), timeline.bands, timeline.window) == (0, (), (0, 0))


def test_arguments_are_those_of_the_events():
    story = Story()
    story.op("aten::mm", at=0, us=20, **{"Input Dims": [[2, 3], [3, 4]]})
    story.op("aten::add", at=30, us=20)
    story.copy("HtoD (Pageable -> Device)", at=50, us=5, size=2_000_000, launch_at=35)
    launched = {"registers per thread": 88, "shared memory": 3328, "est. achieved occupancy %": 12.4}
    story.kernel("gemm", at=60, us=5, launch_at=36, **launched)
    timeline = timeline_of(story.trace())
    told = {
        (column.label, timeline.names[timeline.name[event]]): column.texts[value]
        for column in timeline.arguments
        for event, value in zip(column.events, column.values, strict=True)
    }
    assert told == {
        ("shapes", "aten::mm"): "[[2,3],[3,4]]",
        ("size", "Memcpy HtoD (Pageable -> Device)"): "2.00 MB",
        ("registers of a thread", "gemm"): "88",
        ("shared memory of a block", "gemm"): "3.33 kB",
        ("occupancy, estimated", "gemm"): "12%",
    }


def test_counters_follow_memory_and_queues(story):
    found = {curve.label: curve for curve in timeline_of(story).counters}
    assert found["GPU 0 memory in use"].values.tolist() == [512]
    waiting = found["GPU 0 stream 7 launches waiting"]
    assert waiting.times.tolist() == [0, 15_000, 40_000]
    assert waiting.values.tolist() == [0, 1, 0]


def test_long_curves_keep_their_extremes():
    story = Story()
    for i in range(20_000):
        story.memory(at=i, size=1, allocated=(i * 7919) % 10_007)
    story.op("aten::mm", at=0, us=20_000)
    (curve,) = timeline_of(story.trace()).counters
    assert len(curve.times) <= 4000
    assert (curve.values.min(), curve.values.max()) == (0, 10_006)


def test_the_critical_path_is_one_run_per_lane():
    story = Story()
    story.step(1, at=0, us=100)
    story.op("aten::mm", at=5, us=10)
    story.kernel("k", at=30, us=60, launch_at=8)
    story.call("cudaDeviceSynchronize", at=20, us=75)
    trace = story.trace()
    path = timeline_of(trace).path
    assert (path.start[1:] >= path.end[:-1]).all()
    assert (path.start[0], path.end[-1]) == (trace.window.start - trace.beginning, trace.window.end - trace.beginning)
    timeline = timeline_of(trace)
    on_device = [timeline.names[timeline.name[event]] == "k" for event in path.event if event >= 0]
    assert any(on_device)
