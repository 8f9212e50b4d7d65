"""Tables in narrow terminals: what differs stays apart."""

from pathlib import Path

import pytest

from torchwhy import load
from torchwhy.present.columns import aligned, fitted
from torchwhy.present.document import Column, Name
from torchwhy.present.style import Style
from torchwhy.present.trace_table import trace_table
from torchwhy.trace.tables.ops import ops
from torchwhy.trace.tables.sql import RELATIONS

RECORDED = sorted((Path(__file__).parents[1] / "recorded").glob("*.json.gz"))


def tables(trace):
    yield from ((name, table(trace)) for name, table in RELATIONS.items())
    yield "ops by shape", ops(trace, by_shape=True)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_cells_that_differ_never_look_alike(path, width):
    for name, table in tables(load(path)):
        (block,) = trace_table(table, name, path.name, limit=200).blocks
        rows = [row.cells for row in block.rows]
        shown = fitted(block.columns, rows, Style(width))
        for i, column in enumerate(block.columns):
            if column.number:
                continue
            texts = {}
            for row, cells in zip(rows, shown, strict=True):
                texts.setdefault(tuple(cells[i]), set()).add(str(row[i]))
            alike = [same for same in texts.values() if len(same) > 1]
            assert not alike, f"{name}, {column.title} at {width} columns: {alike[0]}"


def test_names_are_cut_where_that_leaves_them_apart():
    short, long = "aten::mm", "autograd::engine::evaluate_function: "
    rows = [(Name(f"{long}{one}Backward0 of a very long name that ends alike"), "1") for one in ("Mul", "Add")]
    lines = aligned((Column("name"), Column("calls", number=True)), [(Name(short), "2"), *rows], Style(40))
    assert [len(row) for row in lines] == [1, 3, 3]
    assert "MulBackward0" in "".join(lines[1])
    assert "AddBackward0" in "".join(lines[2])
