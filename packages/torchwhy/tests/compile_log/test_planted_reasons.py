"""Planted graph breaks and recompilations are recorded and named by their line and PyTorch's reason."""

import inspect
import re

import pytest
import torch

from tests.compile_log.planted import PLANTS
from torchwhy import load
from torchwhy.capture.compile_log import CompileLog

REMEDIES = {
    "size mismatch": "mark_dynamic",
    "dtype mismatch": "one dtype",
    "stride mismatch": "same strides",
    "requires_grad|grad_mode": "without gradients",
    r"len\\\(": "lists and dicts",
    "device": "what the guard names",
    r"(?<!\) )== ": "numbers as tensors",
}
"""Words of a fix, by words of PyTorch's reason; the other words are wrong."""


def planted_line(function):
    lines, first = inspect.getsourcelines(function)
    place = next((i for i, line in enumerate(lines) if line.rstrip().endswith("# planted")), 0)
    return f"planted.py({first + place}): {function.__name__}"


@pytest.fixture
def recorded(tmp_path):
    """Run a plant compiled, with a trace and a log; load both."""

    def run(plant):
        torch._dynamo.reset()
        log = CompileLog(tmp_path / "compile.log")
        log.attach()
        compiled = torch.compile(plant.function, backend="eager")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            for arguments in plant.calls():
                with next((one for one in arguments if isinstance(one, torch.no_grad)), torch.enable_grad()):
                    compiled(*(one for one in arguments if not isinstance(one, torch.no_grad)))
        assert log.close() == []
        profiler.export_chrome_trace(str(tmp_path / "trace.json"))
        return load(tmp_path / "trace.json", compile_log=tmp_path)

    yield run
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace:UserWarning")
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.function.__name__)
def test_a_planted_cause_is_named_with_its_line(recorded, plant):
    trace = recorded(plant)
    assert trace.compile_log.ours
    assert not trace.compile_log.problem
    [finding] = [one for one in trace.diagnose() if one.slug == plant.slug]
    said = f"{finding.title} {finding.cause} {' '.join(f'{one.name} {one.note}' for one in finding.evidence)}"
    assert re.search(plant.reason, said), said
    assert planted_line(plant.where) in said
    assert "TORCH_LOGS" not in finding.fix
    if plant.slug == "recompiles":
        [words] = [words for reason, words in REMEDIES.items() if re.search(reason, plant.reason)]
        assert [other for other in {*REMEDIES.values()} if other in finding.fix] == [words]
    assert finding.linked
    logged = [one for one in finding.evidence if "planted.py" in one.name]
    assert all(one.time_us <= finding.time_us + finding.window.us * 0.002 for one in logged)
