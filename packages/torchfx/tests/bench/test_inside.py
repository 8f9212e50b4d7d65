"""Suites that run in this process: targets and the threshold."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bench import (
    augmentation,
    batches,
    calls,
    chains,
    effects,
    equalizers,
    operators,
    signals,
    targets,
    threshold,
    time_varying,
)
from bench.contenders import scipy_signal
from bench.exact import deviation
from bench.targets import Claim
from torchfx import _ops
from torchfx.effect import PitchShift


@pytest.mark.parametrize(
    ("target", "relation", "passed"), [(1e-6, ">=", True), (1e6, ">=", False), (1e6, "<=", True), (1e-6, "<=", False)]
)
def test_a_claim_is_kept_or_not(target, relation, passed):
    works = (scipy_signal.sosfilt, {}) if relation == ">=" else (targets.doubled, {"ours": operators.forward_into})
    other, ours = works
    row = targets.measure(Claim("a claim", chains.IIR, 2, 0.02, other, target, relation, threads=1, **ours), rounds=2)
    assert row.passed is passed
    assert row.deviation < 2e-7
    assert 0 < row.low <= row.ratio <= row.high
    assert row.rounds >= 2


def test_a_fast_but_wrong_result_misses_its_target():
    def silence(job, x):
        return lambda: np.zeros_like(x)

    claim = Claim("a claim", chains.IIR, 1, 0.02, scipy_signal.sosfilt, 0.001, ours=silence)
    row = targets.measure(claim, rounds=2)
    assert not row.passed
    assert row.ratio > 0.001


def test_the_cost_of_an_operator_is_measured_into_one_output():
    x = signals.noise(2, 500)
    run = operators.forward_into(chains.IIR.job(), x)
    assert run().data_ptr() == run().data_ptr()
    assert torch.equal(run(), operators.forward(chains.IIR.job(), x)())


@pytest.mark.parametrize("chain", [chains.IIR, chains.FIR], ids=["iir", "fir"])
def test_rows_with_coefficients_of_their_own_give_the_result_of_shared_ones(chain, monkeypatch):
    given = []
    for name in ("parallel_iir_forward", "fir_forward"):
        operator = getattr(_ops, name)
        monkeypatch.setattr(_ops, name, lambda x, c, operator=operator: given.append(c) or operator(x, c))
    x = signals.noise(17, 1500)
    own, shared = operators.forward_per_row(chain.job(), x)(), operators.forward(chain.job(), x)()
    assert float((own - shared).abs().max()) <= 2e-7 * float(shared.abs().max())
    assert given[0].shape == (17, *given[1].shape)
    assert len({tuple(row.flatten().tolist()) for row in given[0]}) == 8


@pytest.mark.parametrize("prepare", [calls.filter_call, calls.piped_with_gains(4)], ids=["filter", "gains"])
def test_calls_on_short_blocks_start_from_rest(prepare):
    claim = Claim("a claim", targets.ONE_IIR, 2, targets.BLOCK_S, calls.multiply, 1e6, "<=", prepare, threads=1)
    row = targets.measure(claim, rounds=1)
    assert row.passed
    assert row.deviation < 2e-7


def test_a_stream_goes_on_from_call_to_call():
    x = signals.noise(2, 64)
    run = calls.stream_call(chains.IIR.job(), x)
    y = np.concatenate([run(), run()], axis=-1)
    twice = np.concatenate([x, x], axis=-1)
    assert deviation(chains.IIR, twice, lambda c, start, stop: y[c, start:stop]) < 2e-7


def test_what_is_subtracted_leaves_the_costs_beyond_it(monkeypatch):
    seconds = {"ours": [5.0, 6.0, 5.0], "other": [3.0, 4.0, 0.5], "beyond": [1.0, 2.0, 1.0]}

    def timed(works, rounds, threads):
        assert works.keys() == seconds.keys()
        return seconds

    monkeypatch.setattr(targets, "compare", timed)
    claim = Claim(
        "a claim", chains.IIR, 1, 0.01, operators.forward, 2, "<=", operators.forward, beyond=operators.forward
    )
    row = targets.measure(claim, rounds=3)
    assert (row.time_s, row.other_s, row.ratio) == (4.0, 2.0, 2.0)
    assert row.passed


def test_every_promise_is_among_the_claims():
    promised = [
        (claim.channels, claim.seconds, claim.threads, claim.relation, claim.target) for claim in targets.CLAIMS
    ]
    assert (1, 60, 2, ">=", 5) in promised
    assert (2, 60, 2, ">=", 40) in promised
    assert (12, 60, 2, "<=", 3.5) in promised
    assert (8, 60, 2, "<=", 4) in promised
    calling = {claim.text.partition(",")[0]: claim for claim in targets.CLAIMS if claim.seconds == targets.BLOCK_S}
    assert {text: (claim.channels, claim.relation, claim.target) for text, claim in calling.items()} == {
        "Stream.process": (2, "<=", 1.7),
        "filter(x)": (2, "<=", 4.5),
        "wave | chain": (2, "<=", 5),
        "wave | chain of 61 modules": (2, "<=", 1.3),
        "a new cutoff for each block of 2 x 64": (2, ">=", 2),
        "lfilter of order 4": (2, "<=", 1.5),
    }
    own = [claim for claim in targets.CLAIMS if claim.ours is operators.forward_per_row]
    assert {claim.chain for claim in own} == {chains.IIR, targets.ONE_FIR, chains.FIR}
    assert all(claim.channels >= 16 and claim.target in {1.3, 1.6} for claim in own)
    assert all(claim.target == 1.3 for claim in own if claim.chain is chains.IIR or claim.seconds == 1)
    assert (512, 1, 2, ">=", 7) in promised
    assert (512, 1, 2, "<=", 4) in promised
    assert [target for *work, target in promised if work == [2, 30, 2, ">="]] == [1.2, 0.75, 1.2, 5]  # resampling
    assert (512, 1, 2, "<=", 1) in promised  # batch_process


@pytest.mark.parametrize("work", [batches.by_batch_process, batches.by_loop])
def test_a_batch_of_signals_is_what_each_is_alone(work):
    claim = Claim("a claim", chains.IIR, 60, 0.05, batches.by_loop, 1e-9, ours=work, off=batches.deviation_of_longest)
    row = targets.measure(claim, rounds=1)
    assert row.passed
    assert row.deviation < 2e-7


@pytest.mark.parametrize("work", [equalizers.equalized, equalizers.trained])
def test_a_batch_of_equalizers_is_what_a_loop_over_items_gives(work):
    chain = equalizers.Equalizers(items=3)
    claim = Claim("a claim", chain, 6, 0.01, equalizers.sosfilt_per_item, 1e-9, ours=work)
    row = targets.measure(claim, rounds=1)
    assert row.passed
    assert row.deviation < 2e-7
    assert str(chain) == "5 peaking filters for each of 3 stereo items at 44100 Hz"


def test_a_changing_resonance_is_compared_with_its_recurrence():
    other, ours = time_varying.torchfx_training, time_varying.torchfx_training
    claim = Claim("a claim", chains.IIR, 3, 0.02, other, 1e-6, threads=1, ours=ours, off=time_varying.deviation)
    assert targets.measure(claim, rounds=2).passed
    x = signals.noise(3, 500)
    y = ours({}, x)().numpy()
    assert time_varying.deviation(chains.IIR, x, y) < 2e-7
    assert time_varying.deviation(chains.IIR, x, np.roll(y, 1)) > 0.1


@pytest.mark.parametrize("filtered", ["high-pass", "equalizer"])
def test_augmented_examples_have_the_ratio_drawn(filtered):
    work, x = augmentation.Augmentation(filter=filtered), signals.noise(3, 8000)
    claim = Claim("a claim", work, 3, 0.5, augmentation.augmented, 1e-9, ours=augmentation.augmented)
    claim = replace(claim, off=augmentation.ratio_off)
    assert targets.measure(claim, rounds=1).passed
    y = augmentation.augmented(work.job(), x)().numpy()
    assert augmentation.ratio_off(work, x, y) < 2e-7
    assert augmentation.ratio_off(work, x, y + 0.01 * x) > 1e-3
    assert augmentation.ratio_off(work, x, y[:, 1:]) == math.inf


def test_partials_of_a_chord_are_measured_in_cents(monkeypatch):
    work, x = effects.Effect(text="pitchshift:3"), signals.noise(1, 96_000)
    assert effects.cents_off(work, x, x) < 0.1
    assert effects.cents_off(work, x, x[:, 1:]) == math.inf

    class Off(PitchShift):
        def forward(self, x):
            return PitchShift(self.semitones + 0.1)(x)

    monkeypatch.setattr(effects.spec, "build", lambda text: Off(3))
    assert effects.cents_off(work, x, x) == pytest.approx(10, abs=0.1)


def test_a_result_beyond_the_claim_s_bound_fails():
    claim = Claim("a claim", chains.IIR, 1, 0.01, operators.forward, 1e-9, off=lambda *_: 0.5, bound=1.0)
    assert targets.measure(claim, rounds=1).passed
    assert not targets.measure(replace(claim, bound=0.4), rounds=1).passed


@pytest.mark.parametrize("installed", [True, False])
def test_what_is_not_installed_is_left_out(installed, monkeypatch):
    monkeypatch.setattr(targets, "find_spec", lambda name: installed or None)
    assert ("over torchlpc" in " ".join(claim.text for claim in targets.possible())) is installed


@pytest.mark.parametrize("chain", [chains.IIR, chains.FIR])
def test_a_training_step_is_forward_and_backward(chain, monkeypatch):
    backward, gone_back = torch.Tensor.backward, []
    monkeypatch.setattr(torch.Tensor, "backward", lambda y, by: gone_back.append(y) or backward(y, by))
    x = signals.noise(2, 700)
    y = operators.forward(chain.job(), x)()
    assert not y.requires_grad
    assert not gone_back
    assert torch.equal(operators.forward_and_backward(chain.job(), x)(), y)
    assert [each.requires_grad for each in gone_back] == [True]


def test_threshold_compares_whole_and_split():
    steps = list(threshold.run([64, 256], [1, 2], rounds=2, threads=1))
    assert all(step.refused == [] for step in steps)
    rows = [row for step in steps for row in step.rows]
    sizes = [(1, 64), (1, 256), (2, 64), (2, 256)]
    expected = [(dtype, *size) for dtype in ("float32", "float64") for size in sizes]
    assert [(row.dtype, row.channels, row.samples) for row in rows] == expected
    assert all(row.whole_us > 0 and row.gain > 0 for row in rows)


def test_no_crossover_where_splitting_never_pays():
    rows = [threshold.ThresholdRow(1, n, 1, 2, 0.5, 0.5, 0.5) for n in (64, 128)]
    assert threshold.crossover(rows) is None


def test_works_on_effects_give_what_their_claims_check():
    x = signals.noise(2, 48_000)
    work = effects.Effect(text="compressor:-20")
    assert effects.off(work, x, effects.processed(work.job(), x)().numpy()) < 2e-7
    assert effects.loudness_off(work, x, effects.loudness_of(work.job(), x)().numpy()) < 2e-7
