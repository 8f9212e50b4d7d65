"""What names mean is written once: nothing outside `trace/meaning` matches names of events."""

import ast
from pathlib import Path

import pytest

import torchwhy

ROOT = Path(torchwhy.__file__).parent
READERS = ("analysis", "difference", "report", "rules", "trace/derived", "trace/model", "trace/tables")
FILES = [path for folder in READERS for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("folder", READERS)
def test_there_are_files_to_look_at(folder):
    assert list((ROOT / folder).rglob("*.py"))


def matchers(path):
    """Where a file compiles an expression or compares the beginning or end of a name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import) and "re" in [alias.name for alias in node.names]:
            yield f"{path.name}:{node.lineno} imports re"
        if isinstance(node, ast.Attribute):
            own = node.attr in {"_find", "_names_matching"}
            ends = node.attr in {"startswith", "endswith"} and "name" in ast.unparse(node.value)
            if own or ends:
                yield f"{path.name}:{node.lineno} {ast.unparse(node)}"


def test_nothing_but_meaning_matches_names():
    owner = ROOT / "trace/model/events.py"
    assert [found for path in FILES if path != owner for found in matchers(path)] == []
