"""Reads a run's traces in a separate process.

The program that was profiled may have changed everything in its process: modules, search path, warnings, signals,
memory. None of that can spoil the reading in another one, nor the reading the program's end.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from torchwhy.cli.console import shows_colour, shows_unicode, width

__all__ = ["Reader", "main"]

_UNREAD: Final = 4
"""Status of the other process if its answer says why the traces cannot be read."""


@dataclass(frozen=True)
class Reader:
    """This process as it is before the program runs: where it looks for modules and settings, and its stderr."""

    path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    directory: Path = field(default_factory=Path.cwd)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    style: tuple[int, bool, bool] = field(
        default_factory=lambda: (width(), shows_colour(sys.stderr), shows_unicode(sys.stderr))
    )

    def explain(self, folder: Path, form: str = "text") -> str:
        """Return what the traces in a folder say, in one of `present.formats.FORMATS`, or why they were not read.

        A file that another profiler wrote may stand for the folder.
        """
        return self.read(folder, form)[0]

    def read(self, folder: Path, form: str = "text") -> tuple[str, bool]:
        """Return the same, and whether they were read."""
        request = json.dumps([str(folder), str(self.directory), form, *self.style])
        code = f"import sys; sys.path[:] = {list(self.path)!r}; from {__name__} import main; main()"
        cwd = self.directory if self.directory.is_dir() else folder.parent  # the program may have removed it
        try:
            ran = subprocess.run(
                [sys.executable, "-c", code, request], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                cwd=cwd, env={"OPENBLAS_NUM_THREADS": "1", **self.environment},
            )  # fmt: skip
        except KeyboardInterrupt:
            why = "interrupted"
        except (OSError, ValueError) as error:
            why = f"{type(error).__name__}: {error}"
        else:
            if ran.returncode in {0, _UNREAD}:
                return ran.stdout.decode(), not ran.returncode
            why = (ran.stderr.decode(errors="replace").split("\n")[-2:] or [""])[0] or f"status {ran.returncode}"
        return f"The trace was not read ({why}); torchwhy explain {shlex.quote(str(folder))} tries again.", False


def main() -> None:
    """Be the other process: the request is the first argument, the answer goes to stdout."""
    from torchwhy.present.style import Style
    from torchwhy.run_analysis import read_back

    folder, directory, form, *style = json.loads(sys.argv[1])
    explanation = read_back(Path(folder), Path(directory), Style(*style), form)
    sys.stdout.buffer.write(explanation.text.encode())
    sys.exit(0 if explanation.was_read else _UNREAD)
