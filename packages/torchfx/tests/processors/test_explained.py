"""`explain` names each step's operators with the backends of the registry."""

import pytest
import torch

from processors.cases import CASES, FS
from torchfx._ops import rows
from torchfx.plan import plan_of
from torchfx.plan.backends import backend_lines, operators_of
from torchfx.plan.steps import ModuleStep


@pytest.mark.parametrize("name", CASES)
def test_every_operator_is_explained_with_the_backends_of_the_registry(name):
    plan = plan_of(CASES[name](0), FS)
    text = "\n".join(backend_lines(plan))
    for step in plan.steps:
        for operator in [] if isinstance(step, ModuleStep) else operators_of(step, torch.device("cpu")) or []:
            row = next(row for row in rows if row.operator == operator)
            assert f"{operator}: cpu {row.text('cpu')}; cuda {row.text('cuda')}; other {row.text('other')}" in text
