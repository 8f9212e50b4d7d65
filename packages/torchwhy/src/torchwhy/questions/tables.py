"""A table of a trace by its name, as a document."""

from __future__ import annotations

from typing import Final

from torchwhy.errors import ArgumentError
from torchwhy.loading.trace import TABLES, LoadedTrace
from torchwhy.present.document import Document
from torchwhy.present.trace_table import column_called, trace_table

__all__ = ["table_document"]

_OF_DEVICES: Final = ("copies", "idle", "kernels", "kinds", "launches", "overlap")
_NO_DEVICE: Final = (
    "The trace has no work of a device, such as a GPU: the program ran on the CPU, or the device was not recorded. "
    "The tables ops, steps and critical_path show the CPU's time."
)


def table_document(
    trace: LoadedTrace,
    name: str,
    *,
    sort: str | None = None,
    limit: int = 20,
    by_shape: bool = False,
    by_stack: int = 0,
    option: bool = False,
) -> Document:
    """Return a table.

    Args:
        trace: which it is about.
        name: one of `TABLES`.
        sort: by this column; in the table's own order where None.
        limit: rows of the short view.
        by_shape, by_stack: of "ops": group by the shapes of inputs, or by this number of innermost Python frames.
        option: whether errors name the options of the command line instead of the arguments.

    Raises:
        ArgumentError: there is no such table or column, or what groups operators is given for another table.
    """
    table_is, by = ("--table", "--by-shape and --by-stack") if option else ("name", "by_shape and by_stack")
    if name not in TABLES:
        raise ArgumentError(f"{table_is} must be one of {', '.join(TABLES)}, got {name[:40]!r}")
    if by_shape or by_stack:
        if name != "ops":
            raise ArgumentError(f"{by} group operators: {table_is} must be ops, got {name}")
        table = trace.ops(by_shape=by_shape, by_stack=by_stack)
    else:
        table = getattr(trace, name)()
    if sort is not None:
        table = table.sorted(column_called(table, sort))
    nothing = _NO_DEVICE if name in _OF_DEVICES and not len(trace.links.work) else ""
    return trace_table(table, name, trace.file, limit, nothing)
