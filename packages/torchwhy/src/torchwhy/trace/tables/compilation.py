"""The work of torch.compile: `trace.compile()`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.derived.labels import own_labels
from torchwhy.trace.meaning.compiler import cached_graph, graph_hash
from torchwhy.trace.tables.grouping import Groups, us
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.file.columns import Int32
    from torchwhy.trace.model.trace import Trace

__all__ = ["compilation"]

Part = tuple[str, "Int32", list[str], list[str]]
"""A kind, rows, and of each row its id and its name."""


def compilation(trace: Trace) -> Table:
    """Compilations with their stages, lookups, compiled regions, graphs and backward passes, by first appearance.

    Returns:
        `kind`: "compile" for compilations (the outermost stage of each), "stage" for what they spend their time in,
        "lookup" for the checks whether compiled code fits, "region" for compiled code that ran, "function" for the same
        in traces without regions (PyTorch before 2.1), "graph" for the calls of Inductor's graphs, "backward" for
        compiled backward passes; `name`; `id`: K/M of the region it belongs to, ""
        where that isn't known; `label`: the program's own label around it, ""; `calls`; `host_us` in all; `self_us`: of
        stages, without the stages inside; `median_us`; `device_us` of the work launched in them; `start_us` of the
        first, from the beginning of the trace; `code`: of graphs, where Inductor keeps them, below its cache folder
        (TORCHINDUCTOR_CACHE_DIR).
    """
    events = trace.events
    parts = list(_parts(trace))
    rows = np.concatenate([part[1] for part in parts]).astype(np.int32)
    which = np.repeat(np.arange(len(parts)), [len(part[1]) for part in parts])
    ids, names = ([text for part in parts for text in part[i]] for i in (2, 3))
    label = _labels_around(trace, rows)
    texts = [np.unique(np.array(column, np.str_), return_inverse=True)[1].reshape(-1) for column in (ids, names)]
    groups = Groups(which, *texts, label)
    first = groups.first.tolist()
    self_time, counted = trace.derived(compiled_of).stage_self_time, _outermost(trace, rows, which, names)
    spent = np.where(counted, events.dur[rows], 0)
    return Table(
        {
            "kind": [parts[which[i]][0] for i in first],
            "name": [names[i] for i in first],
            "id": [ids[i] for i in first],
            "label": [trace.name(int(label[i])) if label[i] >= 0 else "" for i in first],
            "calls": groups.sum(counted),
            "host_us": us(groups.sum(spent)),
            "self_us": us(groups.sum(self_time[rows])),
            "median_us": groups.median(events.dur[rows]) / 1000,
            "device_us": us(groups.sum(np.where(counted, trace.derived(device_time).total[rows], 0))),
            "start_us": us(groups.least(events.ts[rows]) - trace.beginning),
            "code": [cached_graph(graph_hash(names[i])) for i in first],
        }
    ).sorted("start_us", descending=False)


def _parts(trace: Trace) -> Iterator[Part]:
    found = trace.derived(compiled_of)

    def named(rows: Int32) -> list[str]:
        return [trace.name(row) for row in rows.tolist()]

    compiled = np.array([one.row for one in found.compilations], np.int32)
    yield "compile", compiled, [one.id for one in found.compilations], named(compiled)
    inner = found.stages[~np.isin(found.stages, compiled)]
    yield "stage", inner, found.stage_ids(inner), [found.stage_name(row) for row in inner.tolist()]
    yield "lookup", found.lookups, [""] * len(found.lookups), named(found.lookups)
    yield "region", found.regions, found.region_ids(found.regions), named(found.regions)
    functions = found.functions[: 0 if len(found.regions) else None]  # those of a region stand for it
    yield "function", functions, [""] * len(functions), named(functions)
    yield "graph", found.graphs, found.ids_around(found.graphs), named(found.graphs)
    yield "backward", found.backward, found.ids_around(found.backward), named(found.backward)


def _labels_around(trace: Trace, rows: Int32) -> Int32:
    """The row of the program's label around each event, the first row with that name, or -1."""
    labels = np.zeros(len(trace.events), np.bool_)
    labels[trace.derived(own_labels)] = True
    around = trace.calls.nearest(labels)[rows]
    _, first, which = np.unique(trace.events.name[np.maximum(around, 0)], return_index=True, return_inverse=True)
    found: Int32 = np.where(around >= 0, around[first][which.reshape(-1)], np.int32(-1)).astype(np.int32)
    return found


def _outermost(trace: Trace, rows: Int32, which: np.ndarray, names: list[str]) -> np.ndarray:
    """Which rows aren't inside another one of the same kind and name: stages are announced twice."""
    found = trace.derived(compiled_of)
    above = found.stage_around
    name = dict(zip(rows.tolist(), names, strict=True))
    return np.array([name.get(above.get(row, -1)) != name[row] for row in rows.tolist()], np.bool_)
