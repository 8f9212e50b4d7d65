"""A run's trace tells what it does not show: the steps that ran unprofiled, and how busy the machine was."""

import pytest

from torchwhy.loading.trace import load
from torchwhy.trace.derived.steady_state import unrecorded_steps

PROGRAM = """
import time
for step in range(30):
    time.sleep(0.002)
    net(torch.ones(1, 4))
"""
NET = "import torch\nnet = torch.nn.Linear(4, 4)\n"
QUIET = "import sys\nassert 'torch._inductor' not in sys.modules\n"


def test_unrecorded_steps_and_the_threads_time_stand_in_the_trace(profile_program, tmp_path):
    (tmp_path / "program.py").write_text(NET + PROGRAM + QUIET)
    ran = profile_program("--repeat", "2", program=tmp_path / "program.py", loaded=False)
    assert ran.status == 0, ran.report
    for name in ("trace.json.gz", "trace-2.json.gz"):
        told = ran.trace(name)
        steps = dict(told["torchwhy_unrecorded_steps"])
        first = [0, 1, 7, 8, 9]  # before the two windows; in step 2 calls were counted
        assert list(steps)[: len(first)] == first
        assert min(list(steps)[len(first) :]) >= 14
        assert min(steps.values()) > 2000
        assert not set(steps) & set(ran.steps(name))
        numbers, host, device = zip(*told["torchwhy_step_memory"], strict=True)
        assert numbers == tuple(range(1, len(numbers) + 1))
        assert len(numbers) >= 25
        assert min(host) > 10e6
        assert set(device) == {0}
        spent = told["torchwhy_processor_time"]
        assert spent["cpu_us"] < spent["wall_us"]
        assert spent["wall_us"] == pytest.approx(told_window_us(told), rel=0.5)
        assert spent["cores"] >= 1
        run = told["torchwhy_run_times"]
        assert 0 < run["start_up"]["seconds"] < run["seconds"]
        assert not run["optimizer"]
        assert run["later_steps"] >= 25
        assert 0 <= run["outside"]["seconds"] < run["seconds"] - run["start_up"]["seconds"]
        assert any("import torch" in source and imports for _, source, _, imports in run["start_up"]["lines"])
    loaded = load(ran.folder / "trace.json.gz")
    assert sorted(unrecorded_steps(loaded)) == pytest.approx(sorted(steps.values()))


def told_window_us(trace):
    steps = [event for event in trace["traceEvents"] if event["name"].startswith("ProfilerStep#")]
    return max(step["ts"] + step["dur"] for step in steps) - min(step["ts"] for step in steps)
