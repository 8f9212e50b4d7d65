"""Runs of real programs: what is seen of them, and that nothing of them is left."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.tuning.warm_runs import warm_runs
from torchwhy.capture.launch.program import Program
from torchwhy.tuning.catalogue import changes_for, combined
from torchwhy.tuning.change import Change
from torchwhy.tuning.changes.torch_compile import torch_compile
from torchwhy.tuning.records import Facts, Record
from torchwhy.tuning.results import agreement_of
from torchwhy.tuning.runs import Runs, run_command, stakes_of

SMALL = str(Path(__file__).parent / "programs" / "small.py")


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    return warm_runs(Program(SMALL, ()), tmp_path_factory.mktemp("runs")).run(None, limit_s=60)


def test_a_run_is_seen_whole(unchanged):
    assert (unchanged.error, unchanged.source, unchanged.label) == ("", "optimizer", "SGD.step")
    assert len(unchanged.steps_us) == 11
    assert min(unchanged.steps_us) > 0
    results = unchanged.results
    assert (len(results.losses), len(results.parameters)) == (12, 4)
    assert [*results.outputs] == [f"module 0, step {step}" for step in range(4)]
    assert [len(call) for call in results.outputs["module 0, step 1"]] == [8 * 4 + 1]  # and the sum
    assert results.printed.endswith("closed\n")
    facts = unchanged.facts
    assert (facts.threads, facts.threads_set, facts.images, facts.trained) == (2, "small.py:11", True, True)
    assert (facts.modules, facts.optimizers, facts.fused) == (("Sequential",), ("SGD",), False)
    assert [(one.workers, one.iterable, one.line) for one in facts.loaders] == [(0, False, "small.py:17")]


def test_all_changes_at_once_leave_the_results(unchanged, tmp_path):
    """But for torch.compile, which takes long, and what says that it is inexact."""
    facts = unchanged.facts
    chosen = {}
    for change in changes_for(facts, {"gc-pause": 0.1}):
        if not change.inexact and change.kind not in {"torch_compile"}:
            chosen.setdefault(change.kind, change)
    assert {"threads", "workers", "anomaly_detection", "channels_last", "fused_optimizer", "garbage_collection"} <= {
        *chosen
    }
    runs = warm_runs(Program(SMALL, ()), tmp_path)
    record = runs.run(combined(tuple(chosen.values())), limit_s=60, source="optimizer")
    assert record.error == ""
    assert (record.facts.threads, record.facts.fused, record.facts.anomaly) == (1, True, False)
    assert record.facts.loaders[0].workers == 2
    found = agreement_of([unchanged.results], [record.results])
    assert (found.same, found.compared) == (True, ("losses", "outputs", "parameters", "printed text")), found
    assert found.largest > 0  # the arithmetic did change


def test_a_long_run_is_ended_from_within(unchanged, tmp_path):
    record = warm_runs(Program(SMALL, ()), tmp_path).run(None, limit_s=60, source="optimizer", fewest=4, most_s=0)
    assert (record.ended_early, len(record.steps_us), record.error) == (True, 4, "")
    assert record.results.losses == unchanged.results.losses[: len(record.results.losses)]


def test_a_program_that_fails_says_why(tmp_path):
    record = warm_runs(Program(SMALL, ("fails",)), tmp_path).run(None, limit_s=60)
    assert record.error == "RuntimeError: no such device"


def test_a_new_process_gets_its_environment(tmp_path):
    program = tmp_path / "asks.py"
    program.write_text("import os, torch\nprint(torch.get_num_threads(), os.environ['OMP_NUM_THREADS'])\n")
    runs = Runs(Program(str(program), ()), tmp_path)
    record = runs.run(Change("1 thread", ("",), {"OMP_NUM_THREADS": "1"}), limit_s=100)
    assert (record.error, record.results.printed, record.source) == ("", "1 1\n", "")
    assert len(record.steps_us) == 1  # the whole run


SLEEPER = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path("pid").write_text(str(child.pid))
time.sleep(60)
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc whether a process runs")
@pytest.mark.parametrize("interrupted", [False, True], ids=["too long", "Ctrl-C"])
def test_nothing_of_a_run_is_left(interrupted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original = subprocess.Popen.wait

    def wait(process, timeout=None):
        if timeout == 1234:
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                time.sleep(0.01)
            if interrupted:
                raise KeyboardInterrupt
            raise subprocess.TimeoutExpired("x", timeout)
        return original(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", wait)
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            run_command([sys.executable, "-c", SLEEPER], os.environ, tmp_path, 1234, 5)
    else:
        error = run_command([sys.executable, "-c", SLEEPER], os.environ, tmp_path, 1234, 5)
        assert error == "it took longer than 20.6 min"
    assert ended(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc whether a process runs")
def test_processes_that_a_run_leaves_behind_are_ended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        run_command([sys.executable, "-c", SLEEPER.replace("time.sleep(60)\n", "")], os.environ, tmp_path, 100, 5) == ""
    )
    assert ended(int((tmp_path / "pid").read_text()))


def ended(pid):
    for _ in range(500):
        if not alive(pid):
            return True
        time.sleep(0.01)
    return False


def test_modules_are_compiled_after_the_first_step():
    [change] = torch_compile.function(Facts(modules=("Net",)))
    kept, observer = [], SimpleNamespace(after_first_step=[], compile=lambda function: lambda x: function(x) + 1)
    observer.keep_output = lambda module, result: kept.append((module, result))
    change.apply(observer)

    module = SimpleNamespace(_call_impl=lambda x: 10 * x)
    for act in observer.after_first_step:
        act(module)
    assert module._compiled_call_impl(1) == 11
    assert kept == [(module, 11)]


def test_stakes_are_shares_of_the_window():
    report = b'{"schema": 1, "window": {"duration_us": 200.0, "steps": []}, "findings": [{"slug": "a", "time_us": 50.0, "x": 1}, {"slug": "a", "time_us": 20.0}, {"slug": "b", "time_us": 0.0}]}'  # noqa: E501
    assert stakes_of(report) == {"a": 0.25, "b": 0.0}


@pytest.mark.parametrize(("steps", "cold"), [(1, 0), (2, 1), (5, 3), (16, 4), (400, 10)])
def test_the_first_steps_do_not_count(steps, cold):
    record = Record([9.0] * cold + [1.0] * (steps - cold), 5.0)
    assert (record.cold, record.step_us, record.begins_us) == (cold, 1.0, 5.0 + 9.0 * cold)
