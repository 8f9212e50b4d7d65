"""Once nothing more is recorded, the program runs as it would without the profiler."""

import pytest

PROGRAM = """
import torch
from torch.autograd.profiler import record_function
from torch.nn.modules import module
from torch.optim import optimizer
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

def watched():
    hooks = len(module._global_forward_pre_hooks) + len(module._global_forward_hooks)
    names = ("label", record_function.__enter__), ("data", _BaseDataLoaderIter.__next__), ("call", Net.__call__)
    changed = [name for name, function in names if hasattr(function, "__wrapped__")]
    return changed + ["hooks"] * hooks + ["optimizer"] * len(optimizer._global_optimizer_post_hooks)

class Net(torch.nn.Sequential):
    pass

net = Net(torch.nn.Linear(4, 4))
{loop}
print(*watched())
"""
FORWARD = "for _ in range(20): net(torch.ones(1, 4))"
LABELLED = "for _ in range(20):\n with record_function('forward'): net(torch.ones(1, 4))"
DATA = "with torch.no_grad():\n for x in DataLoader(torch.ones(20, 4)): net(x)"
TRAIN = (
    "opt = torch.optim.SGD(net.parameters(), lr=.1)\n"
    "for _ in range(20): net(torch.ones(1, 4)).sum().backward(); opt.step()"
)


@pytest.mark.parametrize(
    ("loop", "left"),
    [
        (FORWARD, "call"),
        pytest.param(LABELLED, "call", marks=pytest.mark.many),
        pytest.param(DATA, "data", marks=pytest.mark.many),
        pytest.param(TRAIN, "optimizer", marks=pytest.mark.many),
    ],
)
def test_only_the_end_of_a_step_is_watched_after_the_last_window(profile_program, tmp_path, loop, left):
    (tmp_path / "program.py").write_text(PROGRAM.format(loop=loop))
    ran = profile_program("--active", "3", program=tmp_path / "program.py")
    assert ran.out == f"{left}\n"
    run = ran.json("run.json")
    assert run["steps_seen"] >= 18
    assert run["overhead"]["baseline_n"] >= 9


def test_a_step_that_the_program_ends_in_counts_once_its_optimizer_has_stepped(profile_program, tmp_path):
    loop = TRAIN.replace("range(20)", "range(8)")
    (tmp_path / "program.py").write_text(PROGRAM.format(loop=loop))
    run = profile_program("--active", "3", program=tmp_path / "program.py").json("run.json")
    assert (run["steps_seen"], run["steps_recorded"]) == (8, 3)
    assert not any("steps" in problem for problem in run["problems"])
