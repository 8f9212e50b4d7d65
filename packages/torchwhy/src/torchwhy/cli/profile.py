"""`torchwhy profile`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchwhy.capture.folder import rank_of
from torchwhy.capture.launch import Program, Settings, launch
from torchwhy.capture.operators import read_rows
from torchwhy.capture.options import Options, activities_of
from torchwhy.capture.result import Capture
from torchwhy.capture.schedule import Schedule
from torchwhy.capture.whole_run import Limits
from torchwhy.cli.analysis_process import Reader
from torchwhy.cli.console import complain, tell
from torchwhy.errors import ArgumentError
from torchwhy.present.formats import check_format

__all__ = ["Limits", "Options", "run"]

DEFAULTS = Limits()


def run(
    words: list[str], module: bool, out: Path | None, schedule: tuple[int, int, int | None, int], options: Options,
    step_on: str, seconds: float, activities: str = "", form: str = "text", limits: Limits = DEFAULTS,
    on_oom: bool = False, compile_log: bool = False,
) -> int:  # fmt: skip
    """Run the program and report on stderr, since stdout is the program's; return the program's exit status."""
    if not words:
        return complain("profile needs a script to run, or -m and a module", 2)
    program = Program(words[0], tuple(words[1:]), module)
    reader: Reader | None = None

    def settings() -> Settings:
        nonlocal reader
        reader = Reader()
        check_format(form)
        named = activities_of(activities.split(",")) if activities else options.activities
        folder, most = out or Path("traces") / program.name, replace(limits, seconds=seconds)
        recorded = replace(options, activities=named)
        return Settings(folder, Schedule.of(*schedule), recorded, step_on, most, on_oom, compile_log)

    def report(capture: Capture) -> None:
        assert reader is not None
        _report(capture, reader, form)

    try:
        ending = launch(program, settings, report, tell)
    except ArgumentError as error:
        return complain(error, 2)
    ending.follow()
    return ending.status


def _report(capture: Capture, reader: Reader, form: str) -> None:
    """Have the traces read, and print the screen of text; of many ranks, the others than the first in a line.

    In other formats it is the document of the traces alone, where there is one. Where no steps were recorded, and the
    program recorded itself, its own recording is shown.
    """
    explanation = reader.explain(capture.folder, form) if capture.folder is not None else ""
    operators = read_rows(capture.folder) if capture.folder is not None else ()
    if capture.own and not capture.steps_recorded:
        explanation, operators = reader.explain(capture.own[0], form), ()
        if form == "text":
            explanation = f"The program's own recording, {capture.own[0]}:\n\n{explanation}"
    if explanation:
        if form != "text" and not rank_of():
            tell(explanation)
            return
        capture = replace(capture, operators=operators, explanation=explanation)
    tell(f"\n{capture}" if not rank_of() else f"rank {rank_of()}: {capture.folder or '; '.join(capture.problems)}")
