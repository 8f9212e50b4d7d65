"""Which file a path on the command line means."""

from __future__ import annotations

from torchwhy.cli.console import say
from torchwhy.ranks.folder import find_traces, later_windows, single_trace
from torchwhy.trace.file.remote import path_of

__all__ = ["trace_in"]


def trace_in(given: str, doing: str) -> str | None:
    """Return the file: the path itself, or the trace in a folder; None for a folder with traces of several ranks.

    Where a process left several windows, the first is meant, and stderr says so.

    Args:
        given: as on the command line.
        doing: what is done with the trace, such as "explaining".

    Raises:
        TraceError: a folder has no trace in it, or traces of several programs.
    """
    folder = path_of(given)
    if given == "-" or not folder.is_dir():
        return given
    trace = single_trace(folder)
    first = trace or find_traces(folder).traces[0]
    later = [path.name for path in later_windows(first)]
    if later and trace is None:
        say(f"of several windows of a rank the first is read, such as {first.name}")
    elif later:
        others = f"{', '.join(later[:3])} and {len(later) - 3} more" if len(later) > 3 else ", ".join(later)
        say(f"{doing} the first window, {first.name}; also there: {others}")
    return None if trace is None else str(trace)
