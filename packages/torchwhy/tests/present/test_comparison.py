"""A comparison fits into the terminal and still says what it is about."""

import pytest

from tests.difference.pairs import loop, shown, traces
from tests.traces import Story
from torchwhy import diff
from torchwhy.present.comparison import comparison
from torchwhy.present.formats import FORMATS, render

LONG = "void at::native::vectorized_elementwise_kernel<4, " + "at::native::Functor<float>, " * 12 + "int>(int, float)"
OTHER = LONG.replace("<4, ", "<8, ")


def busy():
    """Two programs that differ in everything a section is about, with names as long as they come."""
    first, second = loop([1000] * 5, kernel_name=LONG), loop([1500] * 5, kernel_name=OTHER)
    for story, us in ((first, 100), (second, 500)):
        for i in range(5):
            for depth in range(9):
                story.op(f"nn.Module: SomeModule_{depth}_of_the_model", 1500 * i + 20 + depth, us - 2 * depth, tid=7)
        story.memory(10, 10_000, us * 10_000)
    return diff(*traces(first, second))


@pytest.mark.parametrize("width", [76, 80, 100, 160])
@pytest.mark.parametrize("verbose", [False, True])
def test_lines_fit(width, verbose):
    text = shown(busy(), verbose=verbose, width=width)
    assert "Kernel sets" in text
    assert max(map(len, text.splitlines())) <= width


def test_a_wide_terminal_needs_fewer_lines():
    found = busy()
    assert len(shown(found, width=200).splitlines()) < len(shown(found, width=80).splitlines())


def test_names_are_whole_for_programs():
    text = shown(busy(), "json")
    assert "Functor<float>, " * 12 in text.replace("at::native::", "")
    assert "SomeModule_4_of_the_model" in text


def test_nothing_to_compare_can_be_shown():
    assert shown(diff(*traces(Story(), Story())), width=60)


HOSTILE = "aten::mm\x1b[2J\x07\x00\x9b\u202e\n|<script>"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("verbose", [False, True])
def test_names_cannot_steer_what_shows_them(form, verbose):
    a, b = loop([1000] * 5, extra=[(HOSTILE, 0.1, "note")]), loop([1500] * 5, extra=[(HOSTILE + "2", 0.2, "op")])
    drawn = shown(diff(*traces(a, b)), form, verbose=verbose)
    assert not {"\x1b", "\x07", "\x00", "\x9b", "\u202e"} & set(drawn)
    assert "<script>" not in drawn or form not in ("html", "junit")


def test_a_limit_is_a_check():
    slower = diff(*traces(loop([1000] * 5), loop([1500] * 5)))
    assert "<failure" in render(comparison(slower, 0.1), "junit")
    assert "<failure" not in render(comparison(slower, 0.6), "junit")
    assert "At most 10% slower: B is 1.50x slower" in render(comparison(slower, 0.1), "text")
    unknown = diff(*traces(loop([1000] * 2), loop([1500] * 2)))
    assert "<error" in render(comparison(unknown, 0.1), "junit")
