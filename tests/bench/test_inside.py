"""Suites that run in this process: targets and the threshold."""

import time
from functools import partial

import numpy as np
import pytest
import torch

from torchfx._ops import native
from torchfx.bench import chains, gradients, inside, targets, threshold
from torchfx.bench.contenders import scipy_signal
from torchfx.bench.targets import Claim


@pytest.mark.parametrize(
    ("target", "relation", "passed"), [(1e-6, ">=", True), (1e6, ">=", False), (1e6, "<=", True), (1e-6, "<=", False)]
)
def test_a_claim_is_kept_or_not(target, relation, passed):
    works = (scipy_signal.sosfilt, {}) if relation == ">=" else (targets.doubled, {"ours": targets.into_preallocated})
    other, ours = works
    row = targets.measure(Claim("a claim", chains.IIR, 2, 0.02, other, target, relation, threads=1, **ours), rounds=2)
    assert row.passed is passed
    assert row.deviation < 2e-7
    assert 0 < row.low <= row.ratio <= row.high
    assert row.rounds == 2


def test_a_fast_but_wrong_result_misses_its_target():
    def silence(job, x):
        return lambda: np.zeros_like(x)

    claim = Claim("a claim", chains.IIR, 1, 0.02, scipy_signal.sosfilt, 0.001, ours=silence)
    row = targets.measure(claim, rounds=2)
    assert not row.passed
    assert row.ratio > 0.001


def test_the_cost_of_a_kernel_is_measured_into_one_output(monkeypatch):
    claim = targets.CLAIMS[6]
    x = targets.signals.noise(claim.channels, 500)
    run = targets.into_preallocated(claim.chain.job(), x)
    if native.library is not None:
        assert run().data_ptr() == run().data_ptr()
    kept = run().clone()
    monkeypatch.setattr(native, "library", None)
    assert np.allclose(kept, targets.into_preallocated(claim.chain.job(), x)().ys, atol=1e-6)


def test_every_promise_is_among_the_claims():
    promised = [
        (claim.channels, claim.seconds, claim.threads, claim.relation, claim.target) for claim in targets.CLAIMS
    ]
    assert (1, 60, 2, ">=", 5) in promised
    assert (2, 60, 2, ">=", 40) in promised
    assert (12, 60, 2, "<=", 2.5) in promised
    assert (8, 60, 2, "<=", 3.5) in promised
    assert len(promised) == 27


@pytest.mark.parametrize("chain", [chains.IIR, chains.FIR])
def test_a_training_step_is_forward_and_backward(chain, monkeypatch):
    backward, gone_back = torch.Tensor.backward, []
    monkeypatch.setattr(torch.Tensor, "backward", lambda y, by: gone_back.append(y) or backward(y, by))
    x = targets.signals.noise(2, 700)
    y = gradients.forward(chain.job(), x)()
    assert not y.requires_grad
    assert not gone_back
    assert torch.equal(gradients.forward_and_backward(chain.job(), x)(), y)
    assert [each.requires_grad for each in gone_back] == [True]


def test_alternating_calls_are_timed_one_by_one():
    order = []

    def work(name, seconds):
        order.append(name)
        time.sleep(seconds)

    times = inside.alternate({"slow": partial(work, "slow", 0.004), "fast": partial(work, "fast", 0.001)}, 2, 1)
    assert order == ["slow", "fast"] * (len(order) // 2)
    assert all(0.004 <= value < 0.02 for value in times["slow"])
    assert all(0.001 <= value < 0.004 for value in times["fast"])
    assert len(times["slow"]) == len(times["fast"]) == 2


def test_threshold_compares_whole_and_split():
    steps = list(threshold.run([64, 256], [1, 2], rounds=2, threads=1))
    assert all(step.refused == [] for step in steps)
    rows = [row for step in steps for row in step.rows]
    assert [(row.channels, row.samples) for row in rows] == [(1, 64), (1, 256), (2, 64), (2, 256)]
    assert all(row.whole_us > 0 and row.gain > 0 for row in rows)


def test_no_crossover_where_splitting_never_pays():
    rows = [threshold.ThresholdRow(1, n, 1, 2, 0.5, 0.5, 0.5) for n in (64, 128)]
    assert threshold.crossover(rows) is None
