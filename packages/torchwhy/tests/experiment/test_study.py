"""Cases run, are recorded and read back, one by one and over sizes; small ones on the CPU."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchwhy.errors import ArgumentError
from torchwhy.experiment import CannotRunError, Case, grid, run_case, run_cases, study, sweep
from torchwhy.experiment.document import study_document, sweep_document
from torchwhy.experiment.limits import Limits
from torchwhy.experiment.reading import read
from torchwhy.experiment.study import Point, crossover
from torchwhy.present.formats import render

REGIMES = {"overhead-bound", "memory-bound", "compute-bound", "mixed", "undecided"}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(study, "TIMED_S", 0.1)


def names(reading):
    return [call.name for call in reading.calls]


def limits(overhead=0.0, memory=0.0, compute=0.0, disturbed=False):
    return Limits(1.0, 1.0, 0.0, overhead, memory, compute, disturbed)


@pytest.mark.parametrize(
    ("found", "regime"),
    [
        (limits(overhead=0.6, memory=0.3, compute=0.1), "overhead-bound"),
        (limits(overhead=0.1, memory=0.7, compute=0.2), "memory-bound"),
        (limits(overhead=0.1, memory=0.2, compute=0.7), "compute-bound"),
        (limits(overhead=0.4, memory=-0.1, compute=0.4), "mixed"),
        (limits(overhead=0.1, memory=0.1, compute=0.1), "undecided"),  # threads that wait for each other
        (limits(compute=0.9, disturbed=True), "undecided"),
    ],
)
def test_the_regime_is_what_takes_half_of_the_time(found, regime):
    assert found.regime == regime


def test_a_case_leaves_a_trace_and_a_table(tmp_path):
    result = run_case(Case("matmul-add", 4), tmp_path)
    written = ["4_fp32_cold_eager.json", "4_fp32_cold_eager.txt"]
    assert sorted(path.name for path in (tmp_path / "matmul_add").iterdir()) == written
    assert [step.number for step in result.reading.steps] == [2, 3, 4]
    assert names(result.reading)[:2] == ["aten::matmul", "aten::mm"]
    assert "aten::add" in result.table.read_text()
    assert result.limits.regime in REGIMES
    assert run_case(Case("matmul-add", 4), tmp_path).trace.name == "4_fp32_cold_eager_2.json"
    assert run_case(Case("matmul-add", 4), tmp_path, force=True).trace.name == written[0]


def test_recorded_steps_of_batches(tmp_path):
    reading = run_case(Case("matmul-add", 4, batch=2, warm=True, wait=0, warmup=0, active=20), tmp_path).reading
    assert len(reading.steps) == 20
    assert "aten::bmm" in names(reading)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, while it loads its compiler
def test_a_compiled_case_shows_its_region_and_its_graph(tmp_path):
    result = run_case(Case("matmul-add", 4, warm=True, mode="default"), tmp_path)
    assert result.trace.name == "4_fp32_warm_compiled.json"
    found = names(result.reading)
    assert "TorchDynamo Cache Lookup" in found
    assert any(name.startswith("Torch-Compiled Region") for name in found)
    assert any(name.startswith("## Call CompiledFxGraph") for name in found)


@pytest.mark.many
def test_several_cases_run_apart_and_are_summed_up(tmp_path):
    results = list(run_cases([Case("linear", 3), Case("linear", 3, warm=True)], tmp_path))
    assert [result.case.warm for result in results] == [False, True]
    assert read(results[0].trace, "linear") == results[0].reading
    text = render(study_document(results), "text")
    assert text.index("Summary") < text.index("Recorded steps")
    for case in ("3 x 3 fp32, cold, eager", "3 x 3 fp32, warm, eager"):
        assert case in text
    data = json.loads(render(study_document(results), "json"))
    assert [case["regime"] for case in data["cases"]] == [result.limits.regime for result in results]


def test_a_process_that_dies_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "_stdout_to_stderr", os.abort)  # runs first in the new process
    with pytest.raises(CannotRunError, match="the process for 2 x 2 fp32, cold, eager, on cpu ended early"):
        list(run_cases(grid(Case("linear", 2), [2]), tmp_path))


def test_nothing_runs_when_one_case_cannot(tmp_path):
    with pytest.raises(ArgumentError, match="GiB free"):
        list(run_cases([Case("mlp", 2), Case("mlp", 10**7)], tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_way_of_the_folder_is_explained(tmp_path):
    (tmp_path / "traces").touch()
    with pytest.raises(CannotRunError, match="cannot write to"):
        run_case(Case("addmm", 2), tmp_path / "traces")


@given(st.floats(20, 2000))
def test_a_cubic_workload_crosses_where_its_work_equals_its_overhead(true_size):
    """time = 1 + (n / true_size)^3, so half of it is work at true_size exactly."""
    shares = [(2**i, 1 / (1 + (2**i / true_size) ** 3)) for i in range(3, 13)]
    assert crossover(shares) == pytest.approx(true_size, rel=1e-3)


def test_sizes_on_one_side_have_no_crossing_and_the_last_crossing_counts():
    assert crossover([(64, 0.9), (128, 0.8)]) is None
    assert crossover([(64, 0.4), (128, 0.1)]) is None
    assert 256 < crossover([(64, 0.9), (128, 0.4), (256, 0.6), (512, 0.1)]) < 512


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({64: limits(overhead=0.8), 256: limits(overhead=0.2, compute=0.8)}, "overhead-bound below size 128"),
        ({64: limits(overhead=0.8), 256: limits(overhead=0.7)}, "overhead-bound up to size 256"),
        ({64: limits(compute=0.8), 256: limits(compute=0.9)}, "do not enclose"),
        ({64: limits(overhead=0.8, disturbed=True)}, "undecided at every size: other processes took"),
        (
            {64: limits(overhead=0.8), 128: limits(compute=1, disturbed=True), 256: limits(overhead=0.2, compute=0.8)},
            "overhead-bound below size 128",
        ),
    ],
)
def test_the_finding_covers_every_sweep(found, said):
    points = [Point(Case("linear", size), each) for size, each in found.items()]
    assert said in " ".join(render(sweep_document(points), "text").split())


def test_a_real_sweep_has_a_bar_for_each_size():
    points = sweep(Case("linear", 1), [2, 4], max_time_s=0.1)
    assert [point.case.size for point in points] == [2, 4]
    assert points[1].to_dict()["flops_per_s"] == pytest.approx(144 / points[1].limits.call_s)
    text = render(sweep_document(points), "text")
    assert "size 2" in text
    assert "GFLOP/s" in text
