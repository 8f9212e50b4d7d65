"""Runs a script or a module as `python` would: same arguments, same `__main__`, same search path."""

from __future__ import annotations

import ast
import builtins
import os
import runpy
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from torchwhy.errors import ArgumentError

__all__ = ["Program", "Rewrite"]

Rewrite = Callable[[ast.Module, dict[str, Any]], object]
"""Changes a syntax tree, and the names that it finds."""


@dataclass(frozen=True)
class Program:
    """What stands on the command line after the profiler's own options, as `python` takes it.

    Attributes:
        target: a script, a folder or an archive with `__main__.py`, "-" for standard input, "-c" for a command, or a
            module's name.
        arguments: what it finds in `sys.argv[1:]`; before that, the command where there is one.
        is_module: run it as `python -m` does.
    """

    target: str
    arguments: tuple[str, ...]
    is_module: bool = False

    @property
    def is_command(self) -> bool:
        """Whether it is a command (`-c`)."""
        return not self.is_module and self.target == "-c"

    @property
    def command(self) -> list[str]:
        """The command line that runs it without the profiler."""
        return [sys.executable, *(["-m"] if self.is_module else []), self.target, *self.arguments]

    @property
    def name(self) -> str:
        """A name for its folder: the script's without the suffix, or the module's last part."""
        if self.is_module:
            return self.target.rpartition(".")[2]
        return {"-c": "command", "-": "stdin"}.get(self.target) or Path(self.target).resolve().stem

    @property
    def is_script(self) -> bool:
        """Whether its source is known before it runs."""
        return not self.is_module and not self._has_main

    @property
    def _has_main(self) -> bool:
        """Whether `__main__.py` inside it runs."""
        path = Path(self.target)
        return self.target not in {"-", "-c"} and (path.is_dir() or zipfile.is_zipfile(path))

    def check(self) -> None:
        """Look whether there is such a script.

        Raises:
            ArgumentError: there is no such program.
        """
        if self.is_command and not self.arguments:
            raise ArgumentError("-c needs a command to run")
        if self.is_module or self.target in {"-", "-c"} or Path(self.target).is_file():
            return
        if not Path(self.target).is_dir():
            raise ArgumentError(f"cannot run {self.target}: no such file; modules are run with -m NAME")
        if not (Path(self.target) / "__main__.py").is_file():
            raise ArgumentError(f"cannot run {self.target}: it is a folder without __main__.py")

    def run(self, rewrite: Rewrite | None = None) -> None:
        """Run it to its end; whatever it raises comes through.

        Args:
            rewrite: changes the script's syntax tree before it runs, and may add names to it.
        """
        sys.argv = [self.target, *self.arguments[self.is_command :]]
        # The program may recurse as deep as alone. `exec` counted before Python 3.12.
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(2 * limit - _depth_left() + (sys.version_info < (3, 12)))
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = self._folder()
        if self.is_module:
            runpy.run_module(self.target, run_name="__main__", alter_sys=True)
        elif self._has_main:
            sys.modules["__main__"] = ModuleType("__main__")
            as_python_does: Any = runpy
            as_python_does._run_module_as_main("__main__", False)  # run_path() would change sys.argv[0]
        elif self.is_command:
            _run_source(self.arguments[0].encode(), "<string>", None, rewrite)
        elif self.target == "-":
            _run_source(sys.stdin.buffer.read(), "<stdin>", "<stdin>", rewrite)
        else:
            # resolve() would follow links, which python does not.
            path = os.path.abspath(self.target)  # noqa: PTH100
            _run_source(Path(path).read_bytes(), path, path, rewrite)

    def _folder(self) -> str:
        """Where the program's modules are looked for first."""
        if self.target in {"-", "-c"}:
            return ""
        if self.is_module:
            return str(Path.cwd())
        return os.path.abspath(self.target) if self._has_main else str(Path(self.target).resolve().parent)  # noqa: PTH100


def _depth_left() -> int:
    """How many more calls may be open; calls of functions in C count too, in some versions of Python."""
    try:
        return 1 + _depth_left()
    except RecursionError:
        return 0


def _run_source(source: Any, shown: str, file: str | None, rewrite: Rewrite | None) -> None:
    """Run source as `__main__`.

    Args:
        source: bytes, in an encoding they may declare.
        shown: how tracebacks name it.
        file: its `__file__`; None without one.
        rewrite: see `Program.run`.
    """
    module = ModuleType("__main__")
    names = module.__dict__
    names["__builtins__"] = builtins
    if file is not None:
        names.update(__file__=file, __loader__=SourceFileLoader("__main__", file), __cached__=None)
    sys.modules["__main__"] = module
    if rewrite is not None:
        source = ast.parse(source, shown)
        rewrite(source, names)
    exec(compile(source, shown, "exec", dont_inherit=True), names)
