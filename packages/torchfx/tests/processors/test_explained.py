"""`explain` names the operators that a profiler sees when a chain runs."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from processors.cases import CASES, FS
from torchfx._ops import native, rows
from torchfx.errors import TorchFXError
from torchfx.plan import plan_of
from torchfx.plan.backends import SAMPLES, backend_lines, native_steps, operators_of
from torchfx.plan.steps import ModuleStep

pytestmark = pytest.mark.skipif(native.library is None, reason="steps run natively")


def dispatched(step):
    """Return the operators that a profiler sees in a run without gradients, those called by others left out."""
    for channels in (1, 2):
        with torch.no_grad(), profile(activities=[ProfilerActivity.CPU]) as recorded:
            try:
                step.run(torch.zeros(channels, SAMPLES))
            except TorchFXError:
                continue
        events = [event for event in recorded.events() if event.name.startswith("torchfx_ext::")]
        outer = [event for event in events if not inside(event)]
        return {event.name.removeprefix("torchfx_ext::") for event in outer}
    return None


def inside(event):
    parent = event.cpu_parent
    return parent is not None and (parent.name.startswith("torchfx_ext::") or inside(parent))


@pytest.mark.parametrize("name", CASES)
def test_the_operators_explained_are_those_dispatched(name):
    for step in plan_of(CASES[name](0), FS).steps:
        if isinstance(step, ModuleStep):
            continue
        explained, seen = operators_of(step, torch.device("cpu")), dispatched(step)
        kinds = native_steps(step)
        assert seen == ({"+".join(kinds)} if kinds else None if explained is None else set(explained))


@pytest.mark.parametrize("name", CASES)
def test_every_operator_is_explained_with_the_backends_of_the_registry(name):
    plan = plan_of(CASES[name](0), FS)
    text = "\n".join(backend_lines(plan))
    for step in plan.steps:
        for operator in [] if isinstance(step, ModuleStep) else operators_of(step, torch.device("cpu")) or []:
            row = next(row for row in rows if row.operator == operator)
            assert f"{operator}: cpu {row.text('cpu')}; cuda {row.text('cuda')}; other {row.text('other')}" in text
