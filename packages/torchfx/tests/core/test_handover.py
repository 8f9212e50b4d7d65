"""What a filter's state becomes when its coefficients change: see torchfx.plan.handover."""

import pytest
import torch

import torchfx as fx
from torchfx import _ops
from torchfx.plan.handover import FORGOTTEN, LONGEST_WAIT_S, Move, memory_samples, sections_handover

FS = 48_000

FILTERS = {
    "first order": fx.filter.LoButterworth(200, order=1),
    "a high order": fx.filter.HiButterworth(300, order=12),
    "double poles": fx.filter.LoLinkwitzRiley(500, order=8),
    "a resonance": fx.filter.BiquadBPF(2000, q=20.0),
    "unequal poles": fx.filter.LoChebyshev1(4000, order=9, ripple=1.0),
    "bands": fx.filter.GammatoneBank(num_bands=3, f_min=500, f_max=8000),
}


def tail(sos, samples, seed=0):
    """Return what a cascade gives from a random state, (..., samples)."""
    rows = sos.shape[:-2]
    state = torch.randn(sos.shape[-2], *rows, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return _ops.parallel_iir_forward(torch.zeros(*rows, samples, dtype=torch.float64), sos, state)[0]


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("seed", range(5))
def test_a_filter_has_forgotten_its_state_by_then(name, seed):
    sos = FILTERS[name].lti(FS).sos
    samples = memory_samples(sos, FS)
    y = tail(sos, 2 * samples, seed).abs()
    assert samples < LONGEST_WAIT_S * FS
    assert bool((y[..., samples:].amax(-1) <= FORGOTTEN * y.amax(-1)).all())


@pytest.mark.parametrize("name", ["first order", "a high order", "a resonance"])
def test_the_bound_is_not_far_above(name):
    """A wait that is ten times too long would be no error, but heard as a slow knob."""
    sos = FILTERS[name].lti(FS).sos
    samples = memory_samples(sos, FS)
    y = tail(sos, 2 * samples).abs()
    assert float(y[..., samples // 4 :].max() / y.max()) > FORGOTTEN / 2


def test_a_memory_without_end_is_cut_off():
    sos = fx.filter.BiquadBPF(20, q=1000.0).lti(FS).sos
    assert memory_samples(sos, FS) == LONGEST_WAIT_S * FS


def handover(before, after):
    was, own = before.lti(FS).sos, after.lti(FS).sos
    return sections_handover(0, was, own, torch.zeros(was.shape[-2], 2, 2, dtype=torch.float64), FS)


def test_equal_sections_keep_their_state_as_it_is():
    move, waiting = handover(fx.filter.Peaking(500, 2.0, 3.0), fx.filter.Peaking(500, 2.0, 3.0))
    assert (move.matrices, waiting) == (None, 0)
    assert isinstance(move, Move)


@pytest.mark.parametrize("level", [1.0, -0.3])
def test_a_constant_stays_the_same_constant(level):
    """The integrators of a low-pass in equilibrium are in equilibrium for the new one, too."""
    before, after = fx.filter.LoButterworth(60, order=2), fx.filter.LoButterworth(65, order=2)
    was, own = before.lti(FS).sos, after.lti(FS).sos
    x = torch.full((1, 5 * FS), level, dtype=torch.float64)
    state = _ops.parallel_iir_forward(x, was)[1]
    move, _ = sections_handover(0, was, own, state, FS)
    y = _ops.parallel_iir_forward(x[:, :FS], own, (move.matrices @ state[..., None])[..., 0])[0]
    assert float((y - level).abs().max()) < 1e-9


def test_a_gain_in_front_that_moves_far_means_rest():
    """A design with its gain of 1e-6 in the first section: states of later ones would be a million times too large."""
    move, waiting = handover(fx.filter.LoButterworth(20_000, order=4), fx.filter.LoButterworth(100, order=4))
    assert move is None
    assert waiting == memory_samples(fx.filter.LoButterworth(100, order=4).lti(FS).sos, FS)


def test_a_damping_that_moves_far_rings_out_unheard():
    """What a filter without resonance holds would ring in a sharp one, louder than all that either lets through."""
    before, after = fx.filter.BiquadHPF(2000, q=0.3), fx.filter.BiquadHPF(2000, q=100.0)
    assert handover(before, after)[1] == memory_samples(after.lti(FS).sos, FS)
    assert handover(fx.filter.BiquadHPF(2000, q=80.0), after)[1] < memory_samples(after.lti(FS).sos, FS)
