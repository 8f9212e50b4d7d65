"""SQL over a trace: `trace.sql("select ...")`, with DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.trace.tables.collectives import collectives
from torchwhy.trace.tables.compilation import compilation
from torchwhy.trace.tables.copies import copies
from torchwhy.trace.tables.counters import counters
from torchwhy.trace.tables.critical_path import critical_path
from torchwhy.trace.tables.event_table import event_table
from torchwhy.trace.tables.idle import idle_table
from torchwhy.trace.tables.kernels import kernels
from torchwhy.trace.tables.kinds import kinds
from torchwhy.trace.tables.label_times import label_times
from torchwhy.trace.tables.launches import launches
from torchwhy.trace.tables.memory import memory
from torchwhy.trace.tables.module_times import module_times
from torchwhy.trace.tables.ops import ops
from torchwhy.trace.tables.overlap import overlap
from torchwhy.trace.tables.phases import phases
from torchwhy.trace.tables.stacks import stacks
from torchwhy.trace.tables.step_times import step_times
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchwhy.trace.model.trace import Trace

__all__ = ["RELATIONS", "sql"]

RELATIONS: Final[dict[str, Callable[[Trace], Table]]] = {
    "events": event_table,
    "ops": ops,
    "kernels": kernels,
    "kinds": kinds,
    "modules": module_times,
    "labels": label_times,
    "copies": copies,
    "launches": launches,
    "memory": memory,
    "steps": step_times,
    "phases": phases,
    "counters": counters,
    "idle": idle_table,
    "compile": compilation,
    "overlap": overlap,
    "critical_path": critical_path,
    "collectives": collectives,
    "stacks": stacks,
}
"""The relations that a query may name. A relation is computed only if the query names it."""


def sql(trace: Trace, query: str) -> Table:
    """Answer a query in DuckDB's SQL. Needs duckdb: `pip install duckdb`.

        trace.sql("select name, calls from kernels where median_us < 10 order by calls desc")

    Args:
        query: names any of the relations events, ops, kernels, kinds, steps, idle, launches, copies, memory, modules,
            labels, compile, overlap, critical_path, collectives, stacks; their columns are those of the methods of the
            same name, of `events` those of `trace.to_table()`. A query that names none, such as "show tables", sees
            them all.

    Raises:
        ArgumentError: DuckDB doesn't understand the query.
        TorchWhyError: duckdb isn't installed.
    """
    try:
        import duckdb
    except ImportError as error:
        raise TorchWhyError("trace.sql needs DuckDB: pip install duckdb") from error
    connection = duckdb.connect(":memory:", config={"enable_external_access": "false"})
    try:
        words = "".join(c if c.isalnum() or c == "_" else " " for c in query.lower()).split()
        named = [name for name in RELATIONS if name in words]
        for name in named or RELATIONS:
            _create(connection, name, RELATIONS[name](trace))
        found = connection.execute(query)
        if found.description is None:
            return Table({})
        names = [column[0] for column in found.description]
        rows = found.fetchall()
    except duckdb.Error as error:
        raise ArgumentError(f"the query failed: {error}") from error
    finally:
        connection.close()
    return Table({name: [row[i] for row in rows] for i, name in enumerate(_unique(names))})


def _create(connection: Any, name: str, table: Table) -> None:
    """Copy a table into the database, column by column; DuckDB reads NumPy arrays, of texts those of objects."""
    connection.register("given", {key: _array(values) for key, values in table.columns.items()})
    connection.execute(f'create table "{name}" as select * from given')
    connection.unregister("given")


def _array(values: Any) -> np.ndarray[Any, Any]:
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values)
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _unique(names: list[str]) -> list[str]:
    """Two columns of one name become `name` and `name_2`."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found
