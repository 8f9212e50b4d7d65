"""Words for amounts come from numbers: no phrase holds a bare one."""

import ast
import re
from pathlib import Path

import pytest

import torchwhy
from tests.test_vocabulary import described

ROOT = Path(torchwhy.__file__).parent
FILES = [
    path
    for folder in ("rules", "analysis", "present", "difference", "ranks", "report")
    for path in sorted((ROOT / folder).rglob("*.py"))
]

BARE = re.compile(
    r"\b(mostly|always|never|usually|most of|nearly all|almost all|in the middle|as long as before|most likely)\b", re.I
)
"""Words that state an amount without its number."""

ONCE = re.compile(r"(?<!at )\b(once|often)\b", re.I)
"""Words that a symptom or a cause takes from `wording.often`; a fix may say "synchronise once"."""

EXPONENT = re.compile(r":,?\.\dg}")
"""A format that writes 1234 as 1.23e+03."""

SMALL = {"present/hotspots.py", "difference/verdict.py"}
"""Files that format only small numbers so."""

COMPUTED = {("difference/verdict.py", "as long as before")}
"""Words that a condition beside them computes."""


def texts(node):
    """Constants in a node that aren't documentation."""
    prose = set(described(node))
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and " " in one.value and one not in prose:
            yield one.value


def symptoms(tree):
    """The titles and causes of findings, and what functions named after causes and sentences return."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in {"title", "cause"}:
            yield node.value
        if isinstance(node, ast.FunctionDef) and re.match(r"_(cause|why|title|sentence)", node.name):
            yield node
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in {"title", "cause"}:
            yield node.value


def bare(path, tree):
    name = path.relative_to(ROOT).as_posix()
    found = [(word.group().lower(), text) for text in texts(tree) for word in BARE.finditer(text)]
    found += [(word.group(), text) for part in symptoms(tree) for text in texts(part) for word in ONCE.finditer(text)]
    return [text for word, text in found if (name, word) not in COMPUTED]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_amount_without_its_number(path):
    assert bare(path, ast.parse(path.read_text())) == []


@pytest.mark.parametrize(
    "code",
    [
        'cause = f"The device mostly waits for {x}."',
        'Finding(title="Something that happens once")',
        'def _why(trace):\n    return "Kernels are often short."',
    ],
)
def test_bare_words_are_found(code):
    assert bare(ROOT / "rules/x.py", ast.parse(code))


@pytest.mark.parametrize(
    "code", ['"""It mostly works."""', 'Finding(fix="Synchronise once.")', "f'{often(count)} too many'"]
)
def test_documentation_and_fixes_may_speak_freely(code):
    assert not bare(ROOT / "rules/x.py", ast.parse(code))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_number_of_a_sentence_has_an_exponent(path):
    """`wording.digits` writes them out."""
    assert path.relative_to(ROOT).as_posix() in SMALL or not EXPONENT.search(path.read_text())
