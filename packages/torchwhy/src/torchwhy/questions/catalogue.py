"""The questions that commands and the tools of `torchwhy mcp` ask: both are made from this list.

It imports nothing else of the package, since every start of the command line reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["QUESTIONS", "Parameter", "Question"]


@dataclass(frozen=True)
class Parameter:
    """What a question needs to know.

    Attributes:
        name: of the tool's argument and of the command's.
        help: one line.
        kind: `str`, `int` or `bool`.
        needed: whether there is no question without it; on the command line it has a place instead of an option.
        placed: whether it has a place on the command line though it may be left out.
        recording: whether it is the path of something recorded; the server hands out only what lies in its folders.
        default: where it is left out; None: nothing.
    """

    name: str
    help: str
    kind: type = str
    needed: bool = False
    placed: bool = False
    recording: bool = False
    default: int | bool | None = None


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        name: of the tool, and of the command.
        help: what is answered; the first line says it alone.
        parameters: in order.
        made: whether the command is made from this; else it is written in `cli/app.py`, with more options.
    """

    name: str
    help: str
    parameters: tuple[Parameter, ...]
    made: bool = False


_TRACE: Final = Parameter(
    "trace", "A trace, .json or .json.gz, or a folder: of a run, or with the traces of all ranks.",
    needed=True, recording=True,
)  # fmt: skip
_STEPS: Final = Parameter("steps", "Only these recorded steps, as in 5-7; findings then have other ids.")
_CAPTURE: Final = Parameter(
    "capture", "Traces of the capture of replayed CUDA graphs, to name their kernels by.", recording=True
)
_PART: Final = (_STEPS, _CAPTURE)
_ID: Final = Parameter("id", "Of a finding, as `explain` lists it, such as B9-3f1c.", needed=True)

QUESTIONS: Final = (
    Question(
        "explain",
        "Say what limits a recorded PyTorch program, how far the recording can be trusted, and what to do.\n\n"
        "Ask this first. Findings come with ids, the most time at stake first; the other questions take an id.",
        (_TRACE, *_PART),
    ),
    Question(
        "table",
        "List what a recording holds: kinds, ops, kernels, modules, labels, copies, launches, memory, steps, idle, "
        "compile, overlap, critical_path, collectives or stacks.",
        (
            _TRACE,
            Parameter("name", "Of the table.", needed=True),
            Parameter("sort", "By this column."),
            Parameter("limit", "Rows at most.", int, default=20),
            Parameter("by_shape", "Of ops: group by the shapes of inputs.", bool, default=False),
            *_PART,
        ),
    ),
    Question(
        "finding",
        "Say everything about one finding: cause, fix, evidence, when it happens, what its rule looks for.\n\n"
        "The ids are those of torchwhy explain TRACE --format agent.",
        (_TRACE, _ID, *_PART),
        made=True,
    ),
    Question(
        "evidence",
        "List the events that a finding rests on, the longest first, with what launched them and the program's line.",
        (_TRACE, _ID, Parameter("limit", "Events at most, up to 200.", int, default=20), *_PART),
        made=True,
    ),
    Question(
        "timeline",
        "Say what every thread and stream does around a finding, or during a stretch of time.\n\n"
        "Without ID and range it is the window that findings speak of.",
        (
            _TRACE,
            Parameter("id", "Of a finding: the stretch is around the longest that it is about.", placed=True),
            Parameter("range", "A:B, milliseconds from the window's beginning, as in 10:12.5."),
            *_PART,
        ),
        made=True,
    ),
    Question(
        "diff",
        "Compare two recordings of one program: is it faster beyond the noise, and what became of each finding.\n\n"
        "A finding is fixed, better, unchanged, worse, new, or unknown where one recording lacks what its rule needs.",
        (
            Parameter("before", "The recording before: a trace or a folder.", needed=True, recording=True),
            Parameter("after", "The recording after.", needed=True, recording=True),
        ),
    ),
)
