"""Tables fit into the terminal and still say what they are about."""

import pytest

from profiler.difference.pairs import loop, traces
from profiler.traces import Story
from torchfx.profiler.difference import diff
from torchfx.profiler.difference.layout import File, Name, Path, Words, table
from torchfx.profiler.difference.text import as_json, as_markdown, as_text

LONG = "void at::native::vectorized_elementwise_kernel<4, " + "at::native::Functor<float>, " * 12 + "int>(int, float)"
OTHER = LONG.replace("<4, ", "<8, ")


def drawn(rows, width, **how):
    return table(rows, width, **{"right": (), "below": (), "pair": False, "whole": False, **how})


def test_what_fits_is_left_as_it_is():
    rows = [("", Name("name"), "calls"), ("slower", Name("aten::mm", " (4 kB -> 8 kB)"), "12")]
    assert drawn(rows, 80, right=(2,)) == [
        "        name                     calls",
        "slower  aten::mm (4 kB -> 8 kB)     12",
    ]


def test_a_name_loses_its_middle_but_not_what_follows_it():
    (line,) = drawn([("slower", Name("a" * 40 + "the_end", " +3"))], 40)
    assert len(line) == 40
    assert line.startswith("slower  aaaa")
    assert line.endswith("the_end +3")


def test_a_file_loses_its_beginning():
    (line,) = drawn([("A", File("/a/very/long/way/to/the/folder/of/run-7/trace.json"))], 40)
    assert line == "A  ..." + "/a/very/long/way/to/the/folder/of/run-7/trace.json"[-34:]


def test_a_path_breaks_between_names_and_keeps_its_ends():
    names = ("step", "forward", "block", "attention", "linear", "aten::linear", "aten::addmm")
    assert drawn([(Path(names),)], 32) == ["step > forward > ... > linear >", "aten::linear > aten::addmm"]
    assert " ".join(drawn([(Path(names),)], 30, whole=True)) == " > ".join(names)


def test_of_two_names_the_difference_stays():
    row = ("add", Name(f"{'x' * 60}_tile_128x64{'y' * 60}"), Name(f"{'x' * 60}_tile_64x64{'y' * 60}", " +2"))
    (line,) = drawn([row], 80, pair=True)
    assert len(line) <= 80
    assert "128x64" in line
    assert "_64x64" in line
    assert line.endswith(" +2")


def test_a_row_goes_on_two_lines_before_its_name_says_nothing():
    rows = [("slower", Name("a_name_of_thirty_characters_xx"), "49.7 us -> 63.9 us", "+14.2 us")]
    assert drawn(rows, 70, below=(2, 3)) == ["slower  a_name_of_thirty_characters_xx  49.7 us -> 63.9 us  +14.2 us"]
    assert drawn(rows, 50, below=(2, 3)) == [
        "slower  a_name_of_thirty_characters_xx",
        "    49.7 us -> 63.9 us  +14.2 us",
    ]


def test_nothing_of_a_sentence_is_left_out():
    lines = drawn([("new", Words("the host waits 12.3 us for a copy, " * 5))], 40)
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines).split()) == "new " + " ".join(("the host waits 12.3 us for a copy, " * 5).split())


def test_whole_names_where_everything_is_asked_for():
    assert "".join(line.strip() for line in drawn([(Name("n" * 90),)], 40, whole=True)) == "n" * 90


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
    shown = as_text(busy(), verbose=verbose, width=width)
    assert "Kernel sets" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_a_wide_terminal_needs_fewer_lines():
    found = busy()
    assert len(as_text(found, width=200).splitlines()) < len(as_text(found, width=80).splitlines())


@pytest.mark.parametrize("render", [as_json, as_markdown])
def test_names_are_whole_where_no_terminal_is(render):
    shown = render(busy()).replace("\\", "")
    assert "Functor<float>, " * 12 in shown.replace("at::native::", "")
    assert "SomeModule_4_of_the_model" in shown


def test_nothing_to_compare_can_be_shown():
    assert as_text(diff(*traces(Story(), Story())), width=60)
