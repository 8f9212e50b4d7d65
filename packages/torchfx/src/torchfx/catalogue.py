"""Which filters and effects there are, with their parameters, read from source text: no PyTorch is imported for it.

A class's declarations (`torchfx.parameters`) are expressions in its body; they are evaluated on their own. Where that
cannot be done, such as for a parameter computed in some other way, the class's module is imported and asked.

Other packages offer processors by the entry point `torchfx.processors`, whose value is a module or a package with
`__all__`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Any

from torchfx import parameters
from torchfx.parameters import Declaration

__all__ = ["Entry", "available", "features", "named"]

PACKAGES = ("torchfx.filter", "torchfx.effect")
FEATURES = "torchfx.spectral"


@dataclass(frozen=True)
class Entry:
    """A filter or effect.

    Attributes:
        name: the class's.
        module: the module it is imported from.
        summary: the first line of its documentation.
        declarations: its parameters, in the constructor's order.
        family: what it has in common with the others in its file: the first line of that file.
        needs_memory: whether it needs a whole file in memory.
    """

    name: str
    module: str
    summary: str
    declarations: tuple[Declaration, ...]
    family: str = ""
    needs_memory: bool = False

    def load(self) -> Any:
        """Import the class."""
        return getattr(import_module(self.module), self.name)

    def signature(self) -> inspect.Signature:
        """Return the constructor's signature."""
        return parameters.signature(self.declarations)


@lru_cache(1)
def available() -> dict[str, Entry]:
    """Return every filter and effect that can be built from text, by its name in lower case.

    Examples:
        >>> available()["gain"].summary
        'Multiply a signal by a constant.'
    """
    return {entry.name.lower(): entry for package in _packages() for entry in _entries(package)}


@lru_cache(1)
def features() -> dict[str, Entry]:
    """Return likewise what makes features of samples or takes them: the ends of chains.

    Examples:
        >>> features()["melspectrogram"].summary
        'Mel spectrogram: mel bands of the power spectra of a signal.'
    """
    return {entry.name.lower(): entry for entry in _entries(FEATURES)}


@lru_cache(256)
def named(name: str) -> Entry | None:
    """Return what `available` or `features` has under a name, in lower case, without a look at the other classes."""
    found = [entry for package in (FEATURES, *_packages()) for entry in _entries(package, name)]
    return found[-1] if found else None


@lru_cache(1)
def _packages() -> tuple[str, ...]:
    # Reads a file of every installed package: 11 ms with a hundred of them.
    offered = (point.value for point in metadata.entry_points(group="torchfx.processors"))
    return *PACKAGES, *offered


def _entries(package: str, wanted: str | None = None) -> Iterator[Entry]:
    for name in _exported(package):
        if wanted is not None and name.lower() != wanted:
            continue
        try:
            described = _described(package, name)
        except _Unclear:
            described = _asked(package, name)
        if described is not None:
            yield Entry(name, package, *described)


class _Unclear(Exception):  # noqa: N818  (no error: the class is asked instead)
    """A class cannot be described from its text."""


@dataclass(frozen=True)
class _Class:
    """A class and the module it is written in."""

    module: str
    node: ast.ClassDef


@lru_cache(None)
def _source(module: str) -> ast.Module:
    package, *rest = module.split(".")
    spec = util.find_spec(package)  # of the outermost package alone: it would import those on the way to an inner one
    if spec is None or spec.origin is None:
        raise _Unclear(module)
    places = [Path(place, *rest) for place in spec.submodule_search_locations or ()]
    files = [Path(spec.origin)] if not rest else [file for place in places for file in _files(place)]
    for file in files:
        if file.is_file():
            return ast.parse(file.read_text(encoding="utf-8"))
    raise _Unclear(module)


def _files(place: Path) -> tuple[Path, Path]:
    return place.with_suffix(".py"), place / "__init__.py"


def _exported(module: str) -> list[str]:
    try:
        return list(_constant(module, "__all__"))
    except _Unclear:
        return list(getattr(import_module(module), "__all__", ()))


_Description = tuple[str, tuple[Declaration, ...], str, bool]
"""Summary, declarations, family, and whether a whole file is needed in memory."""


def _described(module: str, name: str) -> _Description | None:
    """Return what is known of a class, or None for what cannot be built: an abstract class, no class."""
    lineage = list(_lineage(module, name))
    if not lineage or lineage[-1].node.name != "Processor":
        return None
    found: dict[str, Declaration] = {}
    needed: set[str] = set()
    given: set[str] = set()
    constructor: ast.arguments | None = None
    for each in reversed(lineage[:-1]):
        for statement in each.node.body:
            if isinstance(statement, ast.FunctionDef):
                abstract = any(
                    isinstance(mark, ast.Name) and mark.id == "abstractmethod" for mark in statement.decorator_list
                )
                (needed if abstract else given).add(statement.name)
                if statement.name == "__init__":
                    constructor = statement.args
            elif isinstance(statement, ast.Assign):
                names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
                given |= names
                found = {key: declaration for key, declaration in found.items() if key not in names}
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                target = statement.target.id
                if ast.unparse(statement.annotation).startswith("ClassVar"):
                    (needed if statement.value is None else given).add(target)
                elif statement.value is not None:
                    declaration = _evaluated(each.module, statement.value)
                    if not isinstance(declaration, Declaration):
                        raise _Unclear(name)
                    declaration.name = target
                    found[target] = declaration
    if needed - given or not given & {"lti", "step", "forward", "features"}:
        return None
    if constructor is not None and _taken(constructor) != list(found):
        return None
    documentation = inspect.cleandoc(ast.get_docstring(lineage[0].node) or "")
    family = (ast.get_docstring(_source(lineage[0].module)) or "").partition("\n")[0]
    return documentation.partition("\n")[0], tuple(found.values()), family, _needs_memory(lineage)


def _needs_memory(lineage: list[_Class]) -> bool:
    """Whether the first class that writes how samples are processed writes `forward`, without `in_pieces`."""
    for each in lineage:
        written = {statement.name for statement in each.node.body if isinstance(statement, ast.FunctionDef)}
        if written & {"lti", "step", "forward"}:
            return "forward" in written and "in_pieces" not in written
    return False


def _taken(constructor: ast.arguments) -> list[str]:
    """Return the names of a constructor's parameters, without self."""
    several = [each for each in (constructor.vararg, constructor.kwarg) if each is not None]
    return [each.arg for each in [*constructor.posonlyargs, *constructor.args, *several, *constructor.kwonlyargs]][1:]


def _lineage(module: str, name: str) -> Iterator[_Class]:
    """Yield a class and its first bases, up to Processor."""
    while True:
        found = _find(module, name)
        if found is None or not found.node.bases:
            return
        yield found
        if found.node.name == "Processor":
            return
        base = found.node.bases[0]
        if not isinstance(base, (ast.Name, ast.Attribute)):
            raise _Unclear(name)
        module, name = found.module, ast.unparse(base).rpartition(".")[2]


def _find(module: str, name: str) -> _Class | None:
    """Return the class a name means in a module, following its imports."""
    for statement in _source(module).body:
        if isinstance(statement, ast.ClassDef) and statement.name == name:
            return _Class(module, statement)
        origin = _imported(statement, name)
        if origin is not None:
            return _find(*origin)
    if name == "Processor":  # as in `import torchfx as fx`
        return _find("torchfx.core.processor", name)
    raise _Unclear(name)


def _imported(statement: ast.stmt, name: str) -> tuple[str, str] | None:
    if isinstance(statement, ast.ImportFrom) and statement.module and statement.level == 0:
        for alias in statement.names:
            if (alias.asname or alias.name) == name:
                return ("torchfx.core.processor" if statement.module == "torchfx" else statement.module), alias.name
    return None


def _constant(module: str, name: str) -> Any:
    """Return the value of a literal that a module assigns to a name."""
    for statement in _source(module).body:
        if isinstance(statement, ast.Assign) and any(ast.unparse(target) == name for target in statement.targets):
            try:
                return ast.literal_eval(statement.value)
            except ValueError:
                raise _Unclear(name) from None
        origin = _imported(statement, name)
        if origin is not None:
            return _constant(*origin)
    raise _Unclear(name)


def _evaluated(module: str, expression: ast.expr) -> Any:
    """Return what a declaration evaluates to, from `torchfx.parameters`, literals and `tuple` alone."""
    known = {**vars(parameters), "tuple": tuple}
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    values = {name: known[name] if name in known else _constant(module, name) for name in names}
    return eval(compile(ast.Expression(expression), module, "eval"), {"__builtins__": {}}, values)


def _asked(module: str, name: str) -> _Description | None:
    """Import a class and ask it."""
    cls = getattr(import_module(module), name)
    if (
        not hasattr(cls, "declarations")
        or cls.missing
        or parameters.accepted(cls.declarations.values()).keys() != {*inspect.signature(cls).parameters, "fs"}
    ):
        return None
    summary = (inspect.getdoc(cls) or "").partition("\n")[0]
    family = (import_module(cls.__module__).__doc__ or "").partition("\n")[0]
    return summary, tuple(cls.declarations.values()), family, cls.kind == "whole" and cls.in_pieces is None
