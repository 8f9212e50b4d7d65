"""`tools/gpu_check.py` where there is no GPU: it says so. All of it but the traces runs on CPU tensors."""

import contextlib
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.overrides import TorchFunctionMode

from torchfx.realtime import cuda_graph

TOOL = Path(__file__).parents[2] / "tools" / "gpu_check.py"
sys.path.append(str(TOOL.parent))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: run the tool itself")
def test_it_says_that_there_is_no_device(tmp_path):
    ran = subprocess.run(
        [sys.executable, TOOL, "--output", tmp_path / "gpu.json"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    why = "the driver shows no device" if torch.version.cuda else "this PyTorch is built without CUDA"
    assert f"no CUDA device here ({why}): nothing was checked" in ran.stderr
    assert not (tmp_path / "gpu.json").exists()


class OnCpu(TorchFunctionMode):
    """Takes the CPU for the device."""

    def __torch_function__(self, called, types, arguments=(), options=None):
        if called is torch.Tensor.cuda:
            return arguments[0]
        here = partial(map, lambda each: "cpu" if isinstance(each, str) and each == "cuda" else each)
        options = options or {}
        return called(*here(arguments), **dict(zip(options, here(options.values()), strict=True)))


class Event:
    """An event of a device on which everything takes a millisecond."""

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        pass

    def elapsed_time(self, end):
        return 1.0


@pytest.fixture
def gpu_check(monkeypatch):
    """Return the tool, its shapes small; capturing calls once, so that a replay does nothing."""
    import gpu_check

    class Stream:
        def wait_stream(self, other):
            pass

    def nothing(*_):
        pass

    stand_ins = {
        "Stream": Stream, "current_stream": Stream, "stream": contextlib.nullcontext, "synchronize": nothing,
        "CUDAGraph": lambda: SimpleNamespace(replay=nothing), "graph": contextlib.nullcontext,
        "set_sync_debug_mode": nothing, "device_count": lambda: 1, "device": contextlib.nullcontext, "Event": Event,
        "_sleep": nothing, "empty_cache": nothing,
    }  # fmt: skip
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)

    def captured(step, device):
        result = torch.empty_like(step())
        return result, lambda: result.copy_(step())

    monkeypatch.setattr(cuda_graph, "DEVICE", "cpu")
    monkeypatch.setattr(cuda_graph, "_captured", captured)
    monkeypatch.setattr(gpu_check, "SHAPES", [(2, 1), (3, 65), (2, 129)])
    with OnCpu():
        yield gpu_check


def test_every_group_of_cases_runs(gpu_check):
    for name in gpu_check.GROUPS:
        rows = gpu_check._group(name, quick=True)
        bad = [row["case"] for row in rows if not row["good"]]
        assert bad == (["captured in a graph"] if name == "ways of calling" else []), name
    assert all(row["good"] for row in gpu_check.kernels())


def test_every_promise_is_timed(gpu_check, monkeypatch, tmp_path):
    """Signals are a hundredth as long, and everything takes a millisecond, but its host."""
    monkeypatch.setattr(gpu_check, "FS", 480)
    turns = gpu_check._turns
    monkeypatch.setattr(gpu_check, "_turns", lambda *arguments: turns(*arguments[:3], 1, arguments[4]))
    promised = {
        (work, contender, channels, samples if samples == gpu_check.BLOCK else samples // 100): promise
        for (work, contender, channels, samples), promise in gpu_check.PROMISED.items()
    }
    monkeypatch.setattr(gpu_check, "PROMISED", promised)
    rows = list(gpu_check.benchmark(float("inf")))
    told = list(gpu_check._promises(rows))
    assert [": kept, 1" in line for line in told].count(True) == 5  # as long as a copy, or as forward alone
    assert [line for line in told if "MISSED, 0.001" in line] == [told[2]]
    assert not [line for line in told if "not measured" in line]

    hardware = {"gpu": "NVIDIA Z9"}
    for row in rows:
        row.setdefault("high_s", row["time_s"])
    file = tmp_path / "earlier.json"
    earlier = [row | {"time_s": row["time_s"] / 2, "high_s": row["high_s"] / 2} for row in rows[:2]]
    file.write_text(json.dumps({"hardware": hardware, "benchmark": [*earlier, *rows[2:]]}))
    slower = list(gpu_check._slower({"hardware": hardware, "benchmark": rows}, file))
    assert [line.partition(": ")[2] for line in slower] == [
        f"4 sections, {contender}, 12 x 288000: 1000.0 us, 500.0 us then" for contender in ("copy", "torchfx")
    ]
    [other] = gpu_check._slower({"hardware": {"gpu": None}, "benchmark": rows}, file)
    assert other == "not compared with earlier.json, which ran on NVIDIA Z9"
