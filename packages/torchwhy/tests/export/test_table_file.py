"""Tables as files."""

import csv
import gzip
import io
import sys

import pytest

from tests.traces import Story
from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.export.table_file import write_table


@pytest.fixture
def trace():
    told = Story()
    told.step(1, 0, 1000)
    told.op('aten::mm, "quoted"\n', 10, 100)
    told.kernel("gemm", at=200, us=300.125, launch_at=20)
    return told.trace()


def read(path):
    data = path.read_bytes()
    return list(csv.DictReader(io.StringIO((gzip.decompress(data) if path.suffix == ".gz" else data).decode())))


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_csv_has_the_events(tmp_path, trace, name):
    made = write_table(trace, "events", tmp_path / name, "csv")
    rows = read(tmp_path / name)
    assert rows == [{key: str(value) for key, value in row.items()} for row in trace.to_table()]
    assert rows[1]["name"] == 'aten::mm, "quoted"\n'
    assert (made.events, made.bytes) == (4, (tmp_path / name).stat().st_size)


def test_what_is_not_known_is_empty(tmp_path):
    told = Story()
    told.call("cudaLaunchKernel", at=20)  # of which nothing was recorded on the device
    told = told.trace()
    write_table(told, "launches", tmp_path / "out.csv", "csv")
    (row,), (expected,) = read(tmp_path / "out.csv"), told.launches().rows()
    unknown = [key for key, value in expected.items() if value != value]
    assert unknown
    assert [row[key] for key in unknown] == [""] * len(unknown)


def test_parquet_has_the_table(tmp_path, trace):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(trace, "ops", tmp_path / "out.parquet", "parquet")
    assert parquet.read_table(tmp_path / "out.parquet").to_pylist() == trace.ops().rows()


def test_parquet_names_what_is_missing(tmp_path, trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TorchWhyError, match=r"pip install pyarrow"):
        write_table(trace, "ops", tmp_path / "out.parquet", "parquet")
    assert not list(tmp_path.iterdir())


def test_unknown_tables(tmp_path, trace):
    with pytest.raises(ArgumentError, match=r"--table must be one of events, ops, .*, got 'nothing'"):
        write_table(trace, "nothing", tmp_path / "out.csv", "csv")
