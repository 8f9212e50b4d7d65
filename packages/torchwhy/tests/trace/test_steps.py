"""Steps are those announced; else what certainly repeats; else none."""

from itertools import pairwise

import pytest

from tests.traces import Story
from torchwhy.trace.meaning.serving import phase
from torchwhy.trace.model.steps import main_phase


def steps(story):
    """Names, starts and ends (us) of the steps, and whether they are inferred."""
    found = story.trace().steps_found
    assert len({step.inferred for step in found}) <= 1
    return [(step.name, step.start // 1000, step.end // 1000) for step in found], any(step.inferred for step in found)


def cpu():
    return Story(gpu=None)


# Recorded


def test_recorded_steps_last_until_their_work_has_ended():
    story = Story()
    story.step(5, 0, 100)
    story.kernel("k", 150, 50, launch_at=90)
    story.step(6, 100, 100)
    story.op("aten::mm", 110, 10)
    five, six = story.trace().steps_found
    assert (five.number, five.end, five.device_end, five.inferred) == (5, 100_000, 200_000, False)
    assert (six.device_end, six.duration) == (200_000, 100_000)


def test_what_step_begins_after_the_loop_is_no_step():
    story = Story(gpu=None)
    for at in story.steps(3, 100):
        story.op("aten::mm", at + 10, 10)
    story.step(3, 300, 20)
    story.note("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 301, 5)
    assert [name for name, _, _ in steps(story)[0]] == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]


def test_steps_seen_from_the_device_are_not_counted():
    story = Story()
    for i, at in enumerate(story.steps(3, 100)):
        story.add("gpu_user_annotation", f"ProfilerStep#{i}", at + 50, 90, tid=7, pid=0)
    assert steps(story) == (
        [("ProfilerStep#0", 0, 100), ("ProfilerStep#1", 100, 200), ("ProfilerStep#2", 200, 300)],
        False,
    )


def test_of_steps_with_one_number_on_several_lanes_those_of_the_longest_lane_count():
    story = Story()
    for i, at in enumerate(story.steps(3, 90, every=100)):
        story.note(f"ProfilerStep#{i}", at + 30, 20, tid=200)
    found = story.trace()
    assert [step.lane for step in found.steps_found] == [found.main_lane] * 3
    assert [step.duration for step in found.steps_found] == [90_000] * 3


def test_two_loops_at_once_are_counted_as_one():
    story = Story()
    for i, at in enumerate(story.steps(3, 100)):
        story.note(f"ProfilerStep#{i + 50}", at + 30, 60, tid=200)
    assert [name for name, _, _ in steps(story)[0]] == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]


def test_steps_without_numbers_are_one_each():
    story = Story()
    for i in range(3):
        story.note("ProfilerStep*", 100 * i, 100)
    assert len(steps(story)[0]) == 3


# Inferred from annotations


def test_an_annotation_that_comes_back_is_a_step():
    story = cpu()
    for i in range(4):
        story.note("train_step", 100 * i, 95)
        story.op("aten::mm", 100 * i + 5, 50)
    assert steps(story) == ([("train_step", 100 * i, 100 * i + 95) for i in range(4)], True)


def test_numbers_in_a_name_do_not_make_it_another():
    story = cpu()
    for i in range(3):
        story.note(f"iteration {i}", 100 * i, 100)
    assert steps(story)[0] == [(f"iteration {i}", 100 * i, 100 * i + 100) for i in range(3)]


def test_several_annotations_a_round_make_one_step():
    story = cpu()
    for i in range(3):
        for name, at, us in (("load", 0, 20), ("forward", 20, 50), ("backward", 70, 25)):
            story.note(name, 100 * i + at, us)
            story.op("aten::mm", 100 * i + at + 1, us - 2)
    assert steps(story) == ([("between load", 0, 100), ("between load", 100, 200), ("between load", 200, 295)], True)


def test_what_comes_back_but_covers_little_is_no_step():
    story = cpu()
    story.op("aten::mm", 1000, 9000)
    for i in range(5):
        story.note("load shard", 100 * i, 90)
    assert steps(story) == ([], False)


@pytest.mark.parametrize("labels", [("fwd",), ("fwd", "bwd"), ("a", "b", "c")])
@pytest.mark.parametrize("pause", [0, 1, 90])
def test_a_step_that_is_named_after_a_label_lasts_as_long_as_one(labels, pause):
    """One that lasts longer is named after where it begins and ends."""
    story = cpu()
    for i in range(5):
        for k, label in enumerate(labels):
            at = i * (100 * len(labels) + pause) + 100 * k
            story.note(label, at, 99 if pause < 90 else 10)
            story.op("aten::mm", at + 2, 5)
    found = story.trace().steps_found
    assert len(found) in (4, 5)
    for step in found:
        assert (step.row >= 0) == (not step.name.startswith("between "))
        if step.row >= 0:
            assert step.duration == story.trace().events.dur[step.row]


@pytest.mark.parametrize("name", ["Optimizer.zero_grad#SGD.zero_grad", "Python GC"])
def test_annotations_of_pytorch_are_parts_of_steps(name):
    story = cpu()
    for i in range(5):
        story.note(name, 100 * i, 80)
        story.op(f"aten::op{i}", 100 * i + 80, 15)
    assert steps(story) == ([], False)


# Inferred from PyTorch's marks


@pytest.mark.parametrize(
    ("mark", "at", "edges"),
    [("Optimizer.step#SGD.step", 80, [90, 190, 290]), ("enumerate(DataLoader)#_X.__next__", 5, [5, 105, 205])],
)
def test_marks_of_the_loop_separate_steps(mark, at, edges):
    story = cpu()
    for i in range(3):
        story.op(f"aten::op{i}", 100 * i + 20, 50)
        story.note(mark, 100 * i + at, 10)
    expected = [(f"between {mark}", a, b) for a, b in pairwise(edges)]
    assert steps(story) == (expected, True)


def test_two_marks_are_too_few():
    story = cpu()
    for i in range(2):
        story.op(f"aten::op{i}", 100 * i + 20, 50)
        story.note("Optimizer.step#SGD.step", 100 * i + 80, 10)
    assert steps(story) == ([], False)


# Inferred from modules


@pytest.mark.parametrize(
    ("modules", "starts"),
    [
        (["Net_0"] * 3, [0, 100, 200]),
        (["Loss_0", "Net_0"] * 3, [0, 200, 400]),
        (["Linear_0", "Linear_1", "Linear_2"], []),
        (["Net_0"] * 2, []),
    ],
)
def test_an_instance_of_a_module_called_again_begins_a_step(modules, starts):
    story = cpu()
    for i, module in enumerate(modules):
        story.frame(f"nn.Module: {module}", 100 * i, 90)
        story.frame("nn.Module: Linear_9", 100 * i + 10, 20)
        story.op(f"aten::op{i}", 100 * i + 10, 70)
    assert [start for _, start, _ in steps(story)[0]] == starts


# Inferred from the calls alone


def loop(story, rounds, names, before=(), after=()):
    at = 0
    for name in (*before, *names * rounds, *after):
        story.op(name, at, 8)
        at += 10
    return story


def test_a_sequence_of_calls_over_and_over_is_a_loop():
    found, inferred = steps(loop(cpu(), 3, ("aten::mm", "aten::item")))
    name = "between aten::item"
    assert (found, inferred) == ([(name, 0, 20), (name, 20, 40), (name, 40, 58)], True)


def test_a_round_cut_off_at_the_end_is_no_step():
    assert len(steps(loop(cpu(), 3, ("aten::mm", "aten::item"), after=("aten::mm",)))[0]) == 3


@pytest.mark.parametrize(
    "story",
    [
        loop(cpu(), 2, ("aten::mm", "aten::item")),
        loop(cpu(), 3, ("aten::mm", "aten::item"), before=("aten::randn",)),
        loop(cpu(), 3, ("aten::linear", "aten::relu")),
        loop(cpu(), 12, ("aten::layer_norm", "aten::mm"), before=("aten::embedding",), after=("aten::mm", "aten::sum")),
        loop(cpu(), 50, ("aten::mul",)),
        loop(cpu(), 1, ("aten::mm", "aten::relu", "aten::sum")),
    ],
    ids=["only twice", "something before", "perhaps layers", "layers of one pass", "one operator", "once"],
)
def test_in_doubt_there_are_no_steps(story):
    assert steps(story) == ([], False)


def test_a_compiled_region_over_and_over_is_a_loop():
    found, inferred = steps(loop(cpu(), 4, ("Torch-Compiled Region: 0/0",)))
    assert (len(found), inferred) == (4, True)


def test_a_graph_break_does_not_double_the_rounds():
    names = ("TorchDynamo Cache Lookup", "Torch-Compiled Region: 0/0")
    found, _ = steps(loop(cpu(), 4, (*names, "aten::item", names[0], "Torch-Compiled Region: 1/0")))
    assert [start for _, start, _ in found] == [0, 50, 100, 150]
    assert found[0][0] == "between Torch-Compiled Region: 0/0"
    assert steps(loop(cpu(), 6, (names[0], "aten::mm"))) == ([], False)


def graphs(numbers):
    story = Story()
    for i, number in enumerate(numbers):
        launch = story.call("cudaGraphLaunch", 100 * i, 80)
        args = {"correlation": launch["args"]["correlation"], "stream": 7, "graph id": number}
        story.add("kernel", "k", 100 * i + 10, 60, tid=7, pid=0, **args)
    return story


def test_a_graph_over_and_over_is_a_loop():
    assert len(steps(graphs([4, 4, 4]))[0]) == 3
    assert [start for _, start, _ in steps(graphs([4, 9, 4, 9, 4, 9]))[0]] == [0, 200, 400]
    assert steps(graphs([1, 2, 3, 4])) == ([], False)


def test_an_empty_trace_has_no_steps():
    assert steps(cpu()) == ([], False)


# Of inference servers


SERVERS = {
    "SGLang": ["step[EXTEND bs=1 toks=512]", "step[DECODE bs=8]", "step[DECODE bs=9]", "step[DECODE bs=9]"],
    "vLLM": [
        "execute_context_1(512)_generation_0(0)",
        *(f"execute_context_0(0)_generation_{n}({n})" for n in (8, 9, 9)),
    ],
    "vLLM until 2025": ["execute_new_1_cached_0", *(f"execute_new_0_cached_{n}" for n in (8, 9, 9))],
    "TensorRT-LLM": [
        f"[Executor] _forward_step {i}: {int(i == 0)} ctx reqs, {512 * (i == 0)} ctx tokens, {8 * (i > 0)} gen reqs"
        for i in range(4)
    ],
}


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_announces_its_steps_and_their_phase(server):
    story = Story()
    for i, name in enumerate(SERVERS[server]):
        at, us = (0, 900) if i == 0 else (900 + 100 * i, 80)
        story.note(name, at, us)
        story.note("forward", at + 5, us / 2)
        story.op("aten::mm", at + 10, us / 4)
        story.kernel("k", at + us, us / 3, launch_at=at + 20)
    found = story.trace()
    assert [step.name for step in found.steps_found] == SERVERS[server]
    assert not any(step.inferred for step in found.steps_found)
    assert [step.phase for step in found.steps_found] == ["prefill", "decode", "decode", "decode"]
    assert [step.name for step in main_phase(found.steps_found)] == SERVERS[server][:1]
    assert [row["phase"] for row in found.steps().rows()] == ["prefill", "decode", "decode", "decode"]


def test_phases_of_odd_rounds():
    names = ["step[TARGET_VERIFY bs=4]", "step[DRAFT_EXTEND_V2 bs=4]", "step[IDLE bs=0]", "step[SPLIT_PREFILL bs=1]"]
    names += ["execute_context_2(900)_generation_7(7)", "execute_context_0(0)_generation_0(0)", "step[5]", "execute"]
    assert [phase(name) for name in names] == [
        "verify", "draft", "idle", "prefill", "mixed", "idle", "", ""
    ]  # fmt: skip


def test_steps_without_phases_are_all_of_one():
    story = Story()
    for i in range(3):
        story.step(i, 100 * i, 100)
    assert len(main_phase(story.trace().steps_found)) == 3
    assert main_phase(()) == ()


# Cold calls


def optimizing(rounds, before=()):
    """A loop of 20 us rounds with an optimizer step each, after some long calls."""
    story, at = cpu(), 0.0
    for i, us in enumerate(before):
        story.op(f"aten::first_{i}", at, us)
        at += us
    for _ in range(rounds):
        story.op("aten::mm", at, 12)
        story.note("Optimizer.step#AdamW.step", at + 12, 7)
        at += 20
    return story


def test_one_long_first_call_does_not_hide_forty_steps():
    found, inferred = steps(optimizing(40, before=[995]))
    assert (len(found), inferred) == (39, True)
    assert found[0][0] == "between Optimizer.step#AdamW.step"
    assert len(steps(optimizing(40, before=[995, 300, 400]))[0]) == 39


def test_many_long_calls_are_the_program():
    assert steps(optimizing(40, before=[400] * 5))[0] == []
    assert steps(optimizing(9, before=[995]))[0] == []
