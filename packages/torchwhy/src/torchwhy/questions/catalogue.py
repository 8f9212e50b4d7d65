"""The questions that commands and the tools of `torchwhy mcp` ask: both are made from this list.

It imports nothing else of the package, since every start of the command line reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["QUESTIONS", "Parameter", "Question"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a question.

    Attributes:
        name: name of the tool's and the command's argument.
        help: description in one line.
        kind: `str`, `int` or `bool`.
        needed: whether it is required; on the command line it is then an argument instead of an option.
        placed: whether it is an optional argument on the command line.
        recording: whether it is the path of a recording; the server accepts only paths in its folders.
        default: default value; None if there is no default.
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
    """A question: a command and an MCP tool.

    Attributes:
        name: name of the tool and the command.
        help: description; the first line is the summary.
        parameters: parameters in order.
        made: whether the command is generated; otherwise it is defined in `cli/app.py`, with more options.
    """

    name: str
    help: str
    parameters: tuple[Parameter, ...]
    made: bool = False


_TRACE: Final = Parameter(
    "trace", "A trace (.json, .json.gz, or of another recorder), a run's folder, or a folder with all ranks' traces.",
    needed=True, recording=True,
)  # fmt: skip
_STEPS: Final = Parameter("steps", "Only these recorded steps, as in 5-7; this changes the ids of findings.")
_CAPTURE: Final = Parameter(
    "capture", "Traces of the capture of replayed CUDA graphs, to name their kernels.", recording=True
)
_PART: Final = (_STEPS, _CAPTURE)
_ID: Final = Parameter("id", "Id of a finding, as listed by `explain`, such as B9-3f1c.", needed=True)

QUESTIONS: Final = (
    Question(
        "explain",
        "Report what limits a recorded PyTorch program, whether the recording can be trusted, and what to do.\n\n"
        "Ask this first. Findings have ids and are sorted by the time at stake; other questions take an id. "
        "Of a folder of several runs, the answer names those that stand out.",
        (_TRACE, *_PART),
    ),
    Question(
        "table",
        "List a table of a recording: kinds, ops, kernels, modules, labels, copies, launches, memory, steps, phases, "
        "counters, idle, compile, overlap, critical_path, collectives or stacks.",
        (
            _TRACE,
            Parameter("name", "Name of the table.", needed=True),
            Parameter("sort", "Sort by this column."),
            Parameter("limit", "Maximum number of rows.", int, default=20),
            Parameter("by_shape", "For ops: group by input shapes.", bool, default=False),
            *_PART,
        ),
    ),
    Question(
        "finding",
        "Show everything about one finding: cause, fix, evidence, times, and the documentation of its rule.\n\n"
        "torchwhy explain TRACE --format agent lists the ids.",
        (_TRACE, _ID, *_PART),
        made=True,
    ),
    Question(
        "evidence",
        "List the events behind a finding, the longest first, with their launches and the program's line.",
        (_TRACE, _ID, Parameter("limit", "Maximum number of events, up to 200.", int, default=20), *_PART),
        made=True,
    ),
    Question(
        "timeline",
        "Show the activity of every thread and stream around a finding, or during a time range.\n\n"
        "Without ID and range, the whole window is shown.",
        (
            _TRACE,
            Parameter("id", "Id of a finding: show the time around its longest event.", placed=True),
            Parameter("range", "Time range A:B in milliseconds from the window's beginning, as in 10:12.5."),
            *_PART,
        ),
        made=True,
    ),
    Question(
        "diff",
        "Compare two recordings of one program: the speedup beyond the noise, and the change of each finding.\n\n"
        "A finding is fixed, better, unchanged, worse, new, or unknown if a recording lacks data for its rule.",
        (
            Parameter("before", "The recording before: a trace or a folder.", needed=True, recording=True),
            Parameter("after", "The recording after.", needed=True, recording=True),
        ),
    ),
)
