"""`torchwhy try`."""

from __future__ import annotations

from torchwhy.capture.launch.program import Program
from torchwhy.cli.console import complain, ending_in_order, tell
from torchwhy.cli.documents import show
from torchwhy.errors import ArgumentError
from torchwhy.present.formats import check_format
from torchwhy.tuning.document import try_document
from torchwhy.tuning.search import search
from torchwhy.tuning.trial import ProgramFailedError

__all__ = ["run"]


def run(words: list[str], module: bool, budget_s: float, form: str) -> int:
    """Try what can be changed about a program from outside; progress goes to stderr.

    Returns:
        0 if something helps, 1 if nothing does, 2 for misuse, 3 if the program does not run.
    """
    try:
        check_format(form)
        with ending_in_order():
            found = search(Program(words[0], tuple(words[1:]), module), budget_s, say=tell)
    except ArgumentError as error:
        return complain(error, 2)
    except ProgramFailedError as error:
        return complain(f"the program cannot be measured: {error}", 3)
    show(try_document(found), form)
    return 0 if found.best else 1
