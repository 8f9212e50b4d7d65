"""The workloads: their results, their costs, names of files, and values no machine could run."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from torchwhy.errors import ArgumentError
from torchwhy.experiment import WORKLOADS, CannotRunError, Case, Workload, grid, run_case
from torchwhy.experiment.devices import require_device
from torchwhy.experiment.study import sizes_from
from torchwhy.experiment.workloads import prepare, require_runnable


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_runs_and_costs_the_products_it_claims(name, batch):
    case = Case(name, 6, "fp64", batch=batch)
    with FlopCounterMode(display=False) as counter:
        result = prepare(case)()
    assert result.shape == case.shape
    sums = WORKLOADS[name].sums * 6**2 * (batch or 1)
    assert counter.get_total_flops() == case.flops - sums


@pytest.mark.parametrize("batch", [None, 2])
def test_matmul_add_and_addmm_are_one_function(batch):
    results = [prepare(Case(name, 5, "fp64", batch=batch))() for name in ("matmul-add", "addmm")]
    torch.testing.assert_close(*results)


@pytest.mark.parametrize(
    ("case", "stem"),
    [
        (Case("linear", 64), "64_fp32_cold_eager"),
        (Case("linear", 4096, "bf16", warm=True, mode="default"), "4096_bf16_warm_compiled"),
        (Case("linear", 64, mode="reduce-overhead"), "64_fp32_cold_compiled-reduce-overhead"),
        (Case("linear", 64, batch=8), "64_batch8_fp32_cold_eager"),
        (Case("linear", 64, wait=0, warmup=0, active=20), "64_fp32_cold_eager_wait0_warmup0_active20"),
        (Case("linear", 64, device="cuda:1"), "64_fp32_cold_eager_cuda1"),
    ],
)
def test_file_names_say_what_differs_from_the_usual(case, stem):
    assert case.stem(default_device="cpu") == stem


def test_every_case_of_a_grid_has_its_own_name():
    assert len({case.stem("cpu") for case in grid(Case("mlp", 1), [64, 4096])}) == 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Case("mlp", 0), "size must be >= 1, got 0"),
        (lambda: Case("mlp", 1, batch=0), "batch must be >= 1, got 0"),
        (lambda: Case("mlp", 1, "fp8"), "dtype must be one of bf16, fp16, fp32, fp64, got 'fp8'"),
        (lambda: Case("mlp", 1, mode="fast"), "mode must be one of default, reduce-overhead"),
        (lambda: Case("mlp", 1, active=0), "active >= 1"),
        (lambda: Case("mm", 1), "experiment must be one of matmul-add, addmm, linear, mlp, peaks, got 'mm'"),
        (lambda: require_device("gpu"), "device must be one of cpu"),
        (lambda: require_device("hpu"), "device 'hpu' is not here"),
        (lambda: sizes_from("size=64"), "sweep must be size=LOW..HIGH"),
        (lambda: sizes_from("size=64..32"), "sweep must be size=LOW..HIGH"),
        (lambda: require_runnable(Case("matmul-add", 10**7)), "size 10000000 needs 1,862,645.1 GiB"),
    ],
)
def test_wrong_use_is_one_line(make, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (NotImplementedError('"addmm" not implemented for Half'), ArgumentError),
        (RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'\nmore"), ArgumentError),
        (RuntimeError("out of memory\nmore"), CannotRunError),
    ],
)
def test_a_failure_of_the_call_is_one_line(raised, expected, tmp_path, monkeypatch):
    def fail(x):
        raise raised

    monkeypatch.setitem(WORKLOADS, "mlp", Workload(fail, lambda case: ((1,),), products=1, sums=1, made=1))
    with pytest.raises(expected) as caught:
        run_case(Case("mlp", 2), tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_ranges_double_and_keep_both_ends(low, more):
    sizes = sizes_from(f"size={low}..{low + more}")
    assert (sizes[0], sizes[-1]) == (low, low + more)
    assert all(b == 2 * a for a, b in pairwise(sizes[:-1]))
