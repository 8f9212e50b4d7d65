"""Tables: columns, rows, order, and what they become elsewhere."""

import numpy as np
import pytest

from torchwhy.errors import ArgumentError
from torchwhy.trace.tables.table import Table

TABLE = Table({"name": ["a", "b", "c", "d"], "us": np.array([2.0, 5.5, 2.0, 9.0]), "calls": [1, 2, 3, 4]})


def test_rows_are_plain_values():
    assert TABLE.rows()[1] == {"name": "b", "us": 5.5, "calls": 2}
    assert [type(value) for value in TABLE.rows()[1].values()] == [str, float, int]
    assert len(TABLE) == 4


def test_sorting_keeps_equal_rows_in_order():
    assert TABLE.sorted("us")["name"] == ["d", "b", "a", "c"]
    assert TABLE.sorted("us", descending=False)["name"] == ["a", "c", "b", "d"]
    assert TABLE.sorted("name")["name"] == ["d", "c", "b", "a"]


def test_what_is_not_known_is_printed_as_such_and_sorted_to_the_end():
    table = Table({"name": ["a", "b", "c", "d"], "us": np.array([np.nan, 2.5, np.inf, 12.0])})
    assert [line.split() for line in str(table).splitlines()[1:]] == [
        ["a", "-"],
        ["b", "2.5"],
        ["c", "inf"],
        ["d", "12"],
    ]
    assert table.sorted("us")["name"] == ["c", "d", "b", "a"]
    assert table.sorted("us", descending=False)["name"] == ["b", "d", "c", "a"]


def test_columns_go_by_the_names_of_key_averages():
    table = Table({"name": ["mul", "add"], "calls": [1, 2], "host_self_us": np.array([2.0, 5.5])})
    assert table["self_cpu_time_total"].tolist() == [2.0, 5.5]
    assert [line.split()[0] for line in table.table(sort_by="self_cpu_time_total").splitlines()] == [
        "name",
        "add",
        "mul",
    ]
    assert "1 more" in table.table(row_limit=1)
    with pytest.raises(ArgumentError, match="column must be one of name, calls, host_self_us"):
        table["self_cuda_time_total"]


def test_take_by_position_or_flag():
    assert TABLE.take([2, 0])["name"] == ["c", "a"]
    assert TABLE.take(TABLE["us"] > 3)["name"] == ["b", "d"]
    assert TABLE.head(2)["name"] == ["a", "b"]


def test_of_dictionaries():
    assert Table.of([{"a": 1, "b": "x"}, {"a": 2, "b": None}], ("a", "b")).rows() == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": None},
    ]
    assert list(Table.of([], ("a", "b")).columns) == ["a", "b"]


def test_to_pandas():
    frame = TABLE.to_pandas()
    assert list(frame.columns) == ["name", "us", "calls"]
    assert frame["us"].sum() == 18.5


def test_printing_says_how_much_is_left_out():
    text = str(Table({"n": np.arange(25)}))
    assert text.splitlines()[-1] == "... 5 more"
    assert str(Table({})) == ""
    assert repr(TABLE).startswith("Table of 4 rows\n")


def test_mistakes_are_named():
    with pytest.raises(ArgumentError, match="column must be one of name, us, calls, got 'time'"):
        TABLE["time"]
    with pytest.raises(ArgumentError, match="equal lengths"):
        Table({"a": [1], "b": [1, 2]})
