"""Operators, labels, modules, the memory's peak and the critical path, each with the numbers of the trace."""

import pytest

from tests.analysis.programs import computing, overhead, report_on, training, waiting
from tests.present.documents import shown
from tests.traces import Story
from torchwhy.analysis.call_tree import TreeCall, call_tree
from torchwhy.analysis.critical_path import critical_parts
from torchwhy.analysis.hotspots import LabelTime, OperatorTime, label_times, module_times, operator_times
from torchwhy.analysis.memory_peak import MemoryPeak, memory_peaks
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose


def forward_and_backward():
    """A module whose operator takes 100 us forward and 200 us backward, called by one line."""
    story = Story(gpu=None)
    story.step(0, 0, 1000)
    story.frame("train.py(7): step", 0, 990)
    story.frame("nn.Module: Linear_0", 10, 150)
    story.op("aten::addmm", 20, 100, **{"Sequence number": 1})
    story.op(
        "autograd::engine::evaluate_function: AddmmBackward0", 300, 200, **{"Sequence number": 1, "Fwd thread id": 1}
    )
    return story


def test_operators_have_their_share_and_the_programs_line():
    found = operator_times(forward_and_backward().trace())
    assert found == (
        OperatorTime("autograd::engine::evaluate_function: AddmmBackward0", 1, 200, 2 / 3, "train.py(7): step"),
        OperatorTime("aten::addmm", 1, 100, 1 / 3, "train.py(7): step"),
    )


def test_on_a_gpu_operators_have_the_work_they_launched():
    (found,) = operator_times(computing().trace())
    assert (found.name, found.time_us, found.share) == ("aten::mm", 3 * 975, 1)


def test_the_backward_pass_is_charged_to_the_module_and_line_of_its_forward():
    (module,) = module_times(forward_and_backward().trace())
    assert (module.path, module.calls, module.host_us, module.backward_host_us) == ("Linear_0", 1, 150, 200)
    assert module.line == "train.py(7): step"


def labelled():
    story = forward_and_backward()
    story.note("forward", 5, 200)
    return story


def test_labels_are_told_beside_the_breakdown():
    assert label_times(labelled().trace()) == (LabelTime("forward", 1, 200, 0.2, 0),)
    assert "Time by label (1.00 ms)\n  label    share    host  calls\n  forward    20%  200 us      1\n" in shown(
        report_on(labelled())
    )
    assert "Time by label" not in shown(report_on(computing()))


def test_labels_of_a_training_library_are_the_program_s():
    """TorchRec and others write them with hashes; of PyTorch's own labels only compiled graphs look so."""
    story = Story(gpu=None)
    story.step(0, 0, 1000)
    for i, name in enumerate(("## forward ##", "## backward ##", "## Call CompiledFxGraph fabc ##")):
        story.note(name, 5 + 300 * i, 200)
        story.op("aten::mm", 10 + 300 * i, 50)
    trace = story.trace()
    assert {row.name for row in label_times(trace)} == {"## forward ##", "## backward ##"}
    assert {row.path for row in module_times(trace)} == {"## forward ##"}  # the other one's time is its backward pass


def test_labels_are_not_called_modules():
    story = Story(gpu=None)
    story.step(0, 0, 1000)
    story.note("forward", 5, 200)
    story.op("aten::addmm", 20, 100)
    trace = story.trace()
    report = describe(trace, diagnose(trace), "trace.json.gz", thorough=True)
    drawn = shown(report, verbose=True)
    assert "Time by label and in its backward pass\n  label " in drawn
    assert "Time by module" not in drawn


def test_a_label_around_everything_is_left_to_the_full_view():
    story = labelled()
    story.note("everything", 0, 1000)
    assert "everything" not in shown(report_on(story))
    assert "everything" in shown(report_on(story), verbose=True)


def test_the_peak_of_the_memory_names_its_operator():
    story = forward_and_backward()
    story.memory(30, 3_000_000, 3_000_000, 4_000_000)
    story.memory(150, -1_000_000, 2_000_000, 4_000_000)
    assert memory_peaks(story.trace()) == (
        MemoryPeak("GPU 0", 3_000_000, 4_000_000, False, 30, "aten::addmm", "train.py(7): step"),
    )
    words = " ".join(shown(report_on(story)).split())
    assert "Memory of GPU 0 peaks at 3.00 MB allocated (4.00 MB reserved), in aten::addmm at" in words


def test_what_computes_is_listed_where_nothing_is_wrong():
    assert "What computes\n  operator  of the GPU's work     time  calls\n  aten::mm               100%" in shown(
        report_on(computing())
    )
    assert "What computes" not in shown(report_on(computing(), waiting))
    assert "What computes" not in shown(report_on(training(load=480)))


@pytest.mark.parametrize("program", [computing, overhead, training])
def test_the_critical_path_adds_up_to_the_window(program):
    trace = program().trace()
    parts = critical_parts(trace)
    assert sum(part.time_us for part in parts) == pytest.approx(trace.window.us)
    assert sum(part.share for part in parts) == pytest.approx(1)
    assert all(0 < part.mostly_us <= part.time_us and part.runs <= part.pieces for part in parts)


def test_the_critical_path_of_a_busy_device_is_the_device():
    story = Story()
    story.step(0, 0, 1000)
    story.op("aten::mm", 0, 20)
    story.kernel("gemm", 30, 1000, launch_at=5)
    first = critical_parts(story.trace())[0]
    assert (first.where, first.what, first.time_us, first.runs) == ("GPU 0 stream 7", "device", 1000, 1)


def test_the_tree_of_calls_has_labels_modules_and_operators_of_all_steps():
    story = Story(gpu=None)
    for step in range(2):
        begin = 1000 * step
        story.step(step, begin, 1000)
        story.note("forward", begin + 10, 500)
        story.op("aten::linear", begin + 20, 400)
        story.op("aten::addmm", begin + 30, 300)
        story.op("aten::add_", begin + 600, 5)  # less than a hundredth of the window
    assert call_tree(story.trace()) == (
        TreeCall("forward", 0, 2, 1000, 0),
        TreeCall("aten::linear", 1, 2, 800, 0),
        TreeCall("aten::addmm", 2, 2, 600, 0),
    )


def test_the_tree_of_calls_charges_device_work_to_all_around_its_launch():
    (call,) = call_tree(computing().trace())
    assert (call.name, call.calls, call.device_us) == ("aten::mm", 3, 3 * 975)


def test_the_tree_of_calls_is_bounded():
    story = Story(gpu=None)
    for i in range(60):
        story.op(f"aten::op{i}", 100 * i, 90)
        story.op("aten::inner", 100 * i + 10, 70)
    assert len(call_tree(story.trace())) == 40
