"""PyTorch writes the end of a call into the recording it began in: nothing may be open while recordings change."""

import subprocess
import sys

import pytest
import torch
from torch.profiler import record_function
from torch.utils.checkpoint import checkpoint

from torchwhy.capture.open_calls import inside_pytorch, inside_transform

LABELS = """
import sys
from pathlib import Path
import torch
from torch.profiler import record_function
from torchwhy.capture.options import Options
from torchwhy.capture.recorder import Recorder

for _ in range(5):
    first = Recorder(Options().light(), ("cpu",), None, Path(sys.argv[1]))
    first.start()
    torch.ones(2) + 1
    labels = [record_function(str(number)) for number in range(200)]
    for label in labels:
        label.__enter__()
    first.stop(keep=False)
    others = [b"x" * 64 for _ in range(20_000)]  # takes the memory that the first recording has freed
    second = Recorder(Options().light(), ("cpu",), None, Path(sys.argv[1]))
    second.start()
    for label in labels:
        label.__exit__(None, None, None)
    second.stop(keep=False)
print("ended well")
"""


@pytest.mark.many
def test_labels_may_be_open_while_one_recording_ends_and_the_next_begins(tmp_path):
    command = [sys.executable, "-c", LABELS, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "ended well\n"), ran.stderr


def test_each_bytecode_of_a_label_that_begins_or_ends_is_inside():
    """A pending call may be made at any of them; the call that is open is in no object that can be found."""
    label, asked = record_function("label"), []

    def trace(frame, event, argument):
        if frame.f_code.co_filename == torch.autograd.profiler.__file__:
            frame.f_trace_opcodes = True
            return look
        return None

    def look(frame, event, argument):
        asked.append((frame.f_code.co_name, inside_pytorch()))
        return look

    before = sys.gettrace()
    for change in (label.__enter__, lambda: label.__exit__(None, None, None)):
        sys.settrace(trace)
        try:
            change()
        finally:
            sys.settrace(before)
        assert not inside_pytorch()
    assert {name for name, _ in asked} >= {"__enter__", "__exit__"}
    assert len(asked) > 20
    assert all(inside for _, inside in asked)


@pytest.fixture
def seen():
    return []


@pytest.fixture
def look(seen):
    """A module that notes whether it is called from inside PyTorch."""

    class Look(torch.nn.Module):
        def forward(self, x):
            seen.append(inside_pytorch())
            return x * x

    return Look()


X = torch.ones(3, requires_grad=True)


def test_a_plain_call_is_not_inside(look, seen):
    look(X).sum().backward()
    with torch.no_grad(), torch.profiler.record_function("label"):
        look(X)
    torch.func.grad(lambda x: look(x).sum())(X)
    checkpoint(look, X, use_reentrant=False)
    assert seen == [False] * 4


def test_transforms_are_known():
    seen = []

    def look(x):
        seen.append(inside_transform())
        return (x * x).sum()

    look(X)
    torch.func.grad(look)(X)
    torch.func.vmap(look)(torch.ones(2, 3))
    torch.func.hessian(look)(X)
    assert seen[:3] == [False, True, True]
    assert all(seen[3:])
    assert not inside_transform()


def test_optimizers_hooks_are_not_inside(seen):
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)])
    optimizer.register_step_post_hook(lambda *_: seen.append(inside_pytorch()))
    optimizer.step()
    assert seen == [False]


def test_batches_of_a_loader_are_not_inside(seen):
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            seen.append(inside_pytorch())
            return index

    list(torch.utils.data.DataLoader(Data()))
    assert seen == [False]


def test_custom_functions_and_reentrant_checkpoints_are_inside(look, seen):
    class Custom(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return look(x)

        @staticmethod
        def backward(ctx, gradient):
            return look(gradient)

    Custom.apply(X).sum().backward()
    checkpoint(look, X, use_reentrant=True).sum().backward()
    checkpoint(look, X, use_reentrant=False).sum().backward()
    assert seen == [True, True, True, True, False, True]


def test_operators_written_in_python_are_inside(look, seen):
    with torch.library._scoped_library("torchwhy_test", "FRAGMENT") as library:
        library.define("looks(Tensor x) -> Tensor")
        library.impl("looks", look, "CPU")
        torch.ops.torchwhy_test.looks(torch.ones(2))
    assert seen == [True]


def test_what_a_compiled_region_calls_is_inside(look, seen):
    @torch.compiler.disable
    def eager(x):
        return look(x)

    compiled = torch.compile(lambda x: eager(x + 1) * 2, backend="eager")
    compiled(torch.ones(3))
    compiled(torch.ones(3))
    torch.compiler.reset()
    assert set(seen) == {True}


REENTRANT = """
import torch
from torch.profiler import record_function
from torch.utils.checkpoint import checkpoint
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def several(x):
    for _ in range(3):
        x = model(x)
    return x

for _ in range(20):
    x = torch.ones(8, requires_grad=True)
    checkpoint(several, x, use_reentrant=True).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("program", "call", "steps_from"),
    [
        (REENTRANT, "CheckpointFunction", "SGD.step"),
        pytest.param(
            REENTRANT.replace("optimizer.", "pass  # "), "CheckpointFunction", "whole run", marks=pytest.mark.many
        ),
    ],
)
def test_no_step_begins_or_ends_inside_a_call(profile_program, tmp_path, program, call, steps_from):
    (tmp_path / "program.py").write_text(program)
    ran = profile_program("--wait", 0, "--warmup", 0, "--active", 1, "--repeat", 3, program=tmp_path / "program.py")
    assert ran.status == 0
    assert ran.json("run.json")["steps_from"] == steps_from
    for name in ("trace.json.gz", "trace-2.json.gz", "trace-3.json.gz")[: 1 if steps_from == "whole run" else 3]:
        events = [event for event in ran.trace(name)["traceEvents"] if event.get("ph") == "X"]
        times = {
            event["ts"] + edge for event in events if event["name"].startswith("Profiler") for edge in (0, event["dur"])
        }
        calls = [(event["ts"], event["ts"] + event["dur"]) for event in events if event["name"] == call]
        assert calls
        assert not [time for time in times for start, end in calls if start < time < end]


LABELLED = """
import torch
from torch.profiler import record_function
model = torch.nn.Linear(64, 64)
for _ in range(12):
    with record_function("prepare"):
        x = torch.ones(8, 64)
    with record_function("model_inference"):
        y = model(x)
    with record_function("postprocess"):
        y.sum().item()
"""


def test_labels_around_a_forward_pass_lie_in_their_step(profile_program, tmp_path):
    (tmp_path / "labelled.py").write_text(LABELLED)
    ran = profile_program("--active", "3", program=tmp_path / "labelled.py")
    assert ran.json("run.json")["steps_from"] == "forward of Linear"
    events = [event for event in ran.trace()["traceEvents"] if event.get("cat") == "user_annotation"]
    labels = [event for event in events if event["name"] == "model_inference"]
    steps = [(event["ts"], event["ts"] + event["dur"]) for event in events if event["name"].startswith("Profiler")]
    assert len(labels) == len(steps) == 3
    for label, (start, end) in zip(labels, steps, strict=True):
        assert start <= label["ts"]
        assert label["ts"] + label["dur"] <= end
