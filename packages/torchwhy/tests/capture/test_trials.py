"""Looks at costly operators and their trials, compared with all of the numbers."""

import random

import pytest
import torch
from torch import nn

from torchwhy.capture import trials
from torchwhy.capture.contents import ContentsWatch

PLENTY = 10**12  # nanoseconds
TINY = torch.finfo(torch.float32).tiny


@pytest.fixture(autouse=True)
def all_calls(monkeypatch):
    """Small operators are examined, too."""
    monkeypatch.setattr(trials, "COSTLY_NS", 0)
    monkeypatch.setattr(trials, "LARGE", 1 << 12)


def seen(run, steps=5):
    """The trials of so many calls of a function, each a step, by operator; the last one of each."""
    watch = ContentsWatch(PLENTY)
    watch.begin()
    for step in range(steps):
        run(step)
        watch.step()
    assert watch.end()
    return {trial.operator: trial for trial in watch.result().trials}


def is_subnormal(x):
    return (x.abs() < torch.finfo(x.dtype).tiny) & (x != 0)


def program(seed):
    """A random program: each call gives a function to run, and the facts that hold for its operator."""
    choose, made = random.Random(seed), torch.Generator().manual_seed(seed)
    size = choose.choice([64, 100, 257])
    dtype = choose.choice([torch.float32, torch.float64])
    tiny = torch.finfo(dtype).tiny

    def numbers():
        x = torch.randn(size, size, generator=made, dtype=dtype)
        kind = choose.choice(["normal", "subnormal", "zeros", "few", "nan", "one nan", "infinite", "sparse"])
        if kind in ("subnormal", "few"):
            x[: size if kind == "subnormal" else choose.randrange(3)] *= tiny / 100
        if kind == "zeros":
            x.zero_()
        if kind == "sparse":
            x *= torch.rand(size, size, generator=made) < choose.choice([0.001, 0.02, 0.2])
        if kind in ("nan", "infinite"):
            x[:] = float("nan" if kind == "nan" else "inf")
        if kind == "one nan":
            x[choose.randrange(size), choose.randrange(size)] = float("nan")
        return choose.choice([x, x.t(), x[:, ::2].contiguous(), x.clone()])

    name = choose.choice(["mul", "add", "exp", "mm", "addmm"])
    if name == "exp":
        return name, [numbers()]
    if name in ("mul", "add"):
        x = numbers()
        return name, [x, numbers()[:1, :1]]
    a, b = numbers(), torch.randn(257, size, generator=made, dtype=dtype)
    return name, [b[:, 0], a, b.t()[: a.shape[1]].contiguous()] if name == "addmm" else [a, b.t()[: a.shape[1]]]


def false_claims_and_found(seeds):
    found = {"subnormal": [0, 0], "undefined": [0, 0], "zeros": [0, 0]}
    for seed in seeds:
        name, given = program(seed)
        if name == "addmm":
            given[0] = torch.ones(given[2].shape[1], dtype=given[1].dtype)
        expected = getattr(torch, name)(*given)
        trial = seen(lambda step, name=name, given=given: getattr(torch, name)(*given)).get(f"aten::{name}")
        if trial is None:
            continue
        every = [one for one in (*given, expected) if one.is_contiguous() or one.t().is_contiguous()]
        part = max(float(is_subnormal(one).double().mean()) for one in every)
        undefined = bool(expected.isnan().all())
        zeros = [float((one == 0).double().mean()) for one in given if one.ndim == 2]
        assert part or not trial.subnormal, seed
        assert undefined or not trial.undefined or float(expected.isnan().double().mean()) > 0.98, seed
        assert not trial.zeros or any(trial.zeros == pytest.approx(one, abs=1e-9) for one in zeros), seed
        for fact, holds in (("subnormal", part > 0.05), ("undefined", undefined), ("zeros", max(zeros) > 0.96)):
            if holds and (fact != "zeros" or name in ("mm", "addmm")):
                found[fact][0] += bool(getattr(trial, fact))
                found[fact][1] += 1
    return found


def test_what_is_said_of_numbers_holds_for_all_of_them():
    found = false_claims_and_found(range(40))
    assert found["undefined"][0] == found["undefined"][1] > 0
    assert found["subnormal"][0] > 0.5 * found["subnormal"][1] > 0


@pytest.mark.many
def test_what_is_said_of_numbers_holds_for_all_of_them_in_many_programs():
    false_claims_and_found(range(40, 600))


def test_subnormal_numbers_are_flushed_for_the_trial_alone():
    x = torch.full((300, 300), TINY / 8)
    trial = seen(lambda step: x * 0.9)["aten::mul"]
    assert (trial.looks, trial.subnormal, trial.reruns) == (5, 5, 3)
    assert trial.plain_us > 0
    assert float(x[0, 0] * 0.5) > 0


def test_a_program_that_flushes_subnormal_numbers_goes_on_doing_so():
    x = torch.full((300, 300), TINY / 8)
    try:
        if not torch.set_flush_denormal(True):
            pytest.skip("this processor can't flush")
        trial = seen(lambda step: x * 0.9)["aten::mul"]
        assert float(x[0, 0] * 1.0) == 0
    finally:
        torch.set_flush_denormal(False)
    assert trial.reruns == 0


def test_normal_numbers_are_not_run_again():
    trial = seen(lambda step: torch.ones(300, 300) * 0.9)["aten::mul"]
    assert (trial.subnormal, trial.reruns) == (0, 0)


def test_what_draws_or_writes_is_not_run_again():
    x = torch.full((300, 300), TINY / 8)
    names = seen(lambda step: (torch.bernoulli(x), x.mul_(1.0), torch.add(x, x, out=torch.empty(300, 300))))
    assert names == {}


def test_zeros_are_counted_and_the_product_is_tried():
    matrix, x = torch.zeros(400, 400), torch.randn(400, 32)
    matrix[torch.arange(400), torch.arange(400)] = 1.0
    for run in (
        lambda step: matrix @ x,
        lambda step: torch.addmm(torch.ones(32), matrix, x),
        lambda step: x.t() @ matrix,
    ):
        (trial,) = seen(run).values()
        assert trial.zeros == pytest.approx(1 - 1 / 400)
        assert (trial.matrix, trial.products, trial.changing) == ([400, 400], 3, False)
        assert min(trial.dense_us, trial.sparse_us, trial.layout_us) > 0


def test_a_matrix_that_changes_is_called_changing():
    matrix, x = torch.eye(400), torch.randn(400, 32)

    def run(step):
        matrix[0, step] = 1.0
        return matrix @ x

    assert seen(run)["aten::mm"].changing


def test_a_matrix_of_numbers_is_not_tried():
    x = torch.randn(400, 400)
    assert seen(lambda step: x @ x)["aten::mm"].products == 0


def test_parameters_that_are_nan_are_seen():
    layer = nn.Linear(64, 64)
    with torch.no_grad():
        layer.weight.fill_(float("nan"))
    trial = seen(lambda step: layer(torch.ones(8, 64)).sum().backward())["aten::addmm"]
    assert (trial.undefined, trial.weights, trial.steps) == (5, 5, 5)


def test_what_has_no_time_left_is_not_tried():
    made = trials.Trials(0)
    x = torch.ones(3)
    made.look(torch.ops.aten.exp.default, ("aten::exp", 0, ((3,),)), 0, (x,), {}, x.exp(), 1000, 1000)
    assert made.results() == []


def test_without_steps_a_step_begins_where_the_first_operator_is_called_again():
    watch, x, batches = ContentsWatch(PLENTY, has_steps=False), torch.ones(4), torch.arange(8.0).reshape(2, 4)
    watch.begin()
    for step in range(40):
        x.exp()
        batches[step % 2].sin()
    assert not watch.over
    assert watch.end()
    exp, sin = watch.result().sites
    assert (exp.again, exp.in_a_row) == (39, 39)
    assert (sin.again, sin.in_a_row) == (38, 0)


def test_the_time_of_calls_with_subnormal_numbers_is_a_part_of_the_calls_time():
    x = torch.full((300, 300), TINY / 8)
    trial = seen(lambda step: (x if step % 2 else x + 1) * 0.9, steps=10)["aten::mul"]
    assert (trial.subnormal, trial.subnormal_calls) == (5, 5)
    assert 0 < trial.subnormal_us < trial.all_us
