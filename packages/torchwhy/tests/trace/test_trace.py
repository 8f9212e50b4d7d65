"""What belongs together in a trace: windows, idle time, stacks, device time, autograd, modules."""

import numpy as np
import pytest

from tests.trace.model import trace
from tests.traces import Story
from torchwhy.rules.host.python_lines import main_calls
from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.derived.idle import closing_wait, idle_time, profiler_overhead
from torchwhy.trace.derived.modules import modules
from torchwhy.trace.derived.ownership import own_frames, own_line
from torchwhy.trace.meaning.frames import line_of
from torchwhy.trace.meaning.kinds import Kind


def rows_named(found, name):
    return np.flatnonzero(found.events.name == found.events.texts.index(name)).tolist()


# Windows


def test_the_window_is_the_steps_with_their_device_work():
    story = Story()
    story.op("aten::before", 0, 50)
    story.step(5, 100, 100)
    story.kernel("k", 250, 50, launch_at=150)
    story.step(6, 200, 20)
    story.op("aten::within", 205, 5)
    window = story.trace().window
    assert (window.name, window.start, window.end, window.us) == (
        "ProfilerStep#5 to ProfilerStep#6",
        100_000,
        300_000,
        200,
    )


def test_without_steps_the_window_is_everything():
    story = Story()
    story.op("aten::mm", 10, 20)
    story.kernel("k", 40, 60)
    window = story.trace().window
    assert (window.name, window.start, window.end) == ("the whole trace", 10_000, 100_000)


def test_inferred_steps_are_called_so():
    story = Story(gpu=None)
    for i in range(3):
        story.note("train_step", 100 * i, 100)
    assert story.trace().window.name == "3 inferred steps (train_step)"


def test_events_know_their_step():
    story = Story(gpu=None)
    for at in story.steps(2, 90, every=100):
        story.op("aten::mm", at + 10, 20)
    story.op("aten::between", 92, 5)
    found = story.trace()
    rows = found.events.rows(Kind.OPERATOR)
    assert found.step_of(rows).tolist() == [0, -1, 1]
    assert found.in_steps(rows).tolist() == [True, False, True]


def test_idle_leaves_out_what_the_profiler_took():
    story = Story()
    story.step(1, 0, 100)
    story.kernel("k", 20, 30, launch_at=5)
    story.overhead("Activity Buffer Request", 60, 10)
    idle = story.trace().derived(idle_time)
    assert [(a // 1000, b // 1000) for a, b in zip(idle.starts, idle.ends, strict=True)] == [
        (0, 20),
        (50, 60),
        (70, 100),
    ]
    assert idle.overlap([0], [55_000]).tolist() == [25_000]


def test_the_profilers_closing_wait_is_overhead():
    story = Story()
    story.step(1, 0, 100)
    last = story.call("cudaDeviceSynchronize", 110, 40)
    found = story.trace()
    assert found.name(found.derived(closing_wait)) == last["name"]
    assert found.derived(profiler_overhead).total == 40_000


def test_while_the_profiler_waits_for_queued_work_gaps_are_the_programs():
    story = Story()
    story.step(1, 0, 100)
    story.kernel("k", 20, 100, launch_at=5)
    story.kernel("k", 125, 15, launch_at=6)
    story.call("cudaDeviceSynchronize", 110, 40)
    found = story.trace()
    assert found.derived(closing_wait) >= 0
    assert [
        (a // 1000, b // 1000)
        for a, b in zip(found.derived(profiler_overhead).starts, found.derived(profiler_overhead).ends, strict=True)
    ] == [(140, 150)]
    assert found.derived(idle_time).overlap([100_000], [140_000]).tolist() == [5_000]


@pytest.mark.parametrize("follows", ["in the last step", "launches after", "frames of the program"])
def test_a_last_wait_can_be_the_programs(follows):
    story = Story()
    for i in range(3):  # inferred steps: no annotation is around the wait
        story.op("aten::item", 100 * i, 30)
        story.op("aten::mm", 100 * i + 40, 59 if follows == "in the last step" and i == 2 else 20)
    at = 270 if follows == "in the last step" else 310
    story.call("cudaDeviceSynchronize", at, 10, tid=200 if follows == "in the last step" else 100)
    if follows == "launches after":
        story.call("cudaLaunchKernel", 330)
    if follows == "frames of the program":
        story.frame("train.py(8): main", 0, 400)
    assert story.trace().derived(closing_wait) == -1


def test_frames_tell_the_profilers_wait():
    story = Story()
    story.frame("train.py(8): main", 0, 400)
    story.frame("torch/autograd/profiler.py(363): __exit__", 300, 50)
    story.call("cudaDeviceSynchronize", 310, 10)
    story.op("aten::mm", 330, 2)
    assert story.trace().derived(closing_wait) == 2


@pytest.mark.parametrize("after", ["aten::mm", None])
def test_a_wait_the_program_goes_on_after_is_its_own(after):
    story = Story()
    story.note("step", 0, 200) if after is None else story.op(after, 160, 10)
    story.call("cudaDeviceSynchronize", 110, 40)
    assert story.trace().derived(closing_wait) == -1


# Who called


def test_stacks_come_from_frames_or_from_the_old_argument():
    story = Story()
    story.frame("train.py(3): main", 0, 100)
    story.frame("model.py(7): forward", 10, 50)
    story.op("aten::mm", 20, 10)
    found = story.trace()
    assert found.stack(2) == ["model.py(7): forward", "train.py(3): main"]
    old = Story()
    old.add("Operator", "aten::mm", 0, 10, **{"Call stack": "model.py(7): forward; train.py(3): main;"})
    assert old.trace().stack(0) == ["model.py(7): forward", "train.py(3): main"]


def test_the_innermost_operator_and_annotation_around():
    story = Story()
    story.step(1, 0, 100)
    story.note("forward", 5, 80)
    story.op("aten::linear", 10, 50)
    story.op("aten::addmm", 15, 30)
    story.kernel("k", 50, 10, launch_at=20)
    found = story.trace()
    launch = rows_named(found, "cudaLaunchKernel")[0]
    assert found.name(found.operator(launch)) == "aten::addmm"
    assert found.name(found.annotation(launch)) == "forward"
    assert found.name(found.derived(device_time).operator[0]) == "aten::addmm"
    assert (found.operator(-1), found.annotation(0)) == (-1, -1)


def test_the_main_thread_is_the_one_of_the_steps_or_of_most_operators():
    story = Story(gpu=None)
    story.op("aten::a", 0, 10, tid=1)
    story.op("aten::b", 20, 10, tid=2)
    story.op("aten::c", 40, 10, tid=2)
    assert story.trace().lane(story.trace().main_lane).tid == "2"
    assert [found.lane(0).tid for found in [story.trace()]] == ["1"]
    story.step(1, 0, 100)
    found = story.trace()
    assert found.events.lanes[found.main_lane].tid == "100"


# Device time


def test_device_time_goes_to_every_call_around_the_launch():
    story = Story()
    story.note("forward", 0, 100)
    story.op("aten::linear", 10, 50)
    story.op("aten::addmm", 15, 30)
    story.kernel("a", 50, 10, launch_at=20)
    story.kernel("b", 60, 7, launch_at=50)
    found = story.trace()
    time = found.derived(device_time)
    by_name = {found.name(row): (int(time.total[row]) // 1000, int(time.own[row]) // 1000) for row in range(3)}
    assert by_name == {"forward": (17, 0), "aten::linear": (17, 7), "aten::addmm": (10, 10)}
    assert [found.name(row) for row in time.operator] == ["aten::addmm", "aten::linear"]
    assert found.derived(device_time) is time


def test_without_launch_the_external_id_tells_the_operator():
    story = Story()
    story.op("aten::mm", 0, 10)
    story.kernel("k", 50, 10, **{"External id": 1})
    story.kernel("other", 70, 10, **{"External id": 99})
    found = story.trace()
    time = found.derived(device_time)
    assert time.operator.tolist() == [0, -1]
    assert (time.total[0], time.own[0]) == (10_000, 10_000)


def test_device_time_adds_up_to_the_works():
    story = Story()
    story.op("aten::mm", 0, 40)
    story.kernel("a", 50, 10, launch_at=5, stream=7)
    story.kernel("b", 50, 10, launch_at=10, stream=8)
    assert story.trace().derived(device_time).total[0] == 20_000


# Autograd


def numbered(**args):
    return {key.replace("_", " "): value for key, value in args.items()}


def test_forward_and_backward_share_a_sequence_number():
    story = Story(gpu=None)
    story.op("aten::linear", 0, 30, **{"Sequence number": 7, "Fwd thread id": 0})
    story.op("aten::addmm", 10, 10, **{"Sequence number": 7, "Fwd thread id": 0})
    story.op("aten::no_grad", 40, 5)
    engine = "autograd::engine::evaluate_function: AddmmBackward0"
    story.op(engine, 100, 30, tid=2, **{"Sequence number": 7, "Fwd thread id": 1})
    story.op("AddmmBackward0", 105, 20, tid=2, **{"Sequence number": 7, "Fwd thread id": 1})
    story.op("autograd::engine::evaluate_function: XBackward0", 200, 3, **{"Sequence number": 8, "Fwd thread id": 1})
    pairs = story.trace().derived(autograd)
    assert (pairs.forward.tolist(), pairs.backward.tolist(), len(pairs)) == ([1], [3], 1)
    assert (pairs.forward_of(3), pairs.forward_of(4), pairs.backward_of(1), pairs.backward_of(0)) == (1, -1, [3], [])


def test_a_number_used_again_belongs_to_the_latest_forward():
    story = Story(gpu=None)
    for at in (0, 1000):
        story.op("aten::mul", at, 10, **{"Sequence number": 3, "Fwd thread id": 0})
        story.op("MulBackward0", at + 500, 10, **{"Sequence number": 3, "Fwd thread id": 1})
    pairs = story.trace().derived(autograd)
    assert pairs.forward.tolist() == [0, 2]
    assert pairs.backward.tolist() == [1, 3]


def test_arrows_pair_where_numbers_are_missing():
    arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 5}
    found = trace(
        [
            {"name": "aten::mul", "ts": 1000, "dur": 500, "tid": "1"},
            {"name": "MulBackward0", "ts": 9000, "dur": 500, "tid": "2"},
            {**arrow, "ph": "s", "ts": 1000, "tid": "1"},
            {**arrow, "ph": "f", "ts": 9000, "tid": "2"},
            {**arrow, "ph": "f", "ts": 9100, "tid": "2"},
        ]
    )
    pairs = found.derived(autograd)
    assert (pairs.forward.tolist(), pairs.backward.tolist()) == ([0], [1])


# Modules


def test_modules_have_paths_and_times():
    story = Story()
    for at in (0, 200):
        story.frame("nn.Module: Net_0", at, 100)
        story.frame("nn.Module: Linear_0", at + 10, 30)
        story.op("aten::addmm", at + 15, 20, **{"Sequence number": at, "Fwd thread id": 0})
        story.kernel("k", at + 20, 10, launch_at=at + 18)
        story.frame("nn.Module: ReLU_0", at + 50, 30)
        story.op("AddmmBackward0", at + 110, 30, tid=2, **{"Sequence number": at, "Fwd thread id": 1})
        story.kernel("b", at + 130, 40, launch_at=at + 120, tid=2)
    net, linear, relu = story.trace().derived(modules)
    assert [module.path for module in (net, linear, relu)] == ["Net_0", "Net_0.Linear_0", "Net_0.ReLU_0"]
    assert [(m.name, m.depth, len(m.rows)) for m in (net, relu)] == [("Net_0", 0, 2), ("ReLU_0", 1, 2)]
    assert (net.host_ns, net.host_self_ns, linear.host_ns) == (200_000, 80_000, 60_000)
    assert (net.device_ns, net.device_self_ns, linear.device_self_ns, relu.device_ns) == (20_000, 0, 20_000, 0)
    assert (net.backward_device_ns, linear.backward_device_ns) == (80_000, 80_000)


def test_a_step_that_begins_within_a_function_takes_nothing_out_of_it():
    """As steps do that begin with the forward pass of the outermost module: its function was called before."""
    story = Story()
    for at in (0, 200):
        story.frame("train.py(4): train_step", at, 190)
        story.frame("nn.Module: Net_0", at + 10, 100)
        story.step(at, at + 20, 200)
        story.frame("nn.Module: Linear_0", at + 30, 50)
        story.op("aten::mm", at + 40, 30)
    found = story.trace()
    assert [module.path for module in found.derived(modules)] == ["Net_0", "Net_0.Linear_0"]
    assert [own_line(found, row) for row in rows_named(found, "aten::mm")] == ["train.py(4): train_step"] * 2


def test_without_frames_annotations_of_the_program_stand_for_modules():
    story = Story()
    story.step(1, 0, 100)
    story.note("encoder", 5, 50)
    story.note("Optimizer.step#SGD.step", 60, 20)
    assert [module.path for module in story.trace().derived(modules)] == ["encoder"]


# Nothing


def test_an_empty_trace_answers_everything():
    found = trace([])
    assert (found.span, found.window.us, found.main_lane, found.derived(closing_wait)) == ((0, 0), 0, -1, -1)
    assert (len(found), found.has_gpu, found.has_stacks, found.gpus, found.steps_found) == (0, False, False, (), ())
    assert (found.derived(idle_time).total, found.derived(profiler_overhead).total) == (0, 0)
    assert found.derived(modules) == ()
    assert len(found.derived(autograd)) == len(found.derived(device_time).total) == 0


def test_what_calls_the_launcher_and_generated_code_are_none_of_the_program():
    story = Story()
    story.frame("typer/main.py(1519): wrapper", 0, 200)
    story.frame("torchwhy/capture/launch/program.py(20): run", 1, 190)
    story.frame("/tmp/torchinductor_me/ab/cab.py(7): call", 2, 20)
    story.op("aten::mm", 10, 5)
    story.frame("train.py(57): <module>", 50, 100)
    story.op("aten::add", 60, 5)
    found = story.trace()
    lines = {name: own_line(found, rows_named(found, name)[0]) for name in ("aten::mm", "aten::add")}
    assert lines == {"aten::mm": "", "aten::add": "train.py: <module>"}


def test_own_frames_are_those_of_the_stacks():
    story = Story()
    story.frame("train.py(3): main", 0, 100)
    story.frame("transformers/trainer.py(9): train", 1, 60)
    story.frame("torch/nn/modules/module.py(5): _call_impl", 2, 50)
    story.op("aten::mm", 10, 5)
    story.frame("transformers/trainer.py(9): train", 0, 50, tid=7)
    story.op("aten::add", 10, 5, tid=7)
    story.op("aten::mul", 10, 5, tid=8)
    found = story.trace()
    frames = own_frames(found)
    for row in found.events.rows(Kind.OPERATOR).tolist():
        assert (found.name(frames[row]) if frames[row] >= 0 else "") == own_line(found, row)
    assert found.name(frames[rows_named(found, "aten::mm")[0]]) == "train.py(3): main"
    assert found.name(frames[rows_named(found, "aten::add")[0]]) == "transformers/trainer.py(9): train"


def test_a_frame_that_was_open_when_recording_began_has_no_line():
    story = Story(gpu=None)
    for k, name in enumerate(("torch/a.py(1): run", "train.py(31): main", "torch/profiler/profiler.py(9): start")):
        story.frame(name, k, 50 if k == 2 else 900 - k, **{"Python id": k})
    story.frame("train.py(7): step", 100, 100, **{"Python id": 3})
    story.op("aten::mm", 110, 20)
    story.op("aten::add", 300, 20)
    trace = story.trace()
    first, second = trace.events.rows(Kind.OPERATOR).tolist()
    assert trace.stack(first) == ["train.py(7): step", "train.py(?): main", "torch/a.py(1): run"]
    assert line_of(own_line(trace, second)) == "train.py: main"


def test_our_own_frames_are_not_the_programs():
    story = Story(gpu=None)
    story.frame("train.py(7): step", 0, 500)
    story.frame("torchwhy/capture/launch/hooks.py(139): give", 10, 400)
    story.frame("torch/utils/data/dataloader.py(700): __next__", 20, 300)
    story.op("aten::stack", 30, 20)
    trace = story.trace()
    row = int(trace.events.rows(Kind.OPERATOR)[0])
    assert trace.stack(row) == ["torch/utils/data/dataloader.py(700): __next__", "train.py(7): step"]
    call = int(main_calls(trace, trace.when(trace.events.rows(Kind.PYTHON)[2:]))[0])
    assert trace.name(call).startswith("torch/utils")
