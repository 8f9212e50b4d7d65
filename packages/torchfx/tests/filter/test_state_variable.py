"""The state-variable filter: the cookbook's while it stands still, free of clicks while it moves."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from oracle import deviation
from torchfx.design.biquad import BIQUADS
from torchfx.errors import ArgumentError
from torchfx.filter import ParametricEQ, StateVariable
from torchfx.filter.state_variable import GAINED

FS = 48_000


def loop(x, cutoff, q):
    """The low-pass with trapezoidal integrators, sample by sample, as A. Simper writes it."""
    s1 = s2 = 0.0
    y = np.empty_like(x)
    for t, sample in enumerate(x):
        g, k = np.tan(np.pi * cutoff[t] / FS), 1 / q[t]
        a1 = 1 / (1 + g * (g + k))
        v1 = a1 * (s1 + g * (sample - s2))
        y[t] = v2 = s2 + g * v1
        s1, s2 = 2 * v1 - s1, 2 * v2 - s2
    return y


@pytest.mark.parametrize("mode", BIQUADS)
def test_a_modulation_that_stands_still_is_the_filter(rng, mode):
    x = torch.from_numpy(rng.standard_normal((2, 3000)))
    gain_db = 6.0 if mode in GAINED else 0.0
    for cutoff, q in ((20.0, 0.7), (1000.0, 8.0), (21_000.0, 0.5)):
        module = StateVariable(cutoff, q=q, mode=mode, gain_db=gain_db, fs=FS)
        still = torch.full((3000,), cutoff, dtype=torch.float64)
        assert deviation(module.modulated(x, cutoff=still)[0], module(x).numpy()) < 1e-11
        assert deviation(module.modulated(x)[0], module(x).numpy()) < 1e-11
    equaliser = ParametricEQ([21_000], 0.5, gain_db, [mode], fs=FS)
    assert torch.equal(module(x), equaliser(x))


def test_parameters_of_each_sample_equal_a_loop(rng):
    cutoff, q = np.geomspace(30, 20_000, 1025), np.geomspace(0.5, 30, 1025)
    x = rng.standard_normal(1025)
    found, _ = StateVariable(1000, fs=FS).modulated(*(torch.from_numpy(each) for each in (x, cutoff, q)))
    assert deviation(found, loop(x, cutoff, q)) < 1e-12


@pytest.mark.parametrize(
    ("shape", "own"), [((17, 100), (100,)), ((2, 3, 100), (2, 1, 100)), ((100,), (5, 20)), ((1,), (1,))]
)
def test_parameters_broadcast_and_may_hold_for_blocks(rng, shape, own):
    x = torch.from_numpy(rng.standard_normal(shape))
    cutoff = torch.from_numpy(rng.uniform(100, 10_000, own))
    y, state = StateVariable(1000, fs=FS).modulated(x, cutoff=cutoff)
    leading = np.broadcast_shapes(shape[:-1], own[:-1])
    assert y.shape == (*leading, shape[-1])
    assert state.shape == (*leading, 2)
    each = cutoff.repeat_interleave(shape[-1] // own[-1], dim=-1).expand(y.shape)
    for index in np.ndindex(*leading):
        expected = loop(x.expand(y.shape)[index].numpy(), each[index].numpy(), np.full(shape[-1], 0.5**0.5))
        assert deviation(y[index], expected) < 1e-12


def test_one_value_per_example_stays_what_it_is(rng):
    x = torch.from_numpy(rng.standard_normal((3, 2, 50)))
    cutoff, q = torch.tensor([[300.0], [900.0], [5000.0]]), torch.full((50,), 3.0)
    y, _ = StateVariable(cutoff, fs=FS).modulated(x, q=q)
    assert deviation(y, StateVariable(cutoff, q=3.0, fs=FS)(x).numpy()) < 1e-12


def test_blocks_equal_the_whole(rng):
    x, cutoff = torch.from_numpy(rng.standard_normal((2, 2000))), torch.logspace(2, 4, 2000, dtype=torch.float64)
    module = StateVariable(1000, q=5.0, fs=FS)
    whole, after = module.modulated(x, cutoff=cutoff)
    state, parts = None, []
    for block, along in zip(x.split(333, -1), cutoff.split(333), strict=True):
        y, state = module.modulated(block, cutoff=along, state=state)
        parts.append(y)
    assert torch.equal(torch.cat(parts, -1), whole)
    assert torch.equal(state, after)


def test_a_sweep_makes_no_clicks():
    """A tone through a swept filter stays a tone: what a click spreads over all frequencies is not there."""
    time = torch.arange(FS, dtype=torch.float64) / FS
    tone = torch.sin(2 * torch.pi * 500 * time)
    cutoff = 100 * 100**time
    module = StateVariable(1000, q=4.0, fs=FS)
    away = slice(3000, None)  # Hz: bins are 1 Hz apart

    def beyond(y):
        spectrum = torch.fft.rfft(y * torch.blackman_window(FS, dtype=torch.float64)).abs()
        return float(spectrum[away].max() / spectrum.max())

    smooth = beyond(module.modulated(tone, cutoff=cutoff)[0])
    stepped = beyond(module.modulated(tone, cutoff=cutoff[::960].contiguous())[0])
    assert smooth < 1e-6
    assert stepped > 100 * smooth  # steps of 20 ms do click: the measure sees them


def test_gradients_of_modulations(rng):
    x = torch.from_numpy(rng.standard_normal((2, 6))).requires_grad_()
    cutoff = torch.from_numpy(rng.uniform(500, 9000, (2, 6))).requires_grad_()
    q = torch.from_numpy(rng.uniform(0.5, 3, (3,))).requires_grad_()
    module = StateVariable(1000, mode="peaking", gain_db=9.0, fs=FS)
    run = lambda x, cutoff, q: module.modulated(x, cutoff=cutoff, q=q[:1])  # noqa: E731
    assert gradcheck(run, (x, cutoff, q), eps=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cutoff": torch.full((50,), 24_000.0)}, r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 24000"),
        ({"cutoff": torch.tensor([100.0, float("nan")])}, r"cutoff must lie in .* got nan"),
        ({"q": 0.0}, r"q must lie in \[0.001, .*\], got 0"),
        ({"cutoff": torch.full((7,), 100.0)}, "divide the signal evenly: got 7 for 50 samples"),
        ({"cutoff": torch.full((3, 50), 100.0)}, r"must broadcast with each other, got \(2,\) of x, \(3,\) of system"),
        (
            {"gain_db": torch.zeros(50)},
            "gain_db must be 0 where mode is lowpass: peaking, lowshelf, highshelf have a gain",
        ),
        ({"state": torch.zeros(2, 3).double()}, r"state must have the shape \(2, 2\)"),
    ],
)
def test_bad_modulations_raise(given, message):
    with pytest.raises(ArgumentError, match=message):
        StateVariable(1000, fs=FS).modulated(torch.zeros(2, 50), **given)


def test_a_gain_where_there_is_none_raises():
    with pytest.raises(ArgumentError, match=r"gain_db must be 0 where mode is notch: .* got 3"):
        StateVariable(1000, mode="notch", gain_db=3.0)
