"""Reasons in a compiler's log: why and where a graph broke, and which guard failed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from torchwhy.wording import safe, sentences, shared_path, shortened

__all__ = ["GraphBreak", "GuardFailure", "graph_break", "guard_failures", "kernel_lines", "place_of"]

LONGEST: Final = 240
"""Characters of a sentence that is kept."""

_HEADER: Final = re.compile(r"^Graph break in user code at (.+):(\d+)$", re.MULTILINE)
_FRAME: Final = re.compile(r'^ *File "(.+)", line (\d+), in (.+)\n(?: {4,}(?!File)(.+))?', re.MULTILINE)
_RESUMED: Final = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")
_RAISED: Final = re.compile(r"^torch\._dynamo\.exc\.\w+: (.+)$", re.MULTILINE)
_REASON: Final = re.compile(r"^Graph Break Reason: ", re.MULTILINE)
_PREAMBLE: Final = re.compile(r"^(Encountered graph break|Failed to handle graph break|Graph break under|Reason: )")
_EXPLAINED: Final = re.compile(r"^ {2,}Explanation: (.+)$", re.MULTILINE)
_GENERAL: Final = "report an issue|error when running in eager|is fundamental|caused by an earlier graph break"
_HINT: Final = re.compile(rf"^ {{2,}}Hint: (?!.*(?:{_GENERAL}))(.+)$", re.MULTILINE)
"""The general hints are in `torch/_dynamo/graph_break_hints.py` (2.13)."""
_CONTEXT: Final = re.compile(r"^ {2,}Developer debug context: (.+)$", re.MULTILINE)

_SKIPPED: Final = ("will skip tracing the frame", "Skipping the function", "frame skipped")

_GUARD: Final = re.compile(r"(?:!\d{1,9}/)?(?P<variant>\d{1,9}/\d{1,9}(?:_\d+)?): (?P<guard>.*)", re.DOTALL)
_SUBJECTS: Final = tuple(
    (subject, re.compile(pattern))
    for subject, pattern in (
        ("size", r"(size|rank) mismatch|\.size\(\)|\.shape\["),
        ("dtype", r"dtype mismatch"),
        ("layout", r"stride mismatch|\.stride\(\)|\.storage_offset\(\)"),
        ("gradient", r"requires_grad mismatch|GLOBAL_STATE changed: .*grad_mode"),
        ("length", r"\blen\(|_len\(|\.keys\(\)\) =="),
        ("value", r" == "),
        ("object", r"___check_(obj|type)_id\b| is (not )?"),
    )
)
"""What guards ask for, as `torch/_dynamo/guards.py` and `torch/csrc/dynamo/guards.cpp` write them (2.13); the first
that matches."""

_SOURCE: Final = re.compile(r"\s*  #\s*(?P<code>.*?)\s*  #\s*(?P<file>\S+?):(?P<line>\d+) in (?P<name>[\w<>.]+)")


@dataclass(frozen=True)
class GraphBreak:
    """Why a graph ended before its function did.

    Attributes:
        frame, version: K and M of the compilation K/M; -1 where the log does not say.
        line: of the program, as "train.py(34): step"; "" where the text names none.
        code: what stands there; "" where the text doesn't have it.
        reason: PyTorch's title, such as "Data-dependent branching".
        detail: what in particular, as PyTorch explains it.
        skipped: whether the whole function runs uncompiled for it.
        hint: PyTorch's first hint about this reason; "" where it has only general ones.
    """

    frame: int
    version: int
    line: str
    code: str
    reason: str
    detail: str
    skipped: bool
    hint: str = ""

    @property
    def id(self) -> str:
        """K/M, or ""."""
        return f"{self.frame}/{self.version}" if self.frame >= 0 else ""


@dataclass(frozen=True)
class GuardFailure:
    """Why an existing variant of a function did not fit.

    Attributes:
        variant: K/M of what did not fit.
        guard: what it asks for, as PyTorch writes it.
        line: of the program that made PyTorch ask, as "train.py(34): step"; "" where the log doesn't say.
        code: what stands there; "" likewise.
    """

    variant: str
    guard: str
    line: str = ""
    code: str = ""

    @property
    def subject(self) -> str:
        """What differs: size, dtype, layout, gradient, length, value or object; "" where that is not known.

        >>> GuardFailure("0/0", "tensor 'x' dtype mismatch. expected Float, actual Double").subject
        'dtype'
        """
        return next((subject for subject, pattern in _SUBJECTS if pattern.search(self.guard)), "")


def place_of(file: str, line: int | str, function: str) -> str:
    """Return a line of the program as traces write it; the rest of a function after a break is that function.

    >>> place_of("net/train.py", 34, "torch_dynamo_resume_in_step_at_30")
    'net/train.py(34): step'
    """
    resumed = _RESUMED.match(function)
    return _bounded(f"{shared_path(file)}({line}): {resumed[1] if resumed else function}")


def graph_break(text: str, frame: int, version: int) -> GraphBreak:
    """Read the text of a `dynamo_graph_break_reason`.

    >>> found = graph_break('''Graph break in user code at train.py:4
    ... Graph Break Reason: Unsupported Tensor.item() call
    ...   Explanation: It needs the value.
    ...
    ... User code traceback:
    ...   File "train.py", line 4, in step
    ...     s = y.item()
    ... ''', 0, 0)
    >>> found.line, found.code, found.reason, found.detail
    ('train.py(4): step', 's = y.item()', 'Unsupported Tensor.item() call', 'It needs the value.')
    """
    user, _, raised = text.partition("Traceback (most recent call last)")
    frames = _FRAME.findall(user)
    header = _HEADER.search(user)
    reason = _REASON.search(user)
    if reason is not None:
        said = user[reason.end() :].partition("\nUser code traceback")[0]
    else:
        last = [*_RAISED.finditer(raised)]
        said = raised[last[-1].start(1) :] if last else raised or user
    line = place_of(*frames[-1][:3]) if frames else place_of(header[1], header[2], "") if header else ""
    return GraphBreak(
        frame,
        version,
        line.removesuffix(": "),
        _bounded(frames[-1][3]) if frames else "",
        _title(said),
        _first(_EXPLAINED, said) or _first(_CONTEXT, said),
        any(sign in user for sign in _SKIPPED),
        _whole(_HINT, said),
    )


def guard_failures(payload: str) -> tuple[GuardFailure, ...]:
    """Read the payload of `recompile_reasons`: a text of JSON, or a list of texts, one for each variant.

    >>> guard_failures('"0/0: ___check_type(n)  # return x * n  # train.py:3 in step"')
    (GuardFailure(variant='0/0', guard='___check_type(n)', line='train.py(3): step', code='return x * n'),)
    """
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        found = payload  # a text that is no JSON is said as it is
    texts = found if isinstance(found, list) else [found]
    return tuple(_failure(text) for text in texts[:64] if isinstance(text, str))


def _failure(text: str) -> GuardFailure:
    found = _GUARD.match(text)
    variant, said = (found["variant"], found["guard"]) if found else ("", text)
    said, _, stack = said.partition("\nUser stack trace:")
    frames, source = _FRAME.findall(stack), _SOURCE.search(said)
    guard = _bounded(said[: source.start()] if source else said)
    if frames:  # of the source in the guard's own line PyTorch cuts the path
        return GuardFailure(variant, guard, place_of(*frames[-1][:3]), _bounded(frames[-1][3]))
    if source is None:
        return GuardFailure(variant, guard)
    return GuardFailure(
        variant, guard, place_of(source["file"], source["line"], source["name"]), _bounded(source["code"])
    )


def _title(said: str) -> str:
    """The first line that says why; what was being traced stands before it."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    title = next((line for line in lines if not _PREAMBLE.match(line)), lines[0] if lines else "")
    return _bounded(title)


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return _bounded(found[1]) if found else ""


def _whole(pattern: re.Pattern[str], text: str) -> str:
    """Those first sentences of the first match that are short enough to be kept whole."""
    found = pattern.search(text)
    kept = sentences(found[1][: 4 * LONGEST]) if found else []
    while len(kept) > 1 and len(". ".join(kept)) >= LONGEST:
        kept.pop()
    return _bounded(". ".join(kept))


def _bounded(text: str) -> str:
    return shortened(safe(" ".join(text[: 4 * LONGEST].split())), LONGEST)


def kernel_lines(traces: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Read which lines of the program each generated kernel computes, by the kernel's name.

    >>> kernel_lines({"triton_poi_fused_add_0:1": ['  File "train.py", line 3, in step\\n    y = x + 1']})
    {'triton_poi_fused_add_0': ('train.py(3): step',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for kernel, stacks in traces.items():
        texts = [text for text in stacks if isinstance(text, str)] if isinstance(stacks, list) else []
        lines = dict.fromkeys(place_of(*frames[-1][:3]) for text in texts[:64] if (frames := _FRAME.findall(text)))
        if lines:
            found[_bounded(str(kernel).rpartition(":")[0] or str(kernel))] = tuple(lines)
    return found
