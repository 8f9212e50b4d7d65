"""Graph breaks and recompilations, from the records that `torch._dynamo` keeps itself.

A graph break is met while compiling. Code that was compiled before runs on with its breaks and compiles nothing: only
a trace sees those (`count(trace=True)`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchfx.profiler.counters.records import Compilation, GraphBreak
from torchfx.profiler.counters.where import short_path

__all__ = ["Compiled", "CompilerMark", "breaks_in", "known_graph_breaks"]

_KEPT = 4096  # compilations PyTorch shall remember; its own limit, 64, is less than one large model needs
_NO_REASON = "(this version of PyTorch records no reason)"


def known_graph_breaks() -> int:
    """Return how many graph breaks this process has met so far."""
    return sum(_break_counter().values())


@dataclass(frozen=True)
class Compiled:
    """What was compiled during a count; `frames` are PyTorch's own records of it."""

    graph_breaks: tuple[GraphBreak, ...]
    recompiles: tuple[Compilation, ...]
    frames: tuple[Any, ...]


@dataclass(frozen=True)
class CompilerMark:
    """Where `torch._dynamo`'s records stood when a count began."""

    breaks: Counter[str] = field(default_factory=lambda: Counter(_break_counter()))
    last: Any = field(default_factory=lambda: (_compilations() or [None])[-1])

    def since(self) -> Compiled:
        """Return what was compiled since then."""
        frames = [
            record for record in _after(self.last, _compilations()) if getattr(record, "is_forward", True) is not False
        ]
        breaks = Counter(_break_counter())
        breaks.subtract(self.breaks)
        found = [
            GraphBreak(_headline(text), _broken_function(text, frames), times)
            for text, times in breaks.items()
            if times > 0
        ]
        return Compiled(
            tuple(found), tuple(_recompilation(frame) for frame in frames if _is_recompilation(frame)), tuple(frames)
        )


def breaks_in(resumed: Iterable[str], frames: Sequence[Any]) -> Iterator[GraphBreak]:
    """Yield the breaks in code that ran but was compiled before the count: its breaks are in no record of it.

    Args:
        resumed: the regions (`frame/attempt`) that ran inside another compiled region.
        frames: what was compiled during the count; its breaks are known already.
    """
    compiled_now = {_number(frame) for frame in frames}
    for region in resumed:
        if region not in compiled_now:
            known = [record for record in _compilations() if _number(record) == region and _place(record)]
            reason = f"met before this count began; compiled region {region} runs inside another"
            # The latest: torch._dynamo.reset() lets the numbers begin anew.
            yield GraphBreak(reason, _place(known[-1]) if known else "", 1)


def _dynamo() -> Any:
    """Return `torch._dynamo.utils` if the program has loaded it; loading it costs a second."""
    return sys.modules.get("torch._dynamo.utils")


def _break_counter() -> Counter[str]:
    counters: dict[str, Counter[str]] = getattr(_dynamo(), "counters", {})
    return counters.get("graph_break", Counter())


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


def _headline(text: str) -> str:
    return text.partition("\n")[0].strip()


def _broken_function(text: str, records: Sequence[Any]) -> str:
    for record in records:
        if any(text in reason or reason in text for reason in getattr(record, "restart_reasons", None) or () if reason):
            return _place(record)
    return ""


def _place(record: Any) -> str:
    if not getattr(record, "co_filename", None):
        return ""
    return f"{short_path(record.co_filename)}:{record.co_firstlineno} in {record.co_name}"


def _number(record: Any) -> str:
    """Return `frame/attempt`, as in the names of compiled regions."""
    return str(getattr(record, "compile_id", None) or "")


def _is_recompilation(record: Any) -> bool:
    reason = getattr(record, "recompile_reason", None)
    attempt = _number(record).rpartition("/")[2]
    return bool(reason) or (not hasattr(record, "recompile_reason") and attempt.isdigit() and int(attempt) > 0)


def _recompilation(record: Any) -> Compilation:
    reason = getattr(record, "recompile_reason", None) or _NO_REASON
    return Compilation(getattr(record, "co_name", None) or "(gave up: recompile limit)", _place(record), reason)
