"""Counts as data: metrics, table, file."""

import json

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import torchwhy
from torchwhy.counters import Compilation, CopyTotal, Counts, GraphBreak, Sync
from torchwhy.counters.metrics import METRICS
from torchwhy.errors import ArgumentError, TorchWhyError

COUNTS = Counts(
    operators={"aten::mm": 2, "lib::filter": 1},
    native_calls={"lib::filter": 1},
    syncs=(Sync("aten::_local_scalar_dense", "train.py:12 in step", 3),),
    copies={"HtoD": CopyTotal(2, 2048)},
    graph_breaks=(GraphBreak("print", "train.py:5 in f", 1),),
    recompiles=(Compilation("f", "train.py:5", "size mismatch"),),
    kernel_launches=None,
    notes=("launches unknown",),
    environment={"torch": "2.13"},
)


def test_metrics_are_all_there_and_are_sums():
    metrics = COUNTS.metrics()
    assert list(metrics) == list(METRICS)
    assert (metrics["syncs"], metrics["operators"], metrics["copies_htod"], metrics["bytes_htod"]) == (3, 3, 2, 2048)
    assert (metrics["copies_dtoh"], metrics["kernel_launches"]) == (0, None)


def test_an_unknown_name_is_answered_with_a_close_one():
    with pytest.raises(ArgumentError, match="did you mean 'kernel_launches'"):
        COUNTS["kernel_launch"]
    with pytest.raises(ArgumentError, match="known are operators, native_calls"):
        COUNTS["zzz"]
    assert COUNTS["aten::never_called"] == 0


def test_the_table_names_lines_and_reasons():
    text = str(COUNTS)
    for part in (
        "train.py:12 in step",
        "print (train.py:5 in f)",
        "size mismatch",
        "2.05 kB",
        "note: launches unknown",
    ):
        assert part in text
    assert all(len(line) < 120 for line in text.splitlines())


def test_the_table_says_why_it_differs_from_the_profilers():
    layer, x = torch.nn.Linear(3, 3), torch.ones(2, 3)
    layer(x)
    with profile(activities=[ProfilerActivity.CPU]) as p:
        layer(x)
    with torchwhy.count() as c:
        layer(x)
    assert "aten::linear" in {event.key for event in p.key_averages()}
    assert c["aten::linear"] == 0
    assert "recipe such as aten::linear counts as what it calls" in str(c)
    assert repr(c) == str(c) == repr(c.counts)


def test_the_table_names_few_operators_of_many():
    text = str(Counts(operators={f"aten::op{i}": 1 for i in range(50)}))
    assert "and 42 more" in text
    assert len(text.splitlines()) < 20


def test_files_give_back_what_was_saved(tmp_path):
    with torchwhy.count() as c:
        torch.ones(3) + 1
    for target in (tmp_path / "new" / "run", tmp_path / "one.json"):
        written = c.save(target)
        assert Counts.load(target) == c.counts
        content = json.loads(written.read_text())
        assert content["schema"] == 1
        assert content["metrics"]["operators"] == 2
    assert sorted(path.name for path in (tmp_path / "new" / "run").iterdir()) == ["counts.json"]
    path = COUNTS.save(tmp_path / "two.json")
    assert Counts.load(path) == COUNTS


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "is not JSON"), ("[]", "no counts file"), ('{"schema": 2, "metrics": {}}', "schema 2")],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "counts.json"
    path.write_text(content)
    with pytest.raises(OSError, match=message):
        Counts.load(path)


def test_damaged_and_missing_files_are_refused(tmp_path):
    with pytest.raises(TorchWhyError, match="holds no counts"):
        Counts.load(tmp_path)
    with pytest.raises(TorchWhyError, match="does not exist"):
        Counts.load(tmp_path / "nothing.json")
    path = tmp_path / "counts.json"
    path.write_text('{"schema": 1, "metrics": {}, "operators": {"aten::mm": "two"}}')
    with pytest.raises(TorchWhyError, match="damaged"):
        Counts.load(path)


def test_unwritable_places_are_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TorchWhyError, match="cannot write"):
        COUNTS.save(tmp_path / "file" / "below" / "counts.json")
