"""Cases run, are recorded and read back; small sizes on the CPU."""

import json
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch

from torchwhy.errors import ArgumentError
from torchwhy.experiment import (
    CannotRunError,
    Case,
    CaseResult,
    Schedule,
    Workload,
    cases,
    run_case,
    run_cases,
    worker,
    workload_named,
)
from torchwhy.experiment.cases import disagreements
from torchwhy.experiment.document import study_document
from torchwhy.experiment.reading import Reading, Step, read
from torchwhy.experiment.recording import record, save
from torchwhy.experiment.worker import run_apart
from torchwhy.experiment.workload import prepare
from torchwhy.present.formats import render

MATMUL_ADD = workload_named("matmul-add")


def names(reading):
    return [call.name for call in reading.calls]


def test_the_workload_is_a_product_and_a_sum():
    case = Case(3, "fp64", batch=2)
    x, w, b = MATMUL_ADD.make_inputs(case)
    torch.testing.assert_close(prepare(MATMUL_ADD, case)(), torch.baddbmm(b, x, w))


def test_a_case_leaves_a_trace_and_a_table(tmp_path):
    result = run_case(MATMUL_ADD, Case(4), tmp_path)
    assert sorted(path.name for path in (tmp_path / "matmul_add").iterdir()) == [
        "4_bf16_cold_eager.json",
        "4_bf16_cold_eager.txt",
    ]
    assert [step.number for step in result.reading.steps] == [2, 3, 4]
    assert names(result.reading)[:2] == ["aten::matmul", "aten::mm"]
    assert "aten::add" in result.table.read_text()
    assert 0 <= result.work_share <= 1
    assert result.regime in {"overhead-bound", "mixed", "compute-bound", "undecided"}
    again = run_case(MATMUL_ADD, Case(4), tmp_path)
    assert again.trace.name == "4_bf16_cold_eager_2.json"


def test_twenty_recorded_steps_of_batches(tmp_path):
    case = Case(4, "fp32", batch=2, warm=True, schedule=Schedule(0, 0, 20))
    recording = save(record(MATMUL_ADD, case, prepare(MATMUL_ADD, case)), MATMUL_ADD, case, tmp_path, force=False)
    reading = read(recording.trace, "matmul_add")
    assert len(reading.steps) == 20
    assert "aten::bmm" in names(reading)
    assert "aten::mm" not in names(reading)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, while it loads its compiler
def test_a_compiled_case_shows_its_region(tmp_path):
    case = Case(4, "fp32", warm=True, mode="default")
    recording = save(record(MATMUL_ADD, case, prepare(MATMUL_ADD, case)), MATMUL_ADD, case, tmp_path, force=False)
    assert recording.trace.name == "4_fp32_warm_compiled.json"
    found = names(read(recording.trace, "matmul_add"))
    assert "TorchDynamo Cache Lookup" in found
    assert any(name.startswith("Torch-Compiled Region") for name in found)


def test_a_case_in_its_own_process_comes_back_whole(tmp_path):
    result = run_apart(MATMUL_ADD, Case(3, "fp32"), tmp_path, force=False)
    assert result.case == Case(3, "fp32")
    assert result.trace.exists()
    assert read(result.trace, "matmul_add") == result.reading
    assert json.loads(json.dumps(result.to_dict()))["case"]["size"] == 3
    assert str(result).startswith("matmul-add 3 x 3 fp32, cold, eager, on cpu: ")


def test_only_several_cases_run_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(cases, "run_case", lambda workload, case, folder, force: ("here", case.size))
    monkeypatch.setattr(cases, "run_apart", lambda workload, case, folder, force: ("apart", case.size))
    assert list(run_cases(MATMUL_ADD, [Case(2)], tmp_path)) == [("here", 2)]
    assert list(run_cases(MATMUL_ADD, [Case(2), Case(3)], tmp_path)) == [("apart", 2), ("apart", 3)]


@pytest.mark.parametrize(("misuse", "kind"), [(True, ArgumentError), (False, CannotRunError)])
def test_errors_of_another_process_keep_their_kind(misuse, kind, tmp_path, monkeypatch):
    reply = msgspec.json.encode({"result": None, "error": "no such thing", "misuse": misuse})
    ran = SimpleNamespace(returncode=0, stdout=b"chatter\n" + reply, stderr=b"")
    monkeypatch.setattr(worker.subprocess, "run", lambda *arguments, **options: ran)
    with pytest.raises(kind, match="no such thing"):
        run_apart(MATMUL_ADD, Case(2), tmp_path, force=False)


def test_a_process_that_dies_is_reported_with_its_last_words(tmp_path, monkeypatch):
    ran = SimpleNamespace(returncode=-9, stdout=b"", stderr=b"first\nKilled")
    monkeypatch.setattr(worker.subprocess, "run", lambda *arguments, **options: ran)
    with pytest.raises(CannotRunError, match="ended early: Killed"):
        run_apart(MATMUL_ADD, Case(2), tmp_path, force=False)


def test_nothing_runs_when_one_case_cannot(tmp_path):
    with pytest.raises(ArgumentError, match="GiB free"):
        list(run_cases(MATMUL_ADD, [Case(2), Case(10**7)], tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (NotImplementedError('"addmm" not implemented for Half'), ArgumentError),
        (RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'\nmore"), ArgumentError),
        (RuntimeError("out of memory\nmore"), CannotRunError),
    ],
)
def test_what_fails_when_it_runs_is_one_line(raised, expected, tmp_path):
    def fail(x):
        raise raised

    workload = Workload("fails", "fails", lambda case: (torch.ones(1),), fail, lambda case: 1.0, tensors=1)
    with pytest.raises(expected) as caught:
        run_case(workload, Case(2), tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def shown(size, warm, share, mode=None, fastest_s=1e-6):
    case = Case(size, "bf16", "cpu", None, warm, mode)
    steps = (Step(2, 10.0, 1.0, 0.0, 0, None),)
    return CaseResult(
        "matmul-add", case, Reading(steps, (), (), ()), share, fastest_s, 1e-7, Path("a.json"), Path("a.txt")
    )


def test_a_cold_and_a_warm_case_of_one_size_that_disagree_are_flagged():
    results = [shown(64, False, 0.92), shown(64, True, 0.7), shown(4096, False, 0.95), shown(4096, True, 0.97)]
    (said,) = disagreements(results)
    assert said.startswith("size 64, eager: compute-bound cold (92% work), mixed warm (70%); the same call")
    document = study_document(results)
    assert "disagreement: size 64" in " ".join(render(document, "text").split())
    assert json.loads(render(document, "json"))["disagreements"] == [said]


def test_compiled_and_eager_may_differ():
    assert disagreements([shown(64, False, 0.92), shown(64, False, 0.2, "default"), shown(64, True, 0.91)]) == []
