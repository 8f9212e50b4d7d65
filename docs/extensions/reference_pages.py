"""Writes the reference: a page for each public module, and one for each class or function in it.

A package's `conf.py` names its public modules in `reference_modules`. What is public of a module is its `__all__`. The
pages are made again at each build, in `reference/` of the package's docs; git ignores them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

MEMBERS = ":members:\n:show-inheritance:\n"


def summary(module: ModuleType, name: str) -> str:
    """Return the first line of the documentation of a module's public name."""
    thing = getattr(module, name)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        text = inspect.getdoc(thing) or ""
    else:  # of a constant, the string below it; its type's documentation says nothing
        text = "\n".join(ModuleAnalyzer.for_module(module.__name__).find_attr_docs().get(("", name), ()))
    return text.partition("\n")[0].replace("|", "\\|")


def public(module: ModuleType) -> list[str]:
    """Return the public names of a module, sorted, without modules that have separate pages."""
    names = getattr(module, "__all__", ())
    return sorted((name for name in names if not inspect.ismodule(getattr(module, name))), key=str.lower)


def write(path: Path, text: str) -> None:
    """Write a page if it has changed, so that Sphinx reads only those again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def before_reading(app: Sphinx, write_pages: Callable[[Sphinx], None]) -> None:
    """Let a function write pages before Sphinx reads them.

    The pages as Markdown, which `sphinx_llm` has a second Sphinx make of what the first has read, need no new ones.
    """
    if "sphinx_llm_markdown" not in app.tags:
        app.connect("builder-inited", write_pages)


def page(module: str, name: str, thing: object, first: str = "", last: str = "") -> str:
    """Return the page of one public name.

    Args:
        module: its module's name.
        name: the public name.
        thing: the object.
        first: text before the documentation.
        last: text after it.
    """
    if inspect.isclass(thing):
        directive, options = "autoclass", MEMBERS
        if hidden := inherited_values(thing):
            options += f":exclude-members: {', '.join(hidden)}\n"
    elif callable(thing):
        directive, options = "autofunction", ""
    else:
        directive, options = "py:data", ""  # autodoc would show what its type says
    # Hundreds of names in the sidebar of each page would hide the guides: the module's page lists them.
    head = f"---\norphan: true\n---\n\n# {name}\n\nPart of [{module}](../{module}.md).\n\n"
    return f"{head}{first}```{{eval-rst}}\n.. {directive}:: {module}.{name}\n" + indented(options) + f"```\n{last}"


def inherited_values(thing: type) -> list[str]:
    """Return the attributes that only a base class describes: the value that a class has there is an internal."""
    package = thing.__module__.partition(".")[0]
    described: dict[str, type] = {}
    for each in thing.__mro__:
        if each.__module__.partition(".")[0] == package:
            for owner, name in ModuleAnalyzer.for_module(each.__module__).find_attr_docs():
                if owner == each.__qualname__:
                    described.setdefault(name, each)
    return sorted(name for name, owner in described.items() if owner is not thing and name in vars(thing))


def indented(options: str) -> str:
    """Return a directive's options, indented."""
    return "".join(f"   {line}\n" for line in options.splitlines())


def index(module: str, found: ModuleType, places: dict[str, str]) -> str:
    """Return the page of a module: what it is for, and its names with a line for each.

    Args:
        module: its name.
        found: the module.
        places: for each public name the page that describes it.
    """
    rows = "".join(f"| [{name}]({place}) | {summary(found, name)} |\n" for name, place in places.items())
    head = f"# {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :no-members:\n```\n\n"
    return head + (f"| name | description |\n|---|---|\n{rows}" if rows else "")


def _write_all(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "reference"
    kept, described = set(), {}  # a thing that two modules offer has one page: that of the first module
    for module in app.config.reference_modules:
        found = import_module(module)
        pages, places = {}, {}
        for name in public(found):
            thing, place = getattr(found, name), f"{module}/{name}.md"
            places[name] = described.setdefault(id(thing), place) if callable(thing) else place
            if places[name] == place:
                around = app.emit("reference-page-extra", module, name)
                first, last = ("".join(texts[part] for texts in around) for part in (0, 1))
                pages[place] = page(module, name, thing, first, last)
        pages[f"{module}.md"] = index(module, found, places)
        for path, text in pages.items():
            write(folder / path, text)
            kept.add(folder / path)
    entries = "".join(f"{module}\n" for module in app.config.reference_modules)
    write(folder / "index.md", f"# Reference\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}```\n")
    kept.add(folder / "index.md")
    for path in folder.rglob("*.md"):
        if path not in kept:
            path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx. Listeners of `reference-page-extra` return texts before and after the documentation."""
    app.add_config_value("reference_modules", [], "env", list)
    app.add_event("reference-page-extra")
    before_reading(app, _write_all)
    return {"parallel_read_safe": True}
