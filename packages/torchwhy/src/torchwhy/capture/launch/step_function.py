"""Steps from a function named on the command line: each call begins one."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from torchwhy.errors import ArgumentError

__all__ = ["NamedFunction"]

HOOK = "__torchwhy_step__"


@dataclass(frozen=True)
class NamedFunction:
    """A function by module and qualified name, such as `pkg.mod:Trainer.step` or `__main__:train_step`."""

    module: str
    path: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> NamedFunction:
        """Read `MODULE:NAME`; without a module the script itself is meant.

        Raises:
            ArgumentError: that is no such name.

        >>> NamedFunction.parse("pkg.mod:Trainer.step")
        NamedFunction(module='pkg.mod', path=('Trainer', 'step'))
        """
        module, _, name = text.rpartition(":")
        module = module or "__main__"
        path = tuple(name.split("."))
        if not all(part.isidentifier() for part in (*module.split("."), *path)):
            raise ArgumentError(
                "step-on must be auto, optimizer, dataloader, forward, none or a function as MODULE:NAME, "
                f"such as pkg.mod:train_step or __main__:train_step, got {text!r}"
            )
        return cls(module, path)

    def __str__(self) -> str:
        """Return it as it was written."""
        return f"{self.module}:{'.'.join(self.path)}"

    def replace_in(self, module: ModuleType, called: Callable[[], None]) -> bool:
        """Let a loaded module's function say that it is called; return whether there is such a function."""
        owner: Any = module
        for part in self.path[:-1]:
            owner = getattr(owner, part, None)
        function = inspect.getattr_static(owner, self.path[-1], None)
        if isinstance(function, (staticmethod, classmethod)):
            setattr(owner, self.path[-1], type(function)(_announced(function.__func__, called)))
        elif callable(function):
            setattr(owner, self.path[-1], _announced(function, called))
        else:
            return False
        return True

    def rewrite(self, called: Callable[[], None]) -> Callable[[ast.Module, dict[str, Any]], None]:
        """The same for a script that has not run yet: definitions and assignments of that name are wrapped."""

        def apply(tree: ast.Module, names: dict[str, Any]) -> None:
            names[HOOK] = functools.partial(_announced, called=called)
            _Wrapper(self.path).visit_body(tree.body)
            ast.fix_missing_locations(tree)

        return apply


@dataclass
class _Wrapper:
    path: tuple[str, ...]

    def visit_body(self, body: list[ast.stmt]) -> None:
        name, *inner = self.path
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name == name and inner:
                _Wrapper(tuple(inner)).visit_body(node.body)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name and not inner:
                hook = ast.copy_location(ast.Name(HOOK, ast.Load()), node)
                node.decorator_list.insert(_outside(node.decorator_list), hook)
            elif isinstance(node, ast.Assign) and not inner and [name] == [_id(target) for target in node.targets]:
                hook = ast.copy_location(ast.Name(HOOK, ast.Load()), node)
                node.value = ast.copy_location(ast.Call(hook, [node.value], []), node.value)
            elif isinstance(node, (ast.If, ast.With, ast.Try)):
                self.visit_body(node.body)


def _outside(decorators: list[ast.expr]) -> int:
    """Where the hook goes: before every decorator but those that make no function of it."""
    return sum(_id(decorator) in {"staticmethod", "classmethod", "property"} for decorator in decorators)


def _id(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _announced(function: Any, called: Callable[[], None]) -> Any:
    if not callable(function):
        return function

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        import torch

        if not torch.compiler.is_compiling():
            called()
        return function(*args, **kwargs)

    return run
