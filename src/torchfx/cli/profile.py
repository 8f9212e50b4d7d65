"""`torchfx profile`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from torchfx.cli.console import err, fail
from torchfx.errors import ArgumentError
from torchfx.profiler.capture.folder import rank_of
from torchfx.profiler.capture.launch import Program, Settings, launch
from torchfx.profiler.capture.launch.importing import after_import
from torchfx.profiler.capture.options import Options
from torchfx.profiler.capture.result import Capture
from torchfx.profiler.capture.schedule import Schedule

__all__ = ["Options", "run"]


def run(
    words: list[str], module: bool, out: Path | None, schedule: tuple[int, int, int, int], options: Options,
    step_on: str, seconds: float,
) -> int:  # fmt: skip
    """Run the program and report on stderr, since stdout is the program's; return the program's exit status."""
    if not words:
        return fail("profile needs a script to run, or -m and a module", 2)
    program = Program(words[0], tuple(words[1:]), module)
    _make_import_fresh()
    try:
        settings = Settings(out or Path("traces") / program.name, Schedule(*schedule), options, step_on, seconds)
        ending = launch(program, settings, _report)
    except ArgumentError as error:
        return fail(error, 2)
    ending.follow()
    return ending.status


def _make_import_fresh() -> None:
    """Let the program's own `import torchfx` run the package's start again, with PyTorch loaded or not as it has it.

    This command needs the package before PyTorch; the program may rely on the operators being registered by its import.
    """
    sys.modules.pop("torchfx", None)
    after_import("torchfx", _bind_submodules)


def _bind_submodules(package: ModuleType) -> None:
    for name, module in list(sys.modules.items()):
        parent, _, child = name.rpartition(".")
        if parent == "torchfx":
            setattr(package, child, module)


def _report(capture: Capture) -> None:
    """Print the screen of text; of many ranks, the others than the first in a line."""
    rank = rank_of()
    text = f"\n{capture}" if not rank else f"rank {rank}: {capture.folder or '; '.join(capture.problems)}"
    err.print(text, markup=False)
