"""The number of the JSON's schema is written once."""

import ast
from pathlib import Path

import pytest

import torchwhy
from torchwhy.schema import SCHEMA

DOCS = Path(__file__).parents[1] / "docs"

ROOT = Path(torchwhy.__file__).parent
TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
ANSWERS = {
    node.name
    for tree in TREES.values()
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef)
    and any(isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == "schema" for one in node.body)
}
"""Classes with a field `schema`."""


def numbers(tree):
    """Every value that a file gives to a `schema`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "schema":
                    yield ast.unparse(value)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ANSWERS:
            named = [keyword.value for keyword in node.keywords if keyword.arg == "schema"]
            yield ast.unparse([*named, *node.args][0])


def test_every_kind_of_answer_is_looked_at():
    assert {"TraceReport", "JobReport", "RuleData", "OperatorsFile"} <= ANSWERS
    assert sum(len(list(numbers(tree))) for tree in TREES.values()) > len(ANSWERS)
    assert isinstance(SCHEMA, int)


@pytest.mark.parametrize("path", TREES)
def test_the_number_is_the_one_constant(path):
    assert set(numbers(TREES[path])) <= {"SCHEMA"}
    if path != "schema.py":
        assigned = [node for node in ast.walk(TREES[path]) if isinstance(node, (ast.Assign, ast.AnnAssign))]
        assert not [node for node in assigned if "SCHEMA" in ast.unparse(node).split(" ")[0] and path[:6] != "export"]


def test_the_page_of_the_formats_has_each():
    [listed] = [
        ast.literal_eval(node.value)
        for node in ast.parse((DOCS / "json_formats.py").read_text()).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "CLASSES"
    ]
    assert {place.partition(":")[2] for place in listed} == ANSWERS
