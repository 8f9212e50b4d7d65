"""How an agent asks on: the second step, as a command and as a tool of `torchwhy mcp`."""

from __future__ import annotations

from typing import Final

__all__ = ["CALLS", "next_calls"]

CALLS: Final = {
    "explain": ("torchwhy explain TRACE --format agent", "explain(trace)"),
    "table": ("torchwhy explain TRACE --format agent --table NAME", "table(trace, name)"),
    "finding": ("torchwhy finding TRACE ID", "finding(trace, id)"),
    "evidence": ("torchwhy evidence TRACE ID", "evidence(trace, id)"),
    "timeline": ("torchwhy timeline TRACE ID", "timeline(trace, id)"),
    "diff": ("torchwhy diff BEFORE AFTER --format agent", "diff(before, after)"),
}
"""Each question's command, and its call as a tool."""

_NEXT: Final = {
    "explain": ("finding", "evidence", "timeline", "table"),
    "explain runs": ("explain",),
    "finding": ("evidence", "timeline"),
    "evidence": ("timeline",),
    "timeline": ("table",),
    "diff": ("explain",),
    "profile": ("explain",),
}
"""The questions that follow an answer, by its command."""


def next_calls(command: str, *, tool: bool) -> tuple[str, ...]:
    """Return the calls that lead on from a command's answer; of those that are written alike, the first and names.

    A command can be copied, so other names follow it in parentheses.

    Args:
        command: that answered.
        tool: as calls of tools, else as commands.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for name in _NEXT.get(command, ()):
        before, _, after = CALLS[name][tool].partition(name)
        alike.setdefault((before, after), []).append(name)
    if tool:
        return tuple(f"{before}{'|'.join(names)}{after}" for (before, after), names in alike.items())
    return tuple(
        f"{before}{first}{after}" + (f" (also {', '.join(others)})" if others else "")
        for (before, after), (first, *others) in alike.items()
    )
