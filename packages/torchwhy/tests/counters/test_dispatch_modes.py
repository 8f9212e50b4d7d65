"""Every dispatch mode of the package: it loads no compiler, and the compiler compiles none of its code."""

import contextlib
import importlib
import pkgutil
import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import torchwhy
from torchwhy.capture.contents import ContentsWatch
from torchwhy.counters.accumulator import Tally
from torchwhy.counters.dispatch_mode import OperatorMode


@contextlib.contextmanager
def repeats():
    watch = ContentsWatch()
    watch.begin()
    yield
    assert watch.end()


OPEN = {OperatorMode: lambda: OperatorMode(Tally()), ContentsWatch: repeats}


def modes():
    """Those that any module of the package defines."""
    for found in pkgutil.walk_packages(torchwhy.__path__, "torchwhy."):
        with contextlib.suppress(ImportError):  # frameworks that are not installed
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    waiting, known = [TorchDispatchMode], []
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        known += [each for each in below if each.__module__.startswith("torchwhy.")]
    return [each for each in known if "__torch_dispatch__" in vars(each)]


MODES = modes()


class Left(contextlib.AbstractContextManager):
    def __exit__(self, *_):
        return None


def compiled(function):
    return torch.compile(function, backend="eager")


@compiled
def breaks_in_a_block(x):
    for _ in range(2):
        with Left():
            x = x.sin()
            torch._dynamo.graph_break()
            x = x.cos()
    return x


@compiled
def breaks_in_a_call_from_c(x):
    x = x.sin()
    torch._dynamo.graph_break()
    return x * sorted([3, 1], key=lambda k: float((x * k).sum()))[0]


@torch.library.custom_op("torchwhy_tests::through_python", mutates_args=())
def through_python(x: torch.Tensor) -> torch.Tensor:
    return compiled(lambda y: y.sin().cos())(x)


def runs_compiled_code_in_an_operator(x):
    return through_python(x) + 1


def test_all_modes_are_tested():
    assert {*MODES} == {*OPEN}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "function",
    [breaks_in_a_block, breaks_in_a_call_from_c, runs_compiled_code_in_an_operator],
    ids=["block", "call", "operator"],
)
def test_the_compiler_leaves_the_code_of_modes_alone(mode, function):
    import torch._dynamo

    x, frames = torch.rand(3), []
    for watch in (contextlib.nullcontext, OPEN[mode]):
        torch._dynamo.reset()
        torch._dynamo.utils._compilation_metrics.clear()
        with watch():
            function(x)
        frames.append(sorted((found.co_filename, found.co_name) for found in torch._dynamo.utils._compilation_metrics))
    torch._dynamo.reset()
    assert frames[0] == frames[1]
    assert frames[0]


def test_modes_load_no_compiler():
    program = (
        "import sys, torch\n"
        "from torchwhy.capture.contents import ContentsWatch\n"
        "from torchwhy.counters.accumulator import Tally\n"
        "from torchwhy.counters.dispatch_mode import OperatorMode\n"
        "watch = ContentsWatch()\n"
        "watch.begin()\n"
        "with watch, OperatorMode(Tally()): torch.ones(3).add(1)\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
