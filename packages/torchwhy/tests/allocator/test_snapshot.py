"""Who held the memory at the peak, and what state the segments are in."""

import json
import pickle

import pytest
from typer.testing import CliRunner

import torchwhy
from tests.allocator.snapshots import Allocator
from torchwhy.cli.app import app
from torchwhy.errors import TraceError
from torchwhy.trace.meaning.allocations import purpose

TRAIN = ("/home/me/train.py", 34, "step")
MODULE = ("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1776, "_call_impl")
ADAM = ("/opt/venv/lib/python3.11/site-packages/torch/optim/adamw.py", 90, "_init_group")
BACKWARD = ("/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", 841, "_engine_run_backward")


def read(allocator, tmp_path):
    return torchwhy.load_snapshot(allocator.write(tmp_path / "snapshot.pickle")).devices[0]


def training():
    """Weights from before, two activations, a gradient at the peak, then the optimizer's state."""
    made = Allocator(history=False)
    made.alloc(10_000, ("/home/me/model.py", 5, "build"))
    early = made.alloc(2_000)
    made.history = True
    made.free(early)
    activations = [made.alloc(30_000, MODULE, TRAIN) for _ in range(2)]
    gradient = made.alloc(50_000, BACKWARD, TRAIN)
    for address in (*activations, gradient):
        made.free(address)
    made.alloc(20_000, ADAM, TRAIN)
    return made


def test_the_peak_and_who_holds_it(tmp_path):
    memory = read(training(), tmp_path)
    assert (memory.peak_bytes, memory.allocated_bytes, memory.peak_us) == (120_000, 30_000, 400)
    assert [(one.bytes, one.blocks, one.purpose, one.line) for one in memory.holders] == [
        (60_000, 2, "forward", "~/train.py(34): step"),
        (50_000, 1, "backward", "~/train.py(34): step"),
        (10_000, 1, "other", "~/model.py(5): build"),
    ]
    assert memory.holders[0].stack[0] == "torch/nn/modules/module.py(1776): _call_impl"
    assert memory.allocated.tolist() == [v * 1000 for v in (10, 10, 40, 70, 120, 90, 90, 60, 60, 10, 10, 30)]


def test_the_peak_may_be_the_beginning(tmp_path):
    made = Allocator(history=False)
    early = made.alloc(9_000, TRAIN)
    made.history = True
    made.free(early)
    memory = read(made, tmp_path)
    assert (memory.peak_bytes, memory.peak_us, memory.allocated.tolist()) == (9_000, 0, [0, 0])
    assert [(one.bytes, one.purpose, one.stack) for one in memory.holders] == [
        (9_000, "unknown", ("allocated before the recorded history",))
    ]


def test_an_address_used_again_belongs_to_the_later_stack(tmp_path):
    made = Allocator()
    for size, stack in ((1_000, MODULE), (3_000, ADAM)):
        made.next = 0x7F0000000000
        address = made.alloc(size, stack, TRAIN)
        if size == 1_000:
            made.free(address)
    memory = read(made, tmp_path)
    assert [(one.bytes, one.purpose) for one in memory.holders] == [(3_000, "optimizer")]


def test_segments_and_fragmentation(tmp_path):
    made = Allocator(segment=100 * 512)
    blocks = [made.alloc(1_000, TRAIN) for _ in range(4)]
    made.free(blocks[1])
    memory = read(made, tmp_path)
    assert (memory.segments, memory.reserved_bytes) == (1, 51_200)
    assert (memory.allocated_bytes, memory.rounding_bytes) == (3_000, 3 * 24)
    assert (memory.split_bytes, memory.cached_bytes, memory.largest_free_bytes) == (51_200 - 3 * 1024, 0, 92 * 512)
    for address in (blocks[0], *blocks[2:]):
        made.free(address)
    memory = read(made, tmp_path)
    assert (memory.split_bytes, memory.cached_bytes) == (0, 51_200)


def test_without_history_the_blocks_tell(tmp_path):
    made = Allocator(history=False)
    made.alloc(1_000, ADAM, TRAIN)
    memory = read(made, tmp_path)
    assert (memory.peak_bytes, memory.peak_us, memory.events) == (1_000, None, 0)
    assert memory.holders[0].purpose == "optimizer"


def test_requests_that_failed(tmp_path):
    made = Allocator()
    made.alloc(7_000, TRAIN)
    made.oom(10**9, 5_000, TRAIN)
    made._record("segment_alloc", addr=1, size=1000, frames=[])
    (failure,) = read(made, tmp_path).out_of_memory
    assert (failure.bytes, failure.allocated_bytes, failure.free_bytes) == (10**9, 7_000, 5_000)
    assert failure.reserved_bytes == (1 << 20) - 1000
    assert failure.line == "~/train.py(34): step"


def test_devices_have_their_own(tmp_path):
    made = Allocator(device=2)
    made.alloc(1_000, TRAIN)
    assert read(made, tmp_path).device == 2


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        (["torch/nn/modules/linear.py(5): forward", "torch/nn/modules/module.py(9): _call_impl"], "forward"),
        (["torch/nn/modules/module.py(9): _apply", "train.py(1): main"], "parameters"),
        (["??(0): c10d::ProcessGroupNCCL::allreduce"], "communication"),
        (["Blas.cpp(0): at::cuda::getCUDABlasLtWorkspace"], "workspace"),
        (["??(0): torch::autograd::Engine::thread_main"], "backward"),
        (["train.py(3): main"], "other"),
    ],
)
def test_purposes(stack, expected):
    assert purpose(stack) == expected


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": 1}, "no list of segments"),
        ([1], "no list of segments"),
        ({"segments": [{1, 2}]}, "isn't one of plain data"),
    ],
)
def test_other_pickles_are_no_snapshots(tmp_path, value, why):
    path = tmp_path / "other.pickle"
    path.write_bytes(pickle.dumps(value))
    with pytest.raises(TraceError, match=rf"other\.pickle is not a memory snapshot: .*{why}"):
        torchwhy.load_snapshot(path)
    with pytest.raises(TraceError, match="cannot be read"):
        torchwhy.load_snapshot(tmp_path / "missing.pickle")


def test_odd_values_do_no_harm(tmp_path):
    odd = {
        "segments": [5, {}, {"device": "x", "blocks": 7}, {"blocks": [{"state": "active_allocated", "frames": 3}]}],
        "device_traces": [3, [4, {"action": "alloc", "addr": -1, "size": 2**70, "frames": [1, {"line": None}]}]],
    }
    path = tmp_path / "odd.pickle"
    path.write_bytes(pickle.dumps(odd).replace(b"\x8a\t", b"\x8a\t"))
    assert [device.device for device in torchwhy.load_snapshot(path).devices] == [0, 1]


def test_the_command(tmp_path):
    made = training()
    made.oom(10**9, 5_000, TRAIN)
    path = str(made.write(tmp_path / "snapshot.pickle"))
    ran = CliRunner().invoke(app, ["memory", path])
    assert ran.exit_code == 0
    assert "Out of memory in ~/train.py(34): step: 1.00 GB requested" in " ".join(ran.stdout.split())
    assert "120 kB allocated" in ran.stdout
    assert "forward" in ran.stdout
    told = json.loads(CliRunner().invoke(app, ["memory", path, "--format", "json"]).stdout)
    assert (told["schema"], told["devices"][0]["peak_bytes"]) == (1, 120_000)
    assert max(size for _, size in told["devices"][0]["timeline"]) == 120_000
    assert CliRunner().invoke(app, ["memory", str(tmp_path / "missing")]).exit_code == 3
    assert CliRunner().invoke(app, ["memory", path, "--format", "x"]).exit_code == 2
