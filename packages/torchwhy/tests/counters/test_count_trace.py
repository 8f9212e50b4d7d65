"""What a trace adds: calls that Python made, launches on a device."""

import threading
from types import SimpleNamespace

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import torchwhy
from torchwhy.counters.recording import read


def test_dispatches_are_calls_from_python_not_what_they_call():
    x, layer = torch.ones(2, 3), torch.nn.Linear(3, 3)
    with torch.no_grad(), torchwhy.count(trace=True) as c:
        layer(x).relu().sum()
    assert c.dispatches == 3
    assert c["operators"] == 4  # linear is a transposition and a product


def test_backward_makes_no_dispatches_of_its_own():
    loss = (torch.ones(3, requires_grad=True) * 2).sum()
    with torchwhy.count(trace=True) as c:
        loss.backward()
    assert c.dispatches == 1  # the gradient of the loss itself, made by Python's backward()
    assert c["operators"] > 1


def test_nested_traces_add_up():
    x = torch.ones(3)
    with torchwhy.count(trace=True) as outer:
        x + 1
        with torchwhy.count(trace=True) as inner:
            x + 1
        x + 1
    assert (outer.dispatches, inner.dispatches) == (3, 1)


def test_without_a_trace_dispatches_are_unknown_and_the_cpu_launches_nothing():
    with torchwhy.count() as c:
        torch.ones(3) + 1
    assert c.dispatches is None
    assert c.kernel_launches == 0


def test_another_profiler_is_left_alone():
    with profile(activities=[ProfilerActivity.CPU]) as other, torchwhy.count(trace=True) as c:
        torch.ones(3) + 1
    assert c.dispatches is None
    assert any("another profiler" in note for note in c.notes)
    assert "aten::add" in {event.key for event in other.key_averages()}


def test_a_profiler_may_run_inside_a_count():
    with torchwhy.count() as c, profile(activities=[ProfilerActivity.CPU]):
        torch.ones(3) + 1
    assert c["aten::add"] == 1


def test_one_thread_traces_at_a_time_and_the_others_say_so():
    inner = []

    def work():
        with torchwhy.count(trace=True) as c:
            torch.ones(3)
        inner.append(c.counts)

    with torchwhy.count(trace=True) as outer:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        torch.ones(3)
    assert outer.dispatches == 1
    assert inner[0].dispatches is None
    assert "another thread's count" in inner[0].notes[0]
    work()
    assert inner[1].dispatches == 1


def test_an_exception_ends_the_recording():
    with pytest.raises(ValueError, match="stop"), torchwhy.count(trace=True), torchwhy.count(trace=True):
        raise ValueError("stop")
    with torchwhy.count(trace=True) as c:
        torch.ones(3)
    assert c.dispatches == 1


def call(name, *children, scope="RecordScope.FUNCTION"):
    return SimpleNamespace(name=name, children=list(children), extra_fields=SimpleNamespace(scope=scope))


def test_launches_are_told_by_their_runtime_calls():
    names = ["cudaLaunchKernel", "cuLaunchKernelEx", "hipExtModuleLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync"]
    others = ["void gemm_kernel<float>()", "aten::add", "void batched_kernel_launcher<int>()", "launch the kernel"]
    assert read([], [*names, *others]).kernel_launches == 4


def test_annotations_and_compilation_are_no_dispatches():
    tree = [
        call("my::annotation", call("aten::add"), scope="RecordScope.USER_SCOPE"),
        call("_compile.compile_inner (dynamo_timed)", call("aten::empty")),
        call("autograd::engine::evaluate_function: AddBackward0", call("AddBackward0", call("aten::sum"))),
    ]
    assert read(tree, []).dispatches == 1


def test_regions_inside_regions_were_resumed():
    inner = call("Torch-Compiled Region: 1/0")
    tree = [call("Torch-Compiled Region: 0/0", call("CompiledFunction"), inner), call("Torch-Compiled Region: 2/0")]
    names = [f"Torch-Compiled Region: {number}/0" for number in range(3)]
    assert read(tree, names).nested == ((1, 0),)
    assert read(tree[1:], names).nested == ()


@pytest.mark.parametrize("depth", [5000])
def test_deep_call_trees_are_read(depth):
    tree = call("aten::add")
    for _ in range(depth):
        tree = call("step", tree)
    assert read([tree], []).dispatches == 1
