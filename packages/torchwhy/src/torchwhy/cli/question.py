"""The commands that are made from `questions/catalogue.py`: `torchwhy finding`, `evidence` and `timeline`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchwhy.cli.console import answer, complain, patience
from torchwhy.cli.documents import terminal_style
from torchwhy.errors import ArgumentError, ArgumentTypeError, TraceError
from torchwhy.present.formats import check_format, render
from torchwhy.present.options import Options
from torchwhy.pyproject import SettingsFileError
from torchwhy.questions.answers import answered
from torchwhy.questions.catalogue import QUESTIONS
from torchwhy.questions.opening import Recordings

__all__ = ["run"]


def run(name: str, given: Mapping[str, Any], form: str, tokens: int | None) -> int:
    """Answer a question; return 0, 2 for misuse, 3 for what cannot be read."""
    question = next(one for one in QUESTIONS if one.name == name)
    try:
        check_format(form)
        options = Options(terminal_style(), verbose=True).within(tokens, form)
        with patience(f"reading {given['trace']}"):
            document = answered(question, given, Recordings())
        answer(render(document, form, options))
    except (ArgumentError, ArgumentTypeError) as error:
        return complain(error, 2)
    except (TraceError, SettingsFileError) as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot read {error.filename or given['trace']}: {error.strerror or error}", 3)
    return 0
