"""Cases: names of files, and values no machine could run."""

import pytest

from torchwhy.errors import ArgumentError
from torchwhy.experiment import Case, Schedule, grid, workload_named
from torchwhy.experiment.cases import sizes_from
from torchwhy.experiment.checks import require_device, require_runnable


@pytest.mark.parametrize(
    ("case", "stem"),
    [
        (Case(64), "64_bf16_cold_eager"),
        (Case(4096, warm=True, mode="default"), "4096_bf16_warm_compiled"),
        (Case(64, "fp32", mode="reduce-overhead"), "64_fp32_cold_compiled-reduce-overhead"),
        (Case(64, batch=8), "64_batch8_bf16_cold_eager"),
        (Case(64, schedule=Schedule(0, 0, 20)), "64_bf16_cold_eager_wait0_warmup0_active20"),
        (Case(64, device="cuda:1"), "64_bf16_cold_eager_cuda1"),
    ],
)
def test_file_names_say_what_differs_from_the_usual(case, stem):
    assert case.stem(default_device="cpu") == stem


def test_every_case_of_a_grid_has_its_own_name():
    stems = [case.stem("cpu") for case in grid(Case(1), [64, 4096])]
    assert len(set(stems)) == 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Case(0), "size must be >= 1, got 0"),
        (lambda: Case(1, batch=0), "batch must be >= 1, got 0"),
        (lambda: Case(1, "fp8"), "dtype must be one of bf16, fp16, fp32, fp64, got 'fp8'"),
        (lambda: Case(1, mode="fast"), "mode must be one of default, reduce-overhead"),
        (lambda: Schedule(active=0), "active >= 1"),
        (lambda: require_device("gpu"), "device must be one of cpu"),
        (lambda: require_device("hpu"), "device 'hpu' is not here"),
        (lambda: workload_named("matmul"), "experiment must be one of matmul-add, peaks, got 'matmul'"),
        (lambda: sizes_from("size=64"), "sweep must be size=LOW..HIGH"),
        (lambda: sizes_from("size=64..32"), "sweep must be size=LOW..HIGH"),
        (lambda: sizes_from("n=1..2"), "sweep must be size=LOW..HIGH"),
        (lambda: require_runnable(workload_named("matmul-add"), Case(10**7)), "size 10000000 needs 931,322.6 GiB"),
    ],
)
def test_wrong_use_is_one_line(make, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
