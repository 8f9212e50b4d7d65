"""Counts read off a recording are those that `count` takes, step by step."""

from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import torchwhy
from torchwhy.counters.compiler import Compiled, CompilerMark
from torchwhy.counters.counts import CopyTotal, Sync
from torchwhy.counters.from_trace import Recorded, counts_from_trace

NOTHING = Compiled((), (), ())


def recorded(step, times=1, **settings):
    """Counts of a step, run `times` times below the ranges that a profiler's schedule makes."""
    mark = CompilerMark()
    with profile(activities=[ProfilerActivity.CPU], **settings) as p:
        for number in range(times):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                step()
    tree = p.profiler.kineto_results.experimental_event_tree()
    memory = settings.get("profile_memory", False)
    return counts_from_trace(
        [Recorded(tree, mark.since())], memory=memory, device=False, device_in_use=False, taken_in={}
    )


def cnn_training():
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1)),
        *(nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(36, 5)),
    )
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.randn(2, 3, 8, 8)), torch.tensor([1, 2]))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def transformer_inference():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    return torch.inference_mode()(lambda: model(torch.randn(2, 8, 32)))


def compiled_function():
    torch._dynamo.reset()
    model = torch.compile(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)), backend="aot_eager")
    x = torch.randn(3, 4)
    return torch.no_grad()(lambda: model(x).sum())


PROGRAMS = [cnn_training, transformer_inference, compiled_function]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("settings", [{}, {"with_stack": True, "profile_memory": True}], ids=["plain", "stacks"])
def test_a_recording_counts_what_count_counts(program, settings):
    check_counts(program, settings)


def check_counts(program, settings):
    """What a recording of a step counts is what `count` counts."""
    step = program()
    step()  # compiles, and makes the optimizer's state
    step()
    with torchwhy.count(trace=True) as c:
        step()
    counts = recorded(step, 2, **settings)
    # A dispatch mode makes autograd dispatch its copies of tensor handles; without one they are no operators.
    seen, expected = dict(counts.operators), dict(c.operators)
    if program is cnn_training:
        assert expected.pop("aten::detach") >= seen.pop("aten::detach") == 6  # one for each new gradient
        assert any("aten::detach" in note for note in counts.notes)
    assert seen == expected
    assert (counts.native_calls, counts.dispatches, counts["copies"]) == (c.native_calls, c.dispatches, c["copies"])
    assert (counts.kernel_launches, counts.syncs, counts["graph_breaks"]) == (0, (), 0)
    assert not any("the others" in note for note in counts.notes)


A = torch.linspace(-1, 1, 16).reshape(4, 4)
CALLS = {
    "max of two": lambda: torch.max(A, A),
    "max of one": lambda: torch.max(A),
    "split by sizes": lambda: A.split([1, 3]),
    "split": lambda: A.split(2),
    "where": lambda: torch.where(A > 0, A, 1.0),
    "where as indices": lambda: torch.where(A > 0),
    "std": lambda: A.std(),
    "repeat": lambda: A.repeat_interleave(2),
    "repeat by tensor": lambda: A.repeat_interleave(torch.tensor([1, 2, 1, 1]), 0),
    "from Python": lambda: (torch.tensor([1.0]), torch.as_tensor([2]), torch.zeros(2).new_tensor([1.0])),
    "reshape": lambda: A.t().expand(2, 4, 4).reshape(-1),
    "convert": lambda: A.to(torch.float64).float().contiguous().t().contiguous(),
    "interpolate": lambda: nn.functional.interpolate(A[None, None], scale_factor=2, mode="bilinear"),
    "attention": lambda: nn.functional.scaled_dot_product_attention(A[None], A[None], A[None]),
    "stft": lambda: torch.stft(A.flatten(), 8, window=torch.hann_window(8), return_complex=True),
    "einsum": lambda: torch.einsum("ij,jk->ik", A, A),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_recipes_count_as_what_they_call(call):
    call()
    with torchwhy.count(trace=True) as c:
        call()
    counts = recorded(call)
    assert counts.operators == c.operators
    assert (counts.dispatches, counts["copies"]) == (c.dispatches, c["copies"])


def test_where_steps_differ_the_largest_is_kept_and_told():
    lengths = iter([1, 3, 1])
    counts = recorded(lambda: [A + A for _ in range(next(lengths))], 3)
    assert counts.operators == {"aten::add": 3}
    assert "operators: 3 in step 1, 1 in the others; the largest is kept" in counts.notes


def test_as_many_operators_but_other_ones_are_told():
    calls = iter([torch.sin, torch.cos])
    counts = recorded(lambda: next(calls)(A), 2)
    assert counts.operators == {"aten::sin": 1}
    assert any(note.startswith("operators: as many in each step but not the same") for note in counts.notes)


def test_without_steps_all_of_it_is_counted_and_told():
    with profile(activities=[ProfilerActivity.CPU]) as p:
        A.sin().cos()
    tree = p.profiler.kineto_results.experimental_event_tree()
    counts = counts_from_trace([Recorded(tree, NOTHING)], memory=False, device=False, device_in_use=False, taken_in={})
    assert counts["operators"] == 2
    assert any("no steps were recorded" in note for note in counts.notes)


def test_allocations_are_known_only_where_memory_was_recorded():
    assert (recorded(A.sin).allocations, recorded(A.sin)["allocated_bytes"]) == (None, None)
    counts = recorded(A.sin, 2, profile_memory=True)
    assert (counts.allocations, counts.allocated_bytes) == (1, 64)


def test_bytes_of_copies_are_unknown_and_no_copies_have_none():
    assert (recorded(A.clone)["copies_htoh"], recorded(A.clone)["copied_bytes"]) == (1, None)
    assert recorded(A.sin)["copied_bytes"] == 0


def test_compiling_is_counted_and_its_own_operators_are_not():
    torch._dynamo.reset()
    function = torch.compile(lambda x: x.sin() + 1, backend="eager")
    counts = recorded(lambda: function(A))
    assert counts.compilations == 1
    assert counts.operators == {"aten::sin": 1, "aten::add": 1}


def test_a_break_in_code_compiled_earlier_is_found():
    torch._dynamo.reset()

    @torch.compile(backend="eager")
    def function(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    function(A)
    counts = recorded(lambda: function(A), 2)
    assert (counts["graph_breaks"], counts.compilations) == (1, 0)


def call(name, start, end, *children, tag="TorchOp", **fields):
    event = SimpleNamespace(name=name, start_time_ns=start, end_time_ns=end, children=list(children), parent=None)
    event.tag, event.extra_fields = SimpleNamespace(name=tag), SimpleNamespace(scope="", **fields)
    for child in children:
        child.parent = event
    return event


def on_gpu():
    """Two steps; the copy that the first one asks for runs during the second, as does a backward thread's kernel."""
    copy = call("cudaMemcpyAsync", 12, 13, call("Memcpy DtoH (Device -> Pageable)", 25, 26, tag="Kineto"), tag="Kineto")
    wait = call("cudaStreamSynchronize", 14, 15, tag="Kineto")
    item = call("aten::item", 11, 16, call("aten::_local_scalar_dense", 11, 16, copy, wait))
    frame = call("train.py(7): step", 10, 17, item, tag="PyCall")
    product = call("aten::mm", 21, 24, call("cudaLaunchKernel", 22, 23, tag="Kineto"))
    backward = call("autograd::engine::evaluate_function: MmBackward0", 21, 24, product)
    after = call("cudaDeviceSynchronize", 40, 41, tag="Kineto")
    return [call("ProfilerStep#4", 10, 20, frame), call("ProfilerStep#5", 20, 30), backward, after]


def test_launches_copies_and_waits_belong_to_the_step_that_asked_for_them():
    counts = counts_from_trace(
        [Recorded(on_gpu(), NOTHING)], memory=False, device=True, device_in_use=True, taken_in={}
    )
    assert counts.kernel_launches == 1
    assert counts.syncs == (Sync("aten::_local_scalar_dense", "train.py(7): step", 1),)
    assert counts.copies == {"DtoH": CopyTotal(1, None)}
    assert (counts["copies_dtoh"], counts["bytes_dtoh"], counts["copies"], counts["bytes_htod"]) == (1, None, 1, 0)
    assert "kernel_launches: 1 in step 5, 0 in the others; the largest is kept" in counts.notes
    assert Counter(counts.operators).total() == 1


def test_a_gpu_in_use_that_was_not_recorded_leaves_its_numbers_unknown():
    counts = counts_from_trace([Recorded([], NOTHING)], memory=False, device=False, device_in_use=True, taken_in={})
    assert [counts[name] for name in ("kernel_launches", "syncs", "copies", "copies_htod", "copied_bytes")] == [
        None
    ] * 5
    assert any("a GPU was in use and not recorded" in note for note in counts.notes)
    assert "-" in str(counts)
