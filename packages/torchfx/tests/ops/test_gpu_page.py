"""The table of docs/gpu.md names the operators that have a Triton kernel."""

import ast
import re
from pathlib import Path

import torchfx
from torchfx._ops import operators

PACKAGE = Path(torchfx.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"


def test_the_table_lists_every_operator_with_a_kernel():
    found = {
        node.name
        for path in PACKAGE.glob("_ops/*/triton.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name in operators
    }
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == found
    assert all((PACKAGE / name).exists() for row in rows for name in re.findall(r"`(\w[\w/]*\.py)`", row))
