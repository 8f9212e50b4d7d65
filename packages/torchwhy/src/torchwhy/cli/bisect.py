"""`torchwhy bisect`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchwhy.cli.console import complain, ending_in_order, tell
from torchwhy.cli.documents import show
from torchwhy.errors import ArgumentError
from torchwhy.history.bisecting import CommandFailedError, bisect, measure_of
from torchwhy.history.document import bisection_document
from torchwhy.history.git import GitError, Repository
from torchwhy.present.formats import check_format

__all__ = ["Request", "run"]


@dataclass(frozen=True)
class Request:
    """The options as given."""

    good: str
    bad: str = "HEAD"
    runs: int = 5
    metric: str = "step"
    form: str = "text"


def run(words: Sequence[str], request: Request) -> int:
    """Find the commit that made a command slower.

    Returns:
        0, 1 where none is found or the one found is not confirmed, 2 for misuse, 3 for what cannot be run.
    """
    here = Path.cwd()
    try:
        check_format(request.form)
        with ending_in_order():
            found = bisect(
                Repository(here),
                measure_of(words, request.metric, here),
                good=request.good,
                bad=request.bad,
                runs=request.runs,
                command=" ".join(words),
                say=tell,
            )
    except ArgumentError as error:
        return complain(error, 2)
    except (CommandFailedError, GitError) as error:
        return complain(error, 3)
    show(bisection_document(found), request.form)
    return 0 if found.kind == "found" else 1
