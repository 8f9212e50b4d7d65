"""Runs a script or a module as `python` would: same arguments, same `__main__`, same search path."""

from __future__ import annotations

import ast
import builtins
import os
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from torchfx.errors import ArgumentError

__all__ = ["Program"]

Rewrite = Callable[[ast.Module, dict[str, Any]], ast.Module]


@dataclass(frozen=True)
class Program:
    """What stands on the command line after the profiler's own options.

    Attributes:
        target: a script, or a module's name.
        arguments: what it finds in `sys.argv[1:]`.
        is_module: run it as `python -m` does.
    """

    target: str
    arguments: tuple[str, ...]
    is_module: bool = False

    @property
    def command(self) -> list[str]:
        """The command line that runs it without the profiler."""
        return [sys.executable, *(["-m"] if self.is_module else []), self.target, *self.arguments]

    @property
    def name(self) -> str:
        """A name for its folder: the script's without the suffix, or the module's last part."""
        return self.target.rpartition(".")[2] if self.is_module else Path(self.target).resolve().stem

    def check(self) -> None:
        """Look whether there is such a script.

        Raises:
            ArgumentError: there is none.
        """
        if not self.is_module and not Path(self.target).is_file():
            what = "is a folder" if Path(self.target).is_dir() else "does not exist"
            raise ArgumentError(f"{self.target} {what}; modules are run with -m NAME")

    def run(self, rewrite: Rewrite | None = None) -> None:
        """Run it to its end; whatever it raises comes through.

        Args:
            rewrite: changes the script's syntax tree before it runs, and may add names to it.
        """
        sys.argv = [self.target, *self.arguments]
        folder = str(Path.cwd()) if self.is_module else str(Path(self.target).resolve().parent)
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = folder
        if self.is_module:
            runpy.run_module(self.target, run_name="__main__", alter_sys=True)
        else:
            _run_script(self.target, rewrite)


def _run_script(target: str, rewrite: Rewrite | None) -> None:
    path = os.path.abspath(target)  # noqa: PTH100  (resolve() would follow links, which python does not)
    module = ModuleType("__main__")
    names = module.__dict__
    names.update(__file__=path, __loader__=SourceFileLoader("__main__", path), __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    source: Any = Path(path).read_bytes()
    if rewrite is not None:
        source = rewrite(ast.parse(source, path), names)
    exec(compile(source, path, "exec", dont_inherit=True), names)
