"""`torchwhy measure`."""

from __future__ import annotations

import os
import sys

import torch

from torchwhy.cli.console import complain, patience
from torchwhy.cli.documents import show
from torchwhy.errors import ArgumentError
from torchwhy.present.formats import check_format
from torchwhy.timing import Comparison, Measurement, compare, function_from, measure
from torchwhy.timing.document import timing_document
from torchwhy.timing.statement import run_setup

__all__ = ["run"]


def run(statements: list[str], setup: str, threads: int | None, max_time_s: float, form: str) -> int:
    """Time one statement or compare several; return 0, 1 when nothing ran, 2 for misuse, 3 when the code raises."""
    if len(set(statements)) < len(statements):
        return complain(f"the statements must differ from each other, got {statements}", 2)
    if threads is not None:
        torch.set_num_threads(threads)
    sys.path.insert(0, os.curdir)  # so that --setup can import what lies here
    try:
        check_format(form)
        with patience("timing"):
            found = _time(statements, setup, max_time_s)
    except ArgumentError as error:
        return complain(error, 2)
    except Exception as error:  # noqa: BLE001 - the code to time is the caller's and may raise anything
        return complain(f"the code raised {type(error).__name__}: {error}", 3)
    show(timing_document(found), form)
    measurements = found.measurements if isinstance(found, Comparison) else (found,)
    return 1 if any(w.code == "nothing-ran" for m in measurements for w in m.warnings) else 0


def _time(statements: list[str], setup: str, max_time_s: float) -> Measurement | Comparison:
    names = run_setup(setup)
    functions = {text: function_from(text, names) for text in statements}
    if len(functions) > 1:
        return compare(functions, max_time_s=max_time_s)
    ((text, function),) = functions.items()
    return measure(function, name=text, max_time_s=max_time_s)
