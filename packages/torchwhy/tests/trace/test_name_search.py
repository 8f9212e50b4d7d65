"""Names are found by texts that a match must have: the same as by trying every name, at a cost that doesn't grow with
the number of meanings."""

import re
import string
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchwhy.trace.meaning import names as names_module
from torchwhy.trace.meaning.literals import required_literals
from torchwhy.trace.meaning.names import Names
from torchwhy.trace.meaning.operators import VIEW
from torchwhy.trace.meaning.runtime import LAUNCH

PATTERNS = [
    r"(cuda|hip|cu)(Malloc|Free)(Async)?$",
    r"(?i:.*(launch.*kernel|kernel.*launch))",
    r"aten::(mm|addmm)|aten::_?(softmax|log_softmax)$",
    r"(ab)+c?(de)*fg",
    r"(?:ab|cd){0,2}ef|gh(?!ij)",
    r"\d+|ab",
    r"[ab]c",
    r"(?i:\W*((loss\W*)?backward|bwd)([ _-]?(pass|step))?\W*$)",
    r"(?=.*xyz)ab",
    VIEW.pattern,
    LAUNCH.pattern,
]
words = "cuda Malloc Async aten:: mm softmax ab cd ef fg gh ij xyz LAUNCH KERNEL loss Backward bwd _ 7 view a b c"
piece = st.sampled_from([*words.split(), " ", "\n", "\u017f", "\u212a"])
name = st.lists(piece, max_size=5).map("".join) | st.text(string.printable, max_size=8)


@given(st.lists(name, max_size=30, unique=True))
def test_names_found_by_texts_are_all_that_match(texts):
    chosen = list(range(0, len(texts), 2)) + list(range(1, len(texts), 4))
    names = Names(texts, sorted(chosen))
    for pattern in PATTERNS:
        expected = [i for i in sorted(chosen) if re.match(pattern, texts[i])]
        assert names.matching(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"(cuda|hip)Malloc$", ("malloc",)),
        (r"aten::(view|t)$", ("aten::",)),
        (r"(forward|backward)_pass", ("forward", "backward")),
        (r"(forward|x)?loss", ("loss",)),
        (r"(forward|.)loss|end", ("loss", "end")),
        (r"(forward|.)", None),
        (r".*", None),
        (r"(?!ab)", None),
    ],
)
def test_texts_that_a_match_must_have(pattern, expected):
    assert required_literals(pattern) == expected


def test_most_names_are_never_tried(monkeypatch):
    tried = []

    class Counted:
        def __init__(self, pattern):
            self._match = re.compile(pattern).match

        def match(self, text):
            tried.append(text)
            return self._match(text)

    monkeypatch.setattr(names_module, "re", SimpleNamespace(compile=Counted))
    texts = [f"op_{i}" for i in range(20_000)] + ["cudaLaunchKernel", "aten::view"]
    names = Names(texts, range(len(texts)))
    assert names.matching(LAUNCH.pattern) == [20_000]
    assert names.matching(VIEW.pattern) == [20_001]
    assert len(tried) <= 4
