"""`torchfx measure`."""

from __future__ import annotations

import os
import sys

import msgspec
import torch

from torchfx.cli.console import err, fail, out
from torchfx.errors import ArgumentError
from torchfx.profiler.timing import Comparison, Measurement, compare, function_from, measure
from torchfx.profiler.timing.statement import run_setup

__all__ = ["run"]


def run(statements: list[str], setup: str, threads: int | None, max_time_s: float, as_json: bool) -> int:
    """Time one statement or compare several; return 0, 1 when nothing ran, 2 for misuse, 3 when the code raises."""
    if len(set(statements)) < len(statements):
        return fail(f"the statements must differ from each other, got {statements}", 2)
    if threads is not None:
        torch.set_num_threads(threads)
    sys.path.insert(0, os.curdir)  # so that --setup can import what lies here
    try:
        with err.status("timing"):
            found = _time(statements, setup, max_time_s)
    except ArgumentError as error:
        return fail(error, 2)
    except Exception as error:  # noqa: BLE001 - the code to time is the caller's and may raise anything
        return fail(f"the code raised {type(error).__name__}: {error}", 3)
    out.out(_as_json(found) if as_json else str(found), highlight=False)
    measurements = found.measurements if isinstance(found, Comparison) else (found,)
    return 1 if any(w.code == "nothing-ran" for m in measurements for w in m.warnings) else 0


def _time(statements: list[str], setup: str, max_time_s: float) -> Measurement | Comparison:
    names = run_setup(setup)
    functions = {text: function_from(text, names) for text in statements}
    if len(functions) > 1:
        return compare(functions, max_time_s=max_time_s)
    ((text, function),) = functions.items()
    return measure(function, name=text, max_time_s=max_time_s)


def _as_json(found: Measurement | Comparison) -> str:
    kind = "comparison" if isinstance(found, Comparison) else "measurement"
    data = {"schema": 1, "kind": kind, "torch": str(torch.__version__), **found.to_dict()}
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
