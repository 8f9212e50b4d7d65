"""Graph breaks and recompilations, from the records that `torch._dynamo` keeps itself.

A graph break is met while compiling: `graph_break_reasons` lists those after which a compiled graph continues, and the
record of a compilation that failed is the break that leaves a whole function uncompiled (one inside a loop or `try`).
Code that was compiled before runs on with its breaks and compiles nothing: only a trace sees the first kind
(`count(trace=True)`), and nothing sees the second.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchwhy.counters.counts import Compilation, GraphBreak
from torchwhy.counters.program_line import line_text
from torchwhy.trace.meaning.compiler import compile_id

__all__ = ["Compiled", "CompilerMark", "breaks_in", "known_compilations", "known_graph_breaks", "note_on_uncompiled"]

_KEPT = 4096  # compilations PyTorch shall remember; its own limit, 64, is less than one large model needs
_NO_REASON = "(this version of PyTorch records no reason)"
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")  # the code after a graph break, and where it continues


def known_compilations() -> int:
    """Return how many frames this process has compiled so far."""
    return len(_compilations())


def known_graph_breaks() -> int:
    """Return how many graph breaks this process has met so far."""
    return sum(found.times for found in _graph_breaks(_break_reasons(), _compilations()))


def note_on_uncompiled(frames: Sequence[Any]) -> Iterator[str]:
    """Yield a note on functions that a graph break left uncompiled before `frames` were compiled."""
    counted = [id(frame) for frame in frames]
    places = {_place(record) for record in _compilations() if _gave_up(record) and id(record) not in counted}
    if places:
        functions = ", ".join(sorted(places))
        yield f"graph_breaks: torch.compile gave up on {functions} before; whether that ran again is not seen"


@dataclass(frozen=True)
class Compiled:
    """The compilations during a count; `frames` are PyTorch's own records of it."""

    graph_breaks: tuple[GraphBreak, ...]
    recompiles: tuple[Compilation, ...]
    frames: tuple[Any, ...]


@dataclass(frozen=True)
class CompilerMark:
    """Where `torch._dynamo`'s records stood when a count began."""

    earlier: int = field(default_factory=known_graph_breaks)
    last_break: Any = field(default_factory=lambda: _last(_break_reasons()))
    last_frame: Any = field(default_factory=lambda: _last(_compilations()))

    def since(self) -> Compiled:
        """Return what was compiled since then."""
        frames = [
            record
            for record in _after(self.last_frame, _compilations())
            if getattr(record, "is_forward", True) is not False
        ]
        return Compiled(
            tuple(_graph_breaks(_after(self.last_break, _break_reasons()), frames)),
            tuple(_recompilation(frame) for frame in frames if _is_recompilation(frame)),
            tuple(frames),
        )


def breaks_in(nested: Iterable[tuple[int, int]], frames: Sequence[Any]) -> Iterator[GraphBreak]:
    """Yield the breaks in code that ran but was compiled before the count: its breaks are in no record of it.

    A region inside another one is the code after a break, or a function that the program calls where it broke.

    Args:
        nested: the regions (frame, attempt) that ran inside another compiled region.
        frames: what was compiled during the count; its breaks are known already.
    """
    compiled_now = {_number(frame) for frame in frames}
    for region in nested:
        known = [record for record in _compilations() if _number(record) == region and _place(record)]
        # The latest: torch._dynamo.reset() lets the numbers start again.
        after_break = not known or _RESUMED.search(known[-1].co_name)
        if region not in compiled_now and after_break:
            reason = f"met before this count began; compiled region {region[0]}/{region[1]} continues after it"
            yield GraphBreak(reason, _place(known[-1]) if known else "", 1)


def _dynamo() -> Any:
    """Return `torch._dynamo.utils` if the program has loaded it; loading it costs a second."""
    return sys.modules.get("torch._dynamo.utils")


def _break_reasons() -> list[Any]:
    """Return why graphs were cut so far, `GraphCompileReason`s; `torch._dynamo.reset()` empties them."""
    return list(getattr(_dynamo(), "graph_break_reasons", ()))


def _graph_breaks(reasons: Iterable[Any], frames: Sequence[Any]) -> Iterator[GraphBreak]:
    """Yield each place and reason once, with how often it was met."""
    failed = [frame for frame in frames if _gave_up(frame)]
    uncompiled = {(frame.co_filename, frame.co_name) for frame in failed}
    found = Counter((_headline(frame.fail_reason or frame.fail_type), _place(frame)) for frame in failed)
    for reason in reasons:
        stack = reason.user_stack
        if not stack or (stack[0].filename, stack[0].name) not in uncompiled:  # else its function broke for good later
            found[_headline(reason.reason), _line(stack[-1]) if stack else ""] += 1
    yield from (GraphBreak(*key, times) for key, times in found.items())


def _gave_up(record: Any) -> bool:
    """Return whether a compilation failed; at the recompile limit the record names no function."""
    return bool(getattr(record, "fail_type", None) and _place(record))


def _compilations() -> list[Any]:
    """Return PyTorch's records of compilations, none where this version keeps none."""
    kept = getattr(_dynamo(), "_compilation_metrics", None)
    if kept is None:
        return []
    if kept.maxlen is not None and kept.maxlen < _KEPT:
        _dynamo().set_compilation_metrics_limit(_KEPT)
    return list(_dynamo()._compilation_metrics)


def _after(last: Any, records: Sequence[Any]) -> list[Any]:
    """Return the records that follow `last`, all of them where it is not among them."""
    position = next((i for i in range(len(records) - 1, -1, -1) if records[i] is last), -1)
    return list(records[position + 1 :])


def _last(records: Sequence[Any]) -> Any:
    return records[-1] if records else None


def _headline(text: str) -> str:
    line = text.partition("\n")[0].strip()
    return "data-dependent branching" if line.startswith("generic_jump") else line


def _line(frame: Any) -> str:
    name = _RESUMED.search(frame.name)
    return line_text((frame.filename, frame.lineno, name[1] if name else frame.name))


def _place(record: Any) -> str:
    """Return where a compiled function, or the rest of one after a graph break, begins; "" where that is not known."""
    if not getattr(record, "co_filename", None):
        return ""
    resumed = _RESUMED.search(record.co_name)
    name, line = resumed.groups() if resumed else (record.co_name, record.co_firstlineno)
    return line_text((record.co_filename, int(line), name))


def _number(record: Any) -> tuple[int, int]:
    """Return frame and attempt, as in the names of compiled regions."""
    return compile_id(str(getattr(record, "compile_id", None)))


def _is_recompilation(record: Any) -> bool:
    reason = getattr(record, "recompile_reason", None)
    return bool(reason) or (not hasattr(record, "recompile_reason") and _number(record)[1] > 0)


def _recompilation(record: Any) -> Compilation:
    reason = getattr(record, "recompile_reason", None) or _NO_REASON
    return Compilation(getattr(record, "co_name", None) or "(gave up: recompile limit)", _place(record), reason)
