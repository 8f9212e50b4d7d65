"""`with profile(...) as p:` in a program that knows of it."""

import gc
import gzip
import json
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace

import pytest
import torch

from torchwhy import load, profile
from torchwhy.capture import ProfileWarning, session
from torchwhy.errors import ArgumentError, ArgumentTypeError, TorchWhyError
from torchwhy.trace.derived.processor_time import collecting_us
from torchwhy.trace.meaning.annotations import GARBAGE_COLLECTION


def loop(p, steps, work=lambda: torch.ones(8).cos()):
    for _ in range(steps):
        work()
        p.step()


def calls(result, name):
    return sum(row.calls for row in result.operators if row.name == name)


def test_exactly_the_active_steps_are_recorded(tmp_path):
    with profile(tmp_path / "run", wait=2, warmup=1, active=3, repeat=2) as p:
        loop(p, 15)
    assert calls(p.result, "aten::cos") == 6
    assert (p.result.windows, p.result.steps_recorded, p.result.steps_seen) == (2, 6, 15)
    assert p.result.overhead.profiled_n == 6
    assert p.result.overhead.baseline_n == 3  # those after the last window
    assert p.result.problems == ()
    trace = json.loads(gzip.decompress((p.result.folder / "trace-2.json.gz").read_bytes()))
    names = {event["name"] for event in trace["traceEvents"]}
    assert {name for name in names if name.startswith("ProfilerStep")} == {f"ProfilerStep#{n}" for n in (9, 10, 11)}


def test_every_artefact_is_written(tmp_path):
    with profile(
        tmp_path / "run", wait=0, warmup=1, active=2, memory=True, stacks=True, flops=True, tensorboard=True
    ) as p:
        loop(p, 3, lambda: torch.ones(8, 4) @ torch.ones(4, 2))
    folder = p.result.folder
    by_shape = json.loads((folder / "operators_by_shape.json").read_text())
    assert by_shape["schema"] == 1
    assert [row["shapes"] for row in by_shape["operators"] if row["name"] == "aten::mm"] == ["[[8, 4], [4, 2]]"]
    by_name = json.loads((folder / "operators.json").read_text())["operators"]
    assert [row["flops"] for row in by_name if row["name"] == "aten::mm"] == [2 * (2 * 8 * 4 * 2)]
    stacks = json.loads((folder / "operators_by_stack.json").read_text())["operators"]
    assert any("test_profile_context.py" in row["stack"][0] for row in stacks if row["name"] == "aten::mm")
    folded = (folder / "stacks_cpu.folded").read_text().splitlines()
    assert all(line.rpartition(" ")[2].isdigit() for line in folded)
    timeline = json.loads((folder / "memory.json").read_text())["timelines"][0]
    assert timeline["device"] == "cpu"
    assert timeline["peak_bytes"] >= (8 * 4 + 4 * 2 + 8 * 2) * 4
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["versions"]["torch"] == torch.__version__
    assert len(list((folder / "tensorboard").glob("*_*.*.pt.trace.json.gz"))) == 1
    assert (folder / "report.txt").read_text().startswith(str(replace(p.result, explanation="")))


def test_the_program_is_told_when_it_ends_before_recording_begins(tmp_path):
    p = profile(tmp_path / "run", wait=5)
    with (
        pytest.warns(
            ProfileWarning, match=r"there were 2 steps and recording begins after 6 .* wait=0, warmup=0, active=2"
        ),
        p,
    ):
        loop(p, 2)
    assert "the beginning of the run" in repr(p)
    assert calls(p.result, "aten::cos") == 1


def test_without_steps_the_whole_block_is_one_window(tmp_path):
    with profile(tmp_path / "run", stacks=True) as p:
        torch.ones(8).cos()
    assert "the whole run as one window without steps" in repr(p)
    assert calls(p.result, "aten::cos") == 1
    assert p.result.problems == ()
    assert (p.result.folder / "operators_by_stack.json").is_file()
    assert (p.result.folder / "findings.json").is_file()


@pytest.mark.parametrize("warmup", [0, 1])
def test_without_steps_nothing_is_left_out_where_nothing_was_to_be_waited_for(tmp_path, warmup):
    with profile(tmp_path / "run", wait=0, warmup=warmup) as p:
        torch.ones(8).cos()
    assert "the whole run as one window without steps" in repr(p)
    assert calls(p.result, "aten::cos") == 1


def test_a_long_block_without_steps_is_recorded_for_a_while(tmp_path):
    p = profile(tmp_path / "run", seconds=0.05)

    def turn():
        end = time.monotonic() + 0.5
        torch.ones(8).cos()
        while time.monotonic() < end:
            pass
        torch.ones(8).sin()

    with pytest.warns(ProfileWarning, match=r"p.step\(\) was not called, so only .* seconds=N records more"), p:
        turn()
    assert (calls(p.result, "aten::cos"), calls(p.result, "aten::sin")) == (1, 0)


def test_outside_the_main_thread_steps_are_recorded(tmp_path):
    captures = []

    def work():
        with profile(tmp_path / "run", wait=1, warmup=0, active=1) as p:
            loop(p, 3)
        captures.append(p.result)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [calls(capture, "aten::cos") for capture in captures] == [1]


def test_windows_without_end_are_bounded_by_their_events(tmp_path, monkeypatch):
    with profile(tmp_path / "all", wait=1, warmup=0, active=1, repeat=0) as p:
        loop(p, 7)
    assert (p.result.windows, p.result.problems) == (3, ())
    monkeypatch.setattr(session, "MOST", 1)
    p = profile(tmp_path / "first", wait=0, warmup=0, active=1, repeat=0)
    with pytest.warns(ProfileWarning, match="recording ended after 1 window: .* as many as can be read"), p:
        loop(p, 7)
    assert (p.result.windows, p.result.steps_seen, p.result.overhead.profiled_n) == (1, 7, 0)  # the first one is cold


def test_each_window_is_handed_over(tmp_path):
    tables = []
    with profile(
        tmp_path / "run", wait=0, warmup=1, active=2, repeat=2, on_trace_ready=lambda p: tables.append(p.key_averages())
    ) as p:
        loop(p, 6)
    assert [[row.count for row in table if row.key == "aten::cos"] for table in tables] == [[2], [2]]
    assert calls(p.result, "aten::cos") == 4


def test_the_handler_of_tensorboard_is_taken(tmp_path):
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "logs"))
    with profile(tmp_path / "run", wait=0, warmup=0, active=1, on_trace_ready=handler) as p:
        loop(p, 1)
    assert len(list((tmp_path / "logs").glob("*.pt.trace.json"))) == 1
    assert p.result.problems == ()


@pytest.mark.parametrize("activities", [["cpu"], [torch.profiler.ProfilerActivity.CPU]])
def test_activities_are_named_or_those_of_torch(tmp_path, activities):
    with profile(tmp_path / "run", wait=0, warmup=0, active=1, activities=activities) as p:
        loop(p, 1)
    assert calls(p.result, "aten::cos") == 1
    assert p.result.options.activities == ("cpu",)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_alone_that_is_not_there_is_told(tmp_path):
    p = profile(tmp_path / "run", wait=0, warmup=0, active=1, activities=["cuda"])
    with pytest.warns(ProfileWarning, match="nothing was recorded: only cuda was requested and is not there"), p:
        loop(p, 2)
    assert p.result.folder is None


def test_a_short_last_window_is_kept_and_told(tmp_path):
    p = profile(tmp_path / "run", wait=1, warmup=1, active=5)
    with pytest.warns(ProfileWarning, match="the last window is short: there were 4 steps and the schedule needs 7"), p:
        loop(p, 4)
    assert calls(p.result, "aten::cos") == 2


def test_an_error_in_the_block_comes_through_and_what_was_recorded_is_kept(tmp_path):
    p = profile(tmp_path / "run", wait=0, warmup=0, active=1)

    def run():
        with p:
            loop(p, 2)
            raise KeyError

    with pytest.raises(KeyError):
        run()
    assert p.result.ended == "KeyError"
    assert calls(p.result, "aten::cos") == 1


def test_a_profiler_inside_another_steps_back(tmp_path):
    inner = profile(tmp_path / "inner", wait=0, warmup=0, active=1)
    with profile(tmp_path / "outer", wait=0, warmup=0, active=2) as outer:
        with pytest.warns(ProfileWarning, match="another PyTorch profiler is running already"), inner:
            loop(inner, 1)
        loop(outer, 2)
    assert inner.result.folder is None
    assert calls(outer.result, "aten::cos") == 3


def test_a_later_profiler_of_the_program_goes_first(tmp_path):
    p = profile(tmp_path / "run", wait=1, warmup=0, active=5)
    own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])

    def run():
        with p:
            loop(p, 3)
            with own:
                loop(p, 4)

    with (
        pytest.warns(ProfileWarning, match="the program started another PyTorch profiler"),
        pytest.warns(ProfileWarning, match="the program's own profiler wrote no trace"),
    ):
        run()
    assert sum(event.name == "aten::cos" for event in own.events()) == 4
    assert calls(p.result, "aten::cos") == 2


def test_nothing_of_it_stays_in_torch(tmp_path):
    from torch.autograd.profiler import profile as theirs

    before = theirs._prepare_trace
    with profile(tmp_path / "run", wait=0, warmup=0, active=1) as p:
        loop(p, 1)
    assert theirs._prepare_trace is before


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_missing_gpu_is_told_and_the_cpu_recorded(tmp_path):
    p = profile(tmp_path / "run", wait=0, warmup=0, active=1, cuda=True)
    with pytest.warns(ProfileWarning, match="recording the GPU was requested, and PyTorch has no GPU here"), p:
        loop(p, 1)
    assert calls(p.result, "aten::cos") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_a_gpu_that_ran_nothing_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(session.Session, "_can_record", lambda self, activity: activity != "xpu")
    with profile(tmp_path / "run", wait=0, warmup=0, active=1) as p:
        loop(p, 1)
    assert "the GPU was recorded and ran nothing" in " ".join(p.result.hints)
    assert p.result.cuda
    monkeypatch.undo()
    with profile(tmp_path / "cpu", wait=0, warmup=0, active=1) as p:
        loop(p, 1)
    assert not any("the GPU was recorded" in hint for hint in p.result.hints)


def test_an_unwritable_folder_is_told_and_the_capture_goes_elsewhere(tmp_path):
    (tmp_path / "file").write_text("")
    p = profile(tmp_path / "file" / "run", wait=0, warmup=0, active=1)
    with pytest.warns(ProfileWarning, match="cannot write .*; everything went to"), p:
        loop(p, 1)
    assert (p.result.folder / "trace.json.gz").is_file()


def test_a_step_inside_an_operator_ends_after_it(tmp_path):
    class Stepping(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            p.step()
            return x * 2

        @staticmethod
        def backward(context, gradient):
            p.step()
            return gradient

    p = profile(tmp_path / "run", wait=1, warmup=1, active=2)
    with pytest.warns(ProfileWarning, match="12 steps ended inside an operator"), p:
        loop(p, 6, lambda: Stepping.apply(torch.ones(4, requires_grad=True)).sum().backward())
    assert p.result.steps_recorded == 2
    assert calls(p.result, "Stepping") == 2


def test_steps_outside_the_block_do_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profile(tmp_path / "run").step()
    assert list(tmp_path.iterdir()) == []


def test_the_spelling_of_torch_profiler_is_taken(tmp_path):
    """A script of torch.profiler's guide, with our `profile` instead of PyTorch's."""
    settings = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(tmp_path / "run", schedule=schedule, **settings) as p:
        loop(p, 6)
    assert (p.result.steps_recorded, p.result.options.stacks, p.result.options.memory) == (2, True, True)
    text = p.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total", row_limit=5)
    assert "aten::cos" in text
    p.export_chrome_trace(str(tmp_path / "copy.json"))
    assert json.loads((tmp_path / "copy.json").read_text())["traceEvents"]
    p.export_stacks(str(tmp_path / "stacks.txt"), "self_cpu_time_total")
    stacks = (tmp_path / "stacks.txt").read_text()
    assert "aten::cos" in stacks
    assert "torchwhy/capture" not in stacks


def test_what_torch_profiler_calls_otherwise_is_named(tmp_path):
    with pytest.raises(ArgumentTypeError, match="no argument 'use_cuda'; of torch"):
        profile(tmp_path, use_cuda=True)
    with pytest.raises(ArgumentError, match="omit wait, warmup, active and repeat"):
        profile(tmp_path, wait=1, schedule=torch.profiler.schedule(wait=1, warmup=1, active=2))
    with pytest.raises(TorchWhyError, match="the block has not ended"):
        profile(tmp_path).key_averages()


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(ArgumentError, match="active must be"):
        profile(active=0)
    with pytest.raises(ArgumentTypeError, match="path must name a folder, got 3"):
        profile(3)
    with pytest.raises(ArgumentError, match=r"activities must be some of cpu, cuda, xpu, got \['gpu'\]"):
        profile(activities=["gpu"])
    with pytest.raises(ArgumentTypeError, match="activities must be a list of cpu, cuda, xpu, got 'cpu'"):
        profile(activities="cpu")
    with pytest.raises(ArgumentError, match="cuda must be None then, got True"):
        profile(activities=["cpu"], cuda=True)
    with pytest.raises(ArgumentTypeError, match="on_trace_ready must be callable, got 'logs'"):
        profile(on_trace_ready="logs")
    with pytest.raises(ArgumentError, match="seconds must be > 0, got 0"):
        profile(seconds=0)


def test_garbage_collections_are_recorded(tmp_path):
    with profile(tmp_path / "run", wait=1, warmup=1, active=2) as p:
        loop(p, 5, gc.collect)
    assert calls(p.result, "Python GC") == 2
    trace = load(p.result.folder / "trace.json.gz")
    rows = trace.events.of(GARBAGE_COLLECTION)
    noted = trace.derived(collecting_us)
    assert noted is not None
    assert 0 < noted <= trace.events.dur[rows].sum() / 1000 + 1000
    assert not [callback for callback in gc.callbacks if "torchwhy" in str(callback)]


def test_what_the_compiler_spent_is_kept(tmp_path):
    compiled = torch.compile(lambda x: x.sin(), backend="eager")
    with profile(tmp_path / "run", wait=1, warmup=0, active=1) as p:
        loop(p, 3, lambda: compiled(torch.ones(2)))
    assert "compile_inner" in (p.result.folder / "compile_times.txt").read_text()


@pytest.mark.many  # Inductor calls a C++ compiler
@pytest.mark.filterwarnings("ignore")  # of PyTorch's own, while it loads Inductor
def test_the_code_that_was_compiled_is_kept(tmp_path):
    compiled = torch.compile(lambda x: x.sin() + x.cos())
    with profile(tmp_path / "run", wait=1, warmup=0, active=1) as p:
        loop(p, 3, lambda: compiled(torch.ones(2)))
    code = [file.read_text() for file in (p.result.folder / "code").glob("*.py")]
    assert any("def call(" in text and "sin" in text for text in code)


def test_notebooks_show_one_line(tmp_path):
    p = profile(tmp_path / "run", wait=0, warmup=0, active=1)
    assert repr(p) == f"<profile to {tmp_path / 'run'}: not started>"
    with p:
        loop(p, 2)
    assert "1 step of 2, CPU" in repr(p)
    assert repr(p).count("\n") == 0


@pytest.mark.many
def test_a_garbage_collection_imports_nothing_while_it_is_labelled(tmp_path):
    code = (
        "import gc, sys, torch\n"
        "import torchwhy\n"
        f"with torchwhy.profile({str(tmp_path / 'run')!r}, wait=0, warmup=0, active=1):\n"
        "    before = set(sys.modules)\n"
        "    gc.collect()\n"
        "    print(set(sys.modules) - before)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"
