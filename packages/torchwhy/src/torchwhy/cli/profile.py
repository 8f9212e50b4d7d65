"""`torchfx profile`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from torchfx.cli.reading_back import Reader
from torchfx.cli.streams import complain, tell
from torchfx.errors import ArgumentError
from torchfx.profiler.capture.folder import rank_of
from torchfx.profiler.capture.launch import Program, Settings, launch
from torchfx.profiler.capture.launch.importing import after_import
from torchfx.profiler.capture.operators import read_rows
from torchfx.profiler.capture.options import Options, activities_of
from torchfx.profiler.capture.result import Capture
from torchfx.profiler.capture.schedule import Schedule
from torchfx.profiler.capture.whole_run import Limits
from torchfx.profiler.present.formats import check_format

__all__ = ["Limits", "Options", "run"]

DEFAULTS = Limits()


def run(
    words: list[str], module: bool, out: Path | None, schedule: tuple[int, int, int | None, int], options: Options,
    step_on: str, seconds: float, activities: str = "", form: str = "text", limits: Limits = DEFAULTS,
) -> int:  # fmt: skip
    """Run the program and report on stderr, since stdout is the program's; return the program's exit status."""
    if not words:
        return complain("profile needs a script to run, or -m and a module", 2)
    program = Program(words[0], tuple(words[1:]), module)
    reader = Reader()
    _make_import_fresh()
    try:
        check_format(form)
        if activities:
            options = replace(options, activities=activities_of(activities.split(",")))
        folder, most = out or Path("traces") / program.name, replace(limits, seconds=seconds)
        settings = Settings(folder, Schedule.of(*schedule), options, step_on, most)
        ending = launch(program, settings, lambda capture: _report(capture, reader, form))
    except ArgumentError as error:
        return complain(error, 2)
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


def _report(capture: Capture, reader: Reader, form: str) -> None:
    """Have the traces read, and print the screen of text; of many ranks, the others than the first in a line.

    In other formats it is the document of the traces alone, where there is one.
    """
    if capture.folder is not None:
        explanation = reader.explain(capture.folder, form)
        if form != "text" and not rank_of():
            tell(explanation)
            return
        capture = replace(capture, operators=read_rows(capture.folder), explanation=explanation)
    tell(f"\n{capture}" if not rank_of() else f"rank {rank_of()}: {capture.folder or '; '.join(capture.problems)}")
