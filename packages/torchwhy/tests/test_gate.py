"""Budgets, baselines, their reports, and the command `torchwhy gate`."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from torchwhy.cli.app import app
from torchwhy.counters import CopyTotal, Counts, Sync
from torchwhy.errors import ArgumentError, ArgumentTypeError, TorchWhyError
from torchwhy.gate import (
    Baseline,
    Budget,
    EnvironmentMismatch,
    budgets_from,
    gate,
    gate_document,
    parse_budgets,
)
from torchwhy.present.formats import FORMATS, render

HERE = {"torch": "2.13", "device": "cpu"}
COUNTS = Counts(
    operators={"aten::mm": 2, "aten::relu": 1},
    syncs=(Sync("aten::_local_scalar_dense", "train.py:12 in step", 2),),
    environment=HERE,
)
CLEAN = replace(COUNTS, syncs=())


@pytest.mark.parametrize(
    ("name", "limit", "passes"),
    [
        ("operators__eq", 3, True),
        ("operators__eq", 2, False),
        ("operators__max", 3, True),
        ("operators__max", 2, False),
        ("operators__min", 3, True),
        ("operators__min", 4, False),
        ("aten::mm__eq", 2, True),
        ("aten::convolution__eq", 0, True),
        ("syncs__eq", 0, False),
    ],
)
def test_budgets_compare(name, limit, passes):
    assert gate("run", COUNTS, parse_budgets({name: limit})).passed == passes


def test_a_budget_not_kept_shows_the_lines_to_blame():
    (failed,) = gate("run", COUNTS, parse_budgets({"syncs__eq": 0})).failed
    assert str(failed) == ("syncs is 2, allowed: exactly 0\n    2 aten::_local_scalar_dense train.py:12 in step")


def test_what_was_not_counted_keeps_no_budget():
    (failed,) = gate("run", COUNTS, parse_budgets({"dispatches__max": 100})).failed
    assert str(failed).startswith("dispatches was not counted, allowed: at most 100")


@pytest.mark.parametrize(
    ("name", "limit", "error", "message"),
    [
        ("sync__eq", 0, ArgumentError, "unknown metric 'sync', did you mean 'syncs'"),
        ("step_ms__max", 10, ArgumentError, "times are compared by torchwhy diff A B --fail-on-slower PERCENT"),
        ("time__max", 10, ArgumentError, "torchwhy history"),
        ("syncs__lt", 0, ArgumentError, "unknown comparison 'lt' in 'syncs__lt'"),
        ("syncs__maxx", 0, ArgumentError, "did you mean 'max'"),
        ("syncs", 0, ArgumentError, "write syncs__max, syncs__eq or syncs__min"),
        ("syncs__max", -1, ArgumentError, "must be 0 or more, got -1"),
        ("syncs__max", 1.5, ArgumentTypeError, "whole number, got 1.5"),
        ("syncs__max", True, ArgumentTypeError, "whole number, got True"),
        ("syncs__max", "3", ArgumentTypeError, "whole number, got '3'"),
    ],
)
def test_wrong_budgets_are_explained(name, limit, error, message):
    with pytest.raises(error, match=message):
        parse_budgets({name: limit})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aten::mmm__max", "no such operator, did you mean 'aten::mm'"),
        ("aten::add.Tensor__eq", "counted without the overload, as 'aten::add'"),
        ("aten::linear__eq", "made of other operators"),
        ("profiler::_record_function_enter__eq", "computes nothing"),
    ],
)
def test_an_operator_that_is_never_counted_is_no_budget(name, message):
    with pytest.raises(ArgumentError, match=message):
        gate("run", CLEAN, parse_budgets({name: 0}))


def test_an_operator_of_a_library_that_is_not_loaded_is_doubted():
    (warning,) = gate("run", CLEAN, parse_budgets({"somebodys::filter__max": 0})).warnings
    assert "no operator of that name is known here" in warning


@pytest.mark.parametrize(
    ("name", "counts", "doubt"),
    [
        ("kernel_launches__max", CLEAN, "kernel_launches cannot occur here: no GPU was in use"),
        ("syncs__eq", CLEAN, "syncs cannot occur here: no GPU was in use"),
        ("copies_htod__eq", CLEAN, "copies_htod cannot occur here: no GPU was in use"),
        ("graph_breaks__eq", replace(CLEAN, compiled_before=0), "graph_breaks cannot occur here: torch.compile"),
        ("allocations__max", Counts(environment=HERE), "allocations: no operator ran at all"),
        ("graph_breaks__eq", replace(CLEAN, notes=("graph_breaks: gave up on f",)), "graph_breaks: gave up on f"),
    ],
)
def test_a_limit_that_nothing_could_exceed_is_warned_of(name, counts, doubt):
    report = gate("run", counts, parse_budgets({name: 0}))
    assert report.passed
    assert len(report.warnings) == 1
    assert report.warnings[0].startswith(doubt)
    assert all(doubt in " ".join(render(gate_document(report), form).split()) for form in ("text", "json", "github"))


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("kernel_launches__max", replace(CLEAN, environment={**HERE, "device": "NVIDIA H100"})),
        ("graph_breaks__eq", replace(CLEAN, compiled_before=3)),
        ("graph_breaks__eq", replace(CLEAN, compilations=1, compiled_before=0)),
        ("allocations__max", CLEAN),
        ("copies_htoh__max", CLEAN),
    ],
)
def test_a_limit_that_could_have_been_exceeded_is_not_doubted(name, counts):
    assert gate("run", counts, parse_budgets({name: 0})).warnings == ()


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("aten::mm__max", ("2 train.py:12 in step",)),
        ("operators__max", ("2 aten::mm train.py:12 in step", "1 aten::relu")),
        ("copies_dtoh__max", ("1 DtoH 8 B (train.py:14 in step)",)),
    ],
)
def test_a_failing_budget_names_the_lines(name, evidence):
    lines = {"aten::mm": {"train.py:12 in step": 2}, "DtoH": {"train.py:14 in step": 1}}
    copies = {"DtoH": CopyTotal(1, 8), "HtoD": CopyTotal(2, 8)}
    counts = replace(COUNTS, lines=lines, copies=copies)
    (failed,) = gate("run", counts, parse_budgets({name: 0})).failed
    assert failed.evidence == evidence


def test_checking_against_nothing_is_an_error():
    with pytest.raises(ArgumentError, match="nothing to check against"):
        gate("run", COUNTS)


def test_a_baseline_allows_what_it_has_and_less(tmp_path):
    kept = Baseline.update(tmp_path / "kept.json", COUNTS)
    assert gate("run", COUNTS, (), kept).passed
    fewer = gate("run", CLEAN, (), kept)
    assert fewer.passed
    assert fewer.remarks == ("fewer than in the baseline, --update keeps it: syncs 2 -> 0",)


def test_a_baseline_refuses_more_and_says_what_was_added(tmp_path):
    kept = Baseline.update(tmp_path / "kept.json", CLEAN)
    more = replace(CLEAN, operators={"aten::mm": 4, "aten::relu": 1})
    (failed,) = gate("run", more, (), kept).failed
    assert (failed.metric, failed.evidence) == ("operators", ("+2 aten::mm",))


def test_a_baseline_number_that_is_no_longer_counted_fails(tmp_path):
    kept = Baseline.update(tmp_path / "kept.json", replace(CLEAN, dispatches=3))
    (failed,) = gate("run", CLEAN, (), kept).failed
    assert failed.metric == "dispatches"


def test_baselines_of_another_environment_are_refused(tmp_path):
    path = tmp_path / "kept.json"
    kept = Baseline.update(path, COUNTS)
    elsewhere = replace(COUNTS, environment={**HERE, "torch": "2.14"})
    with pytest.raises(EnvironmentMismatch, match=r"torch 2\.13 there, 2\.14 here"):
        gate("run", elsewhere, (), kept)
    with pytest.raises(EnvironmentMismatch, match="--force"):
        Baseline.update(path, elsewhere)
    assert Baseline.load(path).counts == COUNTS
    Baseline.update(path, elsewhere, force=True)
    assert Baseline.load(path).counts == elsewhere


def test_a_missing_baseline_says_how_to_make_one(tmp_path):
    with pytest.raises(TorchWhyError, match="write one with `torchwhy gate RUN --update`"):
        Baseline.load(tmp_path / "none.json")


PYPROJECT = """
[tool.torchwhy.budgets]
syncs__eq = 0
"aten::mm__max" = 2

[tool.torchwhy.budgets.train]
operators__max = 3
syncs__eq = 2
"""


def test_budgets_come_from_pyproject_and_named_ones_go_first(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text(PYPROJECT)
    assert budgets_from(path) == (Budget("syncs", "eq", 0), Budget("aten::mm", "max", 2))
    assert set(budgets_from(path, "train")) == {
        Budget("syncs", "eq", 2),
        Budget("aten::mm", "max", 2),
        Budget("operators", "max", 3),
    }
    with pytest.raises(ArgumentError, match="did you mean 'train'"):
        budgets_from(path, "trian")


@pytest.mark.parametrize(
    ("text", "message"),
    [("[tool", "is not TOML"), ("[tool.torchwhy]\nbudgets = 3", "must be a table"), (None, "does not exist")],
)
def test_unusable_pyprojects_are_explained(tmp_path, text, message):
    path = tmp_path / "pyproject.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(TorchWhyError, match=message):
        budgets_from(path)


def test_a_pyproject_without_budgets_has_none(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert budgets_from(tmp_path / "pyproject.toml") == ()


REPORT = gate("run", COUNTS, parse_budgets({"syncs__eq": 0, "operators__max": 3}))


def drawn(report, form):
    return render(gate_document(report), form)


def test_text_names_each_limit():
    text = drawn(REPORT, "text")
    assert "FAILED\n1 of 2 limits not kept" in text
    lines = [line for line in text.splitlines() if line.startswith(("FAIL  ", "ok"))]
    assert lines == ["FAIL  syncs is 2, allowed: exactly 0", "ok    operators is 3, allowed: at most 3"]
    assert "2 aten::_local_scalar_dense train.py:12 in step" in text


def test_json_is_the_whole_report():
    content = json.loads(drawn(REPORT, "json"))
    assert (content["schema"], content["passed"]) == (1, False)
    assert content["checks"][0] == {
        "metric": "syncs",
        "allowed": "exactly 0",
        "actual": 2,
        "passed": False,
        "evidence": ["2 aten::_local_scalar_dense train.py:12 in step"],
    }


def test_junit_has_a_case_for_each_limit():
    suite = ElementTree.fromstring(drawn(REPORT, "junit").encode()).find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failures = [case.find("failure") for case in suite.findall("testcase")]
    assert failures[0].get("message") == "syncs is 2, allowed: exactly 0"
    assert "train.py:12" in failures[0].text
    assert failures[1] is None


def test_annotations_and_sarif_name_the_line():
    annotation = drawn(REPORT, "github").splitlines()[1]
    assert annotation.startswith("::error ")
    assert {"file=train.py", "line=12", "title=run syncs exactly 0"} == set(annotation.split("::")[1][6:].split(","))
    (result,) = json.loads(drawn(REPORT, "sarif"))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("train.py", 12)


def test_a_kept_baseline_is_one_line_of_text_and_a_case_each_for_machines(tmp_path):
    report = gate("run", CLEAN, (), Baseline.update(tmp_path / "kept.json", CLEAN))
    text = drawn(report, "text")
    assert "ok  " not in text
    assert f"{len(report.checks)} numbers are no larger than in" in text
    assert drawn(report, "junit").count("<testcase") == len(report.checks)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("[tool.torchwhy.budgets]\nsyncs__eq = 0\n")
    CLEAN.save(tmp_path / "clean")
    COUNTS.save(tmp_path / "waiting")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def torchwhy_gate(*arguments):
    return CliRunner().invoke(app, ["gate", *arguments])


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["clean"], 0, "1 limit kept"),
        (["clean/counts.json"], 0, "1 limit kept"),
        (["waiting"], 1, "train.py:12 in step"),
        (["clean", "--format", "yaml"], 2, "--format must be one of text, json"),
        (["clean", "--name", "train"], 2, "has no [tool.torchwhy.budgets.train]"),
        (["clean", "--force"], 2, "--force only serves --update"),
        (["nowhere"], 3, "nowhere does not exist"),
        (["."], 3, "holds no counts.json"),
        (["clean", "--baseline", "none.json"], 3, "there is no baseline none.json"),
        (["clean", "--pyproject", "none.toml"], 3, "none.toml does not exist"),
    ],
)
def test_exit_status_says_what_happened(folder, arguments, status, says):
    ran = torchwhy_gate(*arguments)
    assert ran.exit_code == status, ran.output
    assert says in " ".join(ran.output.split())


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_prints_the_answer(folder, form):
    ran = torchwhy_gate("waiting", "--format", form)
    assert ran.exit_code == 1
    assert "syncs" in ran.stdout


def test_update_keeps_a_baseline_that_later_runs_must_not_exceed(folder):
    assert torchwhy_gate("clean", "--update").exit_code == 0
    assert Path("torchwhy-baseline.json").exists()
    Path("pyproject.toml").write_text("")
    assert torchwhy_gate("clean").exit_code == 0
    assert torchwhy_gate("waiting").exit_code == 1


def test_update_of_another_environment_needs_force(folder):
    replace(CLEAN, environment={"torch": "1.0"}).save("old")
    assert torchwhy_gate("old", "--update").exit_code == 0
    assert torchwhy_gate("clean").exit_code == 2
    assert torchwhy_gate("clean", "--update").exit_code == 2
    assert torchwhy_gate("clean", "--update", "--force").exit_code == 0
    assert torchwhy_gate("clean").exit_code == 0


def test_nothing_to_check_against_is_misuse(folder):
    Path("pyproject.toml").write_text("")
    ran = torchwhy_gate("clean")
    assert ran.exit_code == 2
    assert "nothing to check against" in " ".join(ran.output.split())
