"""Names of parts and of verdicts: a misspelt one is an error, and never a share of 0."""

import ast
from pathlib import Path

import msgspec
import pytest

import torchwhy
from torchwhy.analysis.breakdown import Breakdown, Part
from torchwhy.analysis.names import Group, PartName, VerdictKind

ROOT = Path(torchwhy.__file__).parent
PARTS = (Part(PartName.WAITING, Group.IDLE, "synchronises", 25.0, 0.25, None),)
WINDOW = Breakdown("gpu", "the trace", 100.0, 0, PARTS, None, None)


def test_a_share_is_asked_for_by_name():
    assert WINDOW.share(PartName.WAITING, PartName.DATA) == WINDOW.share("waiting") == 0.25
    with pytest.raises(ValueError, match="watiing"):
        WINDOW.share("watiing")


@pytest.mark.parametrize("names", [PartName, VerdictKind, Group])
def test_names_are_their_texts(names):
    for name in names:
        assert (f"{name}", str(name), msgspec.json.decode(msgspec.json.encode(name))) == (name.value,) * 3


@pytest.mark.parametrize("path", sorted((ROOT / "analysis").glob("*.py")), ids=lambda path: path.name)
def test_names_are_spelled_in_one_file(path):
    if path.name == "names.py":
        return
    taken = {f"{name}" for names in (PartName, VerdictKind) for name in names}
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    used = [
        child for node in nodes if isinstance(node, (ast.Call, ast.Compare)) for child in ast.iter_child_nodes(node)
    ]
    spelled = {node.value for node in used if isinstance(node, ast.Constant)} & taken
    rules = {"overhead-bound"} if path.name == "verdict.py" else set()  # the name of the rule that decides it
    assert spelled == rules
