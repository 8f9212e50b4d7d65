"""Every run has a `counts.json` of one step, and `torchwhy gate` checks it."""

import faulthandler
import json
import os
import signal
import sys

import pytest
import torch
from typer.testing import CliRunner

from torchwhy import profile
from torchwhy.capture.options import Options
from torchwhy.capture.processor_time import ProcessorMark
from torchwhy.capture.recorder import Window
from torchwhy.capture.stack_samples import StackSamples
from torchwhy.capture.step_counts import write_counts
from torchwhy.cli.app import app
from torchwhy.counters import Counts
from torchwhy.counters.compiler import CompilerMark


def gate(*arguments):
    return CliRunner().invoke(app, ["gate", *map(str, arguments)])


def test_budgets_and_baselines_hold_for_what_the_command_recorded(profile_program, tmp_path, monkeypatch):
    ran = profile_program(program="graph_break.py")
    budgets = tmp_path / "pyproject.toml"
    monkeypatch.chdir(tmp_path)
    assert ran.status == 0
    assert ran.json("counts.json")["schema"] == 1

    budgets.write_text('[tool.torchwhy.budgets]\noperators__max = 2\nsyncs__eq = 0\n"aten::sin__eq" = 1\n')
    assert gate(ran.folder).exit_code == 0

    budgets.write_text("[tool.torchwhy.budgets]\noperators__max = 1\ngraph_breaks__eq = 0\n")
    failed = gate(ran.folder)
    assert failed.exit_code == 1
    assert "operators is 2, allowed: at most 1" in failed.output
    assert "graph_breaks is 1" in failed.output

    budgets.write_text("[tool.torchwhy.budgets]\nallocations__max = 1000000\n")
    failed = gate(ran.folder)
    assert failed.exit_code == 1
    assert "allocations was not counted" in failed.output
    assert "not in this recording" in failed.output

    budgets.write_text("")
    assert gate(ran.folder, "--update").exit_code == 0
    assert gate(ran.folder).exit_code == 0

    kept = tmp_path / "torchwhy-baseline.json"
    content = json.loads(kept.read_text())
    content["operators"] = {"aten::sin": 1}
    kept.write_text(json.dumps(content))
    failed = gate(ran.folder)
    assert failed.exit_code == 1
    assert "+1 aten::cos" in failed.output


def loop(p, turns=6):
    with p:
        for turn in range(turns):
            torch.ones(8).cos()
            if turn == 1:
                torch.compile(lambda x: x.sin(), backend="eager")(torch.ones(8))
            p.step()


def test_the_context_manager_writes_the_counts_of_a_step(tmp_path):
    torch._dynamo.reset()
    p = profile(tmp_path / "run", wait=2, warmup=1, active=2, memory=True)
    loop(p)
    counts = Counts.load(p.result.folder)
    assert counts.operators == {"aten::ones": 1, "aten::cos": 1}
    assert (counts.allocations, counts.compilations) == (2, 0)  # what the second step compiled was not recorded


def test_each_window_counts_what_was_compiled_in_it_once(tmp_path):
    torch._dynamo.reset()
    p = profile(tmp_path / "run", wait=0, warmup=0, active=1, repeat=3)
    loop(p, 3)
    assert Counts.load(p.result.folder).compilations == 1


class Unreadable:
    """Results of PyTorch's that cannot be read."""

    def __init__(self, why):
        self.experimental_event_tree = why


def fail():
    raise RuntimeError("no tree")


def crash():
    faulthandler.disable()  # in the fork alone: nobody needs to read of a crash that is wanted
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("why", "told"),
    [
        (fail, "RuntimeError: no tree"),
        pytest.param(
            crash,
            "its process died of SIGSEGV",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked"),
        ),
    ],
)
def test_trouble_with_pytorchs_results_costs_only_the_counts(tmp_path, why, told):
    marks = CompilerMark().since(), ProcessorMark().since(), StackSamples()
    window = Window(tmp_path / "window-1.json", Unreadable(why), 1, *marks)
    notes = write_counts(tmp_path, [window], Options(), device=False)
    assert notes == [f"there is no counts.json for `torchwhy gate`: {told}"]
    assert not list(tmp_path.iterdir())
