"""The sites show each docstring whole: napoleon takes no part of a sentence for a type."""

import inspect
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path

import pytest
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.pycode import ModuleAnalyzer

sys.path.insert(0, str(Path(__file__).parents[1] / "extensions"))
from plain_docstrings import plain
from reference_pages import public

DOCS = Path(__file__).parents[1]

SETTINGS = {name: value for name, value in runpy.run_path(str(DOCS / "common.py")).items() if name.startswith("napo")}


def rendered(text, what):
    """Return a docstring's lines as the sites have them."""
    return GoogleDocstring(plain(text.splitlines(), what), Config(**SETTINGS), what=what, name="a.b").lines()


def public_docstrings(package):
    """Yield for each docstring of the package's reference its place, the object's kind and the text."""
    configured = (DOCS.parent / "packages" / package / "docs" / "conf.py").read_text(encoding="utf-8")
    modules = re.findall(r'"([\w.]+)"', configured.partition("reference_modules = [")[2])
    sources = {*modules}
    for module in map(import_module, modules):
        for name in public(module):
            thing = getattr(module, name)
            if not inspect.isclass(thing) and not inspect.isroutine(thing):
                continue
            kind = "class" if inspect.isclass(thing) else "function"
            sources |= {each.__module__ for each in getattr(thing, "__mro__", ())}
            yield f"{module.__name__}.{name}", kind, inspect.getdoc(thing) or ""
            for member, value in vars(thing).items() if kind == "class" else ():
                what = "property" if isinstance(value, property) else "method"
                if not member.startswith("_") and (what == "property" or inspect.isfunction(value)):
                    yield f"{module.__name__}.{name}.{member}", what, inspect.getdoc(value) or ""
    for name in sources:
        if name.partition(".")[0] == package:
            for place, lines in ModuleAnalyzer.for_module(name).find_attr_docs().items():
                yield ".".join((name, *place)), "attribute", "\n".join(lines)


def fields(text):
    """Yield the name and the first line of each argument in a docstring."""
    for section in re.findall(r"^Args:\n((?:    .*\n?|\n)+)", text, re.MULTILINE):
        yield from re.findall(r"^    ([\w*]+)(?: \(.*?\))?: (.+)$", section, re.MULTILINE)


@pytest.mark.parametrize("package", ["torchfx", "torchwhy"])
def test_no_text_before_a_colon_is_shown_as_a_type(package):
    with_colon = 0
    for place, what, text in public_docstrings(package):
        lines = rendered(text, what)
        shown = "\n".join(lines)
        with_colon += ":" in text.partition("\n")[0]
        assert not re.search(r"^:(type|rtype|vartype)\b", shown, re.MULTILINE), f"{place}:\n{shown}"
        assert not re.search(r"^:returns: \*.*\* --", shown, re.MULTILINE), f"{place}:\n{shown}"
        for name, described in fields(text):
            escaped = plain([described])[0]
            assert f":param {name}: {escaped}".replace("*", "\\*", name.count("*")) in shown, (
                f"{place}, {name}:\n{shown}"
            )
    assert with_colon > 10  # the test reads them


@pytest.mark.parametrize("what", ["attribute", "data", "property"])
@pytest.mark.parametrize("text", ["One: two.", "One.", 'One: "two", "three"; four.\nMore: text.', "One\ntwo: three."])
def test_an_attribute_keeps_its_words(what, text):
    assert " ".join(" ".join(rendered(text, what)).replace("\\", " ").split()) == " ".join(text.split())


def test_a_result_keeps_its_words():
    found = rendered("Do.\n\nReturns:\n    Two tensors: one and\n    another.\n", "function")
    assert " ".join(" ".join(found).replace("\\", " ").split()) == "Do. :returns: Two tensors: one and another."


@pytest.mark.parametrize("package", ["torchfx", "torchwhy"])
def test_the_first_line_of_each_class_and_function_is_a_sentence(package):
    """Lists show this line alone."""
    cut = [
        place
        for place, what, text in public_docstrings(package)
        if what in {"class", "function"} and not text.partition("\n")[0].endswith(".")
    ]
    assert cut == []
