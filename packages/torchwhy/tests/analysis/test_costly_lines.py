"""Where in the program time passes: lines are those that made the calls, and remarks hold against the events."""

import random
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from tests.present.documents import shown
from tests.traces import Story, a_finding, samples
from torchwhy.analysis import line_remarks
from torchwhy.analysis.costly_lines import LEAST, MOST, costly_lines
from torchwhy.present.hotspots import costly_lines_block
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import Diagnosis
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.program_lines import _turns, program_lines
from torchwhy.trace.derived.stack_samples import stack_samples

NODE = "autograd::engine::evaluate_function: "
EVERY = 20
"""Microseconds between samples."""


def program(*calls, steps=4, backward=(), loops=1, frames=True, waited=0.0):
    """Steps that run `forward` of train.py `loops` times, whose lines make calls: (line, name, us, dims, more).

    `backward` has the time of the backward pass of a call, by its place. Samples of the stack show each line; a call
    without a name is Python. The program waited this part of its time for a processor.
    """
    story, seen = Story(gpu=None), {}
    main = ["train.py(90): main |loss = model(x)", "train.py(99): <module> |main()"]
    length = loops * (sum(us for _, _, us, *_ in calls) + 4) + sum(dict(backward).values()) + 4
    length += -length % EVERY
    if frames:
        story.frame("train.py(99): <module>", 0, steps * length)
        story.frame("train.py(80): main", 1, steps * length - 2)
    for number, at in enumerate(story.steps(steps, length)):
        now = at
        for run in range(loops):
            if frames:
                story.frame("train.py(7): forward", now + 1, sum(us for _, _, us, *_ in calls) + 2)
            now += 2
            for k, (line, name, us, dims, *more) in enumerate(calls):
                if name:
                    sequence = 1000 * number + 100 * run + k
                    story.op(name, now, us, Input_Dims=dims, Sequence_number=sequence, **(more[0] if more else {}))
                for moment in range(-(-now // EVERY), -(-(now + us) // EVERY)):
                    seen[moment] = [f"train.py({line}): forward |line_{line}()", *main]
                now += us
            now += 2
        for k, us in dict(backward).items():
            story.op(NODE + "SomeBackward0", now, us, Sequence_number=1000 * number + k, Fwd_thread_id=1)
            now += us
    if waited:
        story.top["torchwhy_processor_time"] = {"cores": 2, "wall_us": 1e6, "waited_us": waited * 1e6}
    return samples(story, [seen.get(moment, main) for moment in range(steps * length // EVERY)], EVERY).trace()


MM = "aten::mm"
SQUARE = [[500, 500], [500, 500]]


def only(trace, findings=()):
    (line,) = costly_lines(trace, findings)
    return line


def test_a_line_has_its_source_its_caller_its_calls_and_its_backward_pass():
    line = only(program((12, MM, 1000, SQUARE), backward={0: 3000}))
    assert (line.line, line.source) == ("train.py(12): forward", "line_12()")
    assert (line.caller, line.caller_source) == ("train.py(90): main", "loss = model(x)")
    assert (line.operators[0].calls, line.operators[0].shapes) == (4, ((500, 500), (500, 500)))
    assert line.time_us == 16_000
    assert line.backward_us == 12_000
    assert line.share == pytest.approx(1, abs=0.01)


def test_how_often_a_function_runs_is_counted():
    assert only(program((12, MM, 1500, SQUARE), loops=3)).runs == 12


def test_calls_with_the_same_shapes_at_two_lines_of_a_function_stay_apart():
    found = costly_lines(program((12, MM, 4000, SQUARE), (13, MM, 2000, SQUARE), backward={1: 1500}))
    assert [(line.line, line.time_us, line.backward_us) for line in found] == [
        ("train.py(12): forward", 16_000, 0),
        ("train.py(13): forward", 14_000, 6_000),
    ]


def test_calls_that_no_sample_meets_count_with_their_like():
    line = only(program(*[(12, MM, 12, SQUARE)] * 40))
    assert [(one.name, one.calls) for one in line.operators] == [(MM, 160)]


@pytest.mark.parametrize("frames", [True, False])
def test_samples_between_calls_place_none(frames):
    """Python of line 13 stands around every call of line 12, and no sample meets one of them."""
    found = costly_lines(program(*[(12, MM, 2, SQUARE), (13, "", 258, None)] * 30, frames=frames))
    assert [(line.line, len(line.operators)) for line in found] == [("train.py(13): forward", 0)]


def test_few_samples_of_many_operators_place_none():
    """Samples meet two operators of five that are alike in nothing but their function."""
    calls = [(12 + k, f"aten::op_{k}", 8, [[k]]) for k in range(5)]
    found = program(*calls, (20, MM, 300, SQUARE), steps=2, frames=False).derived(program_lines)
    assert [line.line for line in found if len(line.calls)] == ["train.py(20): forward"]


def test_functions_all_of_whose_calls_are_placed_stand_beside_others():
    story, places = Story(gpu=None), []
    for at in story.steps(4, 1000):
        for begins, us, line in ((at + 20, 560, 12), (at + 620, 4, 30), (at + 640, 300, 13)):
            story.frame(f"train.py({line}): of_{line}", begins, us)
            story.op(MM, begins + 1, us - 2, Input_Dims=SQUARE)
        places += [["train.py(12): of_12 | x"]] * 30 + [["train.py(14): of_13 | y"]] * 20
    lines = {line.line: len(line.calls) for line in samples(story, places, EVERY).trace().derived(program_lines)}
    assert lines == {"train.py(12): of_12": 4, "train.py(14): of_13": 4, "train.py(30): of_30": 4}


INNERMOST = {
    "torch/autograd/graph.py(979): _engine_run_backward": 0,
    "torchwhy/capture/launch/optimizers.py(49): _announce": 0,
    "torch/_ops.py(1279): __call__ < torch/autograd/profiler.py(919): __enter__": 0,
    "torch/nn/modules/linear.py(134): forward < torchwhy/capture/launch/calls.py(99): run": 16_000,
    "json/encoder.py(200): encode": 16_000,
}


@pytest.mark.parametrize(("inner", "python_us"), INNERMOST.items())
def test_neither_the_backward_pass_nor_the_recorder_is_the_programs_python(inner, python_us):
    story, places = Story(gpu=None), []
    for at in story.steps(4, 5000):
        story.op(MM, at + 4001, 900, Input_Dims=SQUARE)
        places += [[*inner.split(" < "), "train.py(12): step | loss.backward()"]] * 200
        places += [["train.py(13): step | x @ x"]] * 50
    found = {one.line: one for one in samples(story, places, EVERY).trace().derived(program_lines)}
    python = found["train.py(12): step"].python.total / 1000 if "train.py(12): step" in found else 0
    assert python == pytest.approx(python_us, rel=0.02)


def test_calls_of_a_recursive_function_are_counted_at_each_depth():
    """`walk` calls itself twice, three deep: 7 calls a step, each of which computes at line 9."""
    story, places = Story(gpu=None), []
    root = ["train.py(71): forward |walk(x)", "train.py(90): main |net(x)"]

    def walk(at, depth, above):
        us = 100 * (2 ** (depth + 1) - 1)
        story.frame("train.py(5): walk", at, us)
        story.op(MM, at + us - 90, 80, Input_Dims=SQUARE)
        own = [["train.py(9): walk |a @ b", *above]] * 5
        if not depth:
            return own
        inner = ["train.py(7): walk |walk(x)", *above]
        half = (us - 100) // 2
        return [*walk(at, depth - 1, inner), *walk(at + half, depth - 1, inner), *own]

    story.frame("train.py(80): main", 0, 4 * 800)
    for at in story.steps(4, 800):
        story.frame("train.py(70): forward", at, 780)
        places += [*walk(at, 2, root), *[root] * 5]
    line = next(one for one in costly_lines(samples(story, places, EVERY).trace()) if one.operators)
    assert (line.line, line.runs) == ("train.py(9): walk", 28)
    assert line.caller == "train.py(7): walk"


def test_words_on_how_often_a_line_runs_and_on_sizes():
    calls = [(12, MM, 400, SQUARE), (12, "aten::randn", 300, [[]])]
    said = " ".join(shown(describe(program(*calls, loops=3), Diagnosis((), {}, asked=("B1",))), "text").split())
    assert "line_12(), in 3 runs of its function a step, as in train.py(90): main: loss = model(x)." in said
    assert "3 aten::randn a step. " in said


@pytest.mark.parametrize(("caller", "shown_twice"), [("<listcomp>", False), ("<module>", False), ("", True)])
def test_a_comprehension_in_a_line_has_no_other_line_as_caller(caller, shown_twice):
    line = costly_lines(program((12, MM, 400, SQUARE)))[0]
    place = f"train.py(7): {caller}" if caller else "train.py(71): main"
    line = msgspec.structs.replace(
        line, line="train.py(7): <listcomp>", caller=place, caller_source="x = [[f(i) for i in a] for a in b]"
    )
    [rows] = costly_lines_block((line,), 4)
    assert ("as in" in str(rows)) is shown_twice


def test_samples_alone_tell_lines_too():
    found = costly_lines(program((12, MM, 4000, SQUARE), (13, MM, 2000, SQUARE), backward={1: 1500}, frames=False))
    assert [(line.line, line.time_us, line.backward_us) for line in found] == [
        ("train.py(12): forward", 16_000, 0),
        ("train.py(13): forward", 14_000, 6_000),
    ]
    assert found[0].caller == "train.py(90): main"


def test_the_report_shows_lines_above_nothing_found_and_below_findings():
    trace = program((12, MM, 4000, SQUARE))
    told = shown(describe(trace, Diagnosis((), {}, asked=("B1",))), "text")
    assert told.index("train.py(12): forward: line_12()") < told.index("1 rule looked")
    finding = replace(a_finding(trace.window, severity="high", time_us=1.0), slug="cpu-hotspot", code="B22")
    told = shown(describe(trace, Diagnosis((finding,), {}, asked=("B1",))), "text")
    assert told.index("Found") < told.index("Where in the program")


def test_python_between_operators_counts_for_its_line():
    line = only(program((12, "", 5000, None), (13, MM, 500, SQUARE)))
    assert line.line == "train.py(12): forward"
    assert line.python_us == pytest.approx(20_000, rel=0.05)
    assert line.bound == "python"


def test_what_a_finding_explains_is_left_to_it():
    trace = program((12, MM, 4000, SQUARE))
    when = trace.when(trace.events.of(line_remarks.HEAVY))
    finding = {"severity": "high", "time_us": 1.0, "stretches": when}
    assert costly_lines(trace, [a_finding(trace.window, slug="product-order", **finding)]) == ()
    assert len(costly_lines(trace, [a_finding(trace.window, slug="cpu-hotspot", **finding)])) == 1
    assert len(costly_lines(trace, [a_finding(trace.window, slug="x", **finding | {"severity": "info"})])) == 1


def test_a_trace_without_places_has_no_lines():
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        story.op(MM, at + 10, 900)
    assert costly_lines(story.trace()) == ()


@pytest.mark.parametrize("seed", range(20))
def test_every_call_is_at_the_line_that_makes_it(seed):
    """Random programs: no call at another line than its own, unless at its function; lines share no time."""
    draw = random.Random(seed)
    calls = [
        (draw.randint(10, 14), draw.choice([MM, "aten::add", "aten::sum", ""]), draw.choice([20, 40, 200, 700]), SQUARE)
        for _ in range(draw.randint(1, 8))
    ]
    trace = program(*calls, loops=draw.randint(1, 2), steps=draw.randint(1, 4))
    true_line = dict(zip(*_true_lines(trace), strict=True))
    outer, placed = trace.derived(outer_operators), []
    for line in trace.derived(program_lines):
        placed += line.calls.tolist()
        where = {true_line[row] for row in line.calls.tolist()}
        assert where <= {line.line} or line.line == "train.py(7): forward", "calls of other lines"
        assert line.when.clip(trace.window.start, trace.window.end).total == line.when.total
        assert (line.python & trace.events.times_of(outer)).total == 0
    assert len(placed) == len(set(placed))
    assert set(placed) <= set(outer.tolist())
    found = costly_lines(trace)
    assert len(found) <= MOST
    assert all(line.share >= LEAST for line in found)
    assert sum(line.share for line in found) <= 1.001


def _true_lines(trace):
    """Outermost operators, and the line of the last sample before the end of each: the program waits for each call."""
    rows, seen = trace.derived(outer_operators), trace.derived(stack_samples)
    last = np.searchsorted(seen.times, trace.events.end[rows]) - 1
    return rows.tolist(), [seen.own[seen.which[i]] for i in last.tolist()]


FACTORS = "aten::linalg_cholesky"
BIG = [[400, 400], [400, 400]]
REMARKS = {
    "_python_runs": (
        "For 9\\d% of its time no operator runs",
        lambda: program((12, "", 5000, None), (12, "aten::add", 100, [[9]])),
        lambda: program((12, "", 100, None), (12, MM, 5000, BIG)),
    ),
    "_growth": (
        "The input of aten::cat grows",
        lambda: growing(100),
        lambda: growing(0),
    ),
    "_results_read": (
        r"aten::mm makes \(400, 400\), which only aten::sum reads",
        lambda: program((12, MM, 4000, BIG), (13, "aten::sum", 100, [[400, 400]])),
        lambda: program((12, MM, 4000, BIG), (13, "aten::add", 100, [[400, 400], [400, 400]])),
    ),
    "_same_elsewhere": (
        r"aten::linalg_cholesky of \(400, 400\) runs 2 times a step",
        lambda: program(
            (12, "aten::linalg_cholesky", 3000, [[400, 400]]), (14, "aten::linalg_cholesky", 900, [[400, 400]])
        ),
        lambda: program(
            (12, "aten::linalg_cholesky", 3000, [[400, 400]]), (14, "aten::linalg_cholesky", 900, [[40, 40]])
        ),
    ),
    "_many_calls": (
        "It makes 200 calls a step of 10.0 us each",
        lambda: program(*[(12, "aten::add", 10, [[9]])] * 200),
        lambda: program(*[(12, "aten::add", 10, [[9]])] * 20),
    ),
    "_passes": (
        r"6 elementwise operators a step pass over tensors of \(400, 400\)",
        lambda: program(*[(12, "aten::mul", 500, [[400, 400], []])] * 6),
        lambda: program(*[(12, "aten::mul", 500, [[4, 4], []])] * 6),
    ),
    "_slower_than_others": (
        "Its matmul reaches 64 GFLOP/s; the fastest call of its kind in this recording 640",
        lambda: program((12, MM, 2000, BIG), (14, MM, 200, BIG)),
        lambda: program((12, MM, 2000, BIG), (14, MM, 1900, BIG)),
    ),
    "_not_trained": (
        "The backward pass doesn't go through it",
        lambda: program((12, MM, 4000, BIG), (14, MM, 200, BIG), backward={1: 200}),
        lambda: program((12, MM, 4000, BIG), (14, MM, 200, BIG), backward={0: 200}),
    ),
    "_inner": (
        "Its backward pass takes 5 times as long as its calls",
        lambda: program((12, MM, 900, BIG), backward={0: 4500}),
        lambda: program((12, MM, 900, BIG), backward={0: 1800}),
    ),
    "_wide": (
        "It computes in float64",
        lambda: program((12, MM, 900, BIG, {"Input_type": ["double", "double"]})),
        lambda: program((12, MM, 900, BIG, {"Input_type": ["float", "float"]})),
    ),
}
"""For each kind of remark its words, a program that gets it, and one that comes near and doesn't."""


def growing(more):
    story = Story(gpu=None)
    places = []
    for number, at in enumerate(story.steps(5, 1000)):
        story.op("aten::cat", at + 100, 800, Input_Dims=[[[1000 + more * number, 8], [10, 8]], []])
        places += [["train.py(12): step | x = torch.cat([x, y])"]] * 50
    return samples(story, places, EVERY).trace()


def test_every_kind_of_remark_has_cases():
    assert {look.__name__ for look in line_remarks._REMARKS_ON} == set(REMARKS)


@pytest.mark.parametrize("kind", REMARKS)
def test_a_remark_is_made_where_it_holds_alone(kind):
    words, holds, near = REMARKS[kind]
    assert re.search(words, " ".join(costly_lines(holds())[0].remarks))
    assert not re.search(words, " ".join(remark for line in costly_lines(near()) for remark in line.remarks))


def test_a_result_that_nothing_reads_is_remarked_upon():
    trace = program((12, MM, 2000, BIG), (12, "aten::tanh", 500, [[400, 400]]), loops=1)
    assert "It makes a result of (400, 400) 4 times in a row; no operator reads it in between." in only(trace).remarks
    read = program((12, MM, 2000, BIG), (12, "aten::tanh", 500, [[400, 400]]), (12, "aten::mean", 9, [[400, 400]]))
    assert not any("No operator reads" in remark for remark in only(read).remarks)


def test_rates_are_those_of_the_shapes():
    line = only(program((12, MM, 2000, [[1000, 500], [500, 1000]])))
    assert line.bound == "arithmetic"
    assert line.gflop_s == pytest.approx(2 * 1000 * 500 * 1000 / 2e6)
    copies = only(program((12, "aten::copy_", 2000, [[1000, 1000], [1000, 1000]], {"Input_type": ["float", "float"]})))
    assert copies.bound == "memory"
    assert copies.gb_s == pytest.approx(2 * 4e6 / 2e6)


def test_groups_of_calls_are_numbered_by_their_turn():
    assert _turns(np.array([5, 7, 5, 5, 7])).tolist() == [0, 0, 1, 2, 1]


def test_a_busy_machine_says_nothing_of_what_decides_and_of_rates():
    (idle,), (busy,) = (costly_lines(program((12, MM, 900, SQUARE), waited=waited)) for waited in (0.0, 0.5))
    assert idle.bound == "arithmetic"
    assert idle.gflop_s
    assert (busy.bound, busy.gflop_s, busy.gb_s) == ("", None, None)


@pytest.mark.parametrize("launches", [1, 3])
@pytest.mark.parametrize("backward_us", [0, 20, 900])
@pytest.mark.parametrize("kernel_us", [5, 40, 300])
def test_of_a_line_on_a_gpu_no_part_is_longer_than_the_whole(launches, backward_us, kernel_us):
    """All of them are times of the device, however long the host takes."""
    story, number = Story(), 0
    story.frame("train.py(99): <module>", 0, 20_000)
    for at in story.steps(4, 5000):
        story.frame("train.py(7): forward", at, 2000)
        for name, us in (("aten::layer_norm", 3), ("aten::mm", kernel_us)):
            number += 1
            host = 500 if name == "aten::layer_norm" else 60
            start = at + 10 + 600 * (name == "aten::mm")
            story.op(name, start, host, Input_Dims=[[64, 64]], Sequence_number=number)
            for k in range(launches):
                story.kernel("sgemm", start + 10 + k * us, us, launch_at=start + 1 + k, launch_us=1)
            if backward_us:
                then = at + 2100 + 1000 * (name == "aten::mm")
                story.op(NODE + "SomeBackward0", then, backward_us, tid=200, Sequence_number=number, Fwd_thread_id=1)
                story.kernel("sgemm", then + 5, 10, launch_at=then + 1, launch_us=1, tid=200)
    found = costly_lines(story.trace())
    for line in found:
        assert line.backward_us <= line.time_us + 1e-9
        assert line.operators[0].name == "aten::mm"
        assert sum(one.time_us for one in line.operators) <= line.time_us - line.backward_us + 1e-9
        assert (line.backward_us > 0) == bool(backward_us)
    assert found or launches * kernel_us < 900
