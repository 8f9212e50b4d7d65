"""Delay networks by their transfer functions, as a GPU computes whole signals, beside the recursion in float64."""

import math
from types import SimpleNamespace

import pytest
import torch

import torchfx as fx
from oracle import FLOAT32_BOUND
from torchfx.effect import frequency_sampling
from torchfx.effect.delay_network import DelayNetwork

FS = 48_000


def networks(parent=DelayNetwork):
    """Return the library's classes of delay networks."""
    found = {each for child in parent.__subclasses__() for each in networks(child)}
    return found or {parent}


@pytest.fixture(autouse=True)
def everything_is_taken(monkeypatch):
    monkeypatch.setattr(frequency_sampling, "takes", lambda x: True)


def noise(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def assert_equal(found, exact):
    """Where nothing is heard yet, 1e-10 of what goes in is."""
    assert (found.dtype, found.shape) == (torch.float32, exact.shape)
    assert (found - exact).abs().max() < FLOAT32_BOUND * exact.abs().max() + 1e-10


def recursion(processor, x):
    return processor.step(x.double(), processor.init_state(x.shape[:-1], FS, torch.float64), FS)[0]


PROCESSORS = {
    "Delay": lambda: fx.effect.Delay("900 samples", feedback=0.9, mix=0.4, high_cut=3000, fs=FS),
    "PingPongDelay": lambda: fx.effect.PingPongDelay("700 samples", feedback=0.95, mix=0.5, fs=FS),
    "Reverb": lambda: fx.effect.Reverb(room_size=1.0, damping=0.1, fs=FS),
    "FDNReverb": lambda: fx.effect.FDNReverb(rt60=100.0, low_rt60=100.0, high_rt60=0.1, size=0.3, mix=1.0, fs=FS),
}

SIGNALS = {
    "noise": noise(2, 5001),
    "a constant": torch.ones(2, 4000),
    "a batch": noise(3, 2, 1500),
    "one sample": noise(2, 1),
}


def test_every_class_of_delay_networks_is_compared():
    assert {each.__name__ for each in networks() if each.__module__.startswith("torchfx.")} == {*PROCESSORS}


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("signal", SIGNALS)
def test_it_equals_the_recursion(name, signal):
    processor, signal = PROCESSORS[name](), SIGNALS[signal]
    assert_equal(processor.whole(signal, FS), recursion(processor, signal))


def test_a_tail_that_never_decays_does_not_wrap_around():
    """A loop of gain 1 adds up what it hears; 1e-10 of it is heard too early."""
    endless = fx.effect.Delay("7 samples", feedback=1.0 - 1e-12, mix=1.0, fs=FS)
    x = torch.ones(1, 20_000)
    assert_equal(endless.whole(x, FS), recursion(endless, x))


def test_settings_and_signals_of_a_batch_are_their_own():
    processor = fx.effect.Reverb(room_size=torch.tensor([[0.1], [0.9]]), fs=FS)
    x = noise(2, 2, 3000)
    assert_equal(processor.whole(x, FS), recursion(processor, x))


def test_a_signal_without_channels_is_one():
    processor, x = fx.effect.Reverb(fs=FS), noise(3000)
    assert_equal(processor.whole(x, FS), recursion(processor, x))


@pytest.mark.parametrize("name", ["Reverb", "FDNReverb"])
def test_chunks_of_points_change_nothing_and_keep_within_their_bytes(name, monkeypatch):
    """Some points at a time, with fewer bytes at the peak than were allowed."""
    processor, x, sizes = PROCESSORS[name](), noise(2, 3000), []
    whole = processor.whole(x, FS)
    computed = frequency_sampling._at
    monkeypatch.setattr(frequency_sampling, "CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(frequency_sampling, "_at", lambda *given: sizes.append(len(given[4])) or computed(*given))
    assert torch.allclose(processor.whole(x, FS), whole, atol=1e-6)
    assert len(sizes) > 2
    assert max(sizes) < sum(sizes) / 2


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_comes_before_a_sample_that_is_not_finite_is_right(bad):
    processor, x = fx.effect.Reverb(fs=FS), noise(2, 4000)
    x[1, 3000] = bad
    y = processor.whole(x, FS)
    assert_equal(y[:, :3000], recursion(processor, x[:, :3000]))
    assert y[:, 3000:].isnan().all()


@pytest.mark.parametrize("name", ["room_size", "damping", "width", "x"])
def test_gradients_equal_the_recursion(name):
    settings = {key: torch.tensor([0.3], dtype=torch.float64) for key in ("room_size", "damping", "width")}
    x = noise(2, 2500)
    wanted = x if name == "x" else settings[name]
    wanted.requires_grad_()
    processor = fx.effect.Reverb(**settings, fs=FS)
    weights = noise(2, 2500, seed=1)
    found, exact = (
        torch.autograd.grad((y * weights).sum(), wanted)[0] for y in (processor.whole(x, FS), recursion(processor, x))
    )
    assert (found - exact).abs().max() < 1e-6 * exact.abs().max()


def test_gradients_in_chunks_are_computed_again_in_the_backward_pass(monkeypatch):
    """What the points need lies in memory for one chunk at a time."""
    rt60 = torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
    processor, x = fx.effect.FDNReverb(rt60=rt60, size=0.2, fs=FS), noise(2, 1500)
    exact = torch.autograd.grad(recursion(processor, x).square().sum(), rt60)[0]
    points, computed = [], frequency_sampling._at
    monkeypatch.setattr(frequency_sampling, "CHUNK_BYTES", 1 << 21)
    monkeypatch.setattr(frequency_sampling, "_at", lambda *given: points.append(len(given[4])) or computed(*given))
    y = processor.whole(x, FS).double()
    forward = sum(points)
    assert torch.autograd.grad(y.square().sum(), rt60)[0] == pytest.approx(exact.item(), rel=1e-5)
    assert sum(points) == 2 * forward


def test_lines_are_solved_by_levels_where_none_hears_a_later_one():
    """Combs, then all-passes in a row; lines that hear each other need a solver."""
    _, reverb, _ = fx.effect.Reverb(fs=FS).network(2, FS)
    assert [len(level) for level in frequency_sampling._levels(reverb, 24)] == [16, 2, 2, 2, 2]
    _, ring, _ = fx.effect.FDNReverb(fs=FS).network(2, FS)
    assert frequency_sampling._levels(ring, 16) is None


def test_plans_ask_for_it(monkeypatch):
    """On CPU tensors instead of a GPU's: the processor's `whole` is what runs a chain."""
    asked = []
    monkeypatch.setattr(frequency_sampling, "takes", lambda x: asked.append(tuple(x.shape)) or True)
    x, processor = noise(2, 3000), fx.effect.Reverb(fs=FS)
    assert torch.equal(processor(x), processor.whole(x, FS))
    assert asked == [(2, 3000)] * 2


def test_long_float32_signals_on_a_gpu_are_taken(monkeypatch):
    monkeypatch.undo()
    long = frequency_sampling.SHORTEST

    def signal(is_cuda=True, dtype=torch.float32, shape=(2, long)):
        return SimpleNamespace(is_cuda=is_cuda, dtype=dtype, shape=shape, numel=lambda: math.prod(shape))

    assert frequency_sampling.takes(signal())
    assert not frequency_sampling.takes(signal(is_cuda=False))
    assert not frequency_sampling.takes(signal(dtype=torch.float64))
    assert not frequency_sampling.takes(signal(shape=(2, long - 1)))
    assert not frequency_sampling.takes(signal(shape=(frequency_sampling.MOST_ROWS + 1, long)))
    assert not frequency_sampling.takes(signal(shape=(2, frequency_sampling.MOST_SAMPLES)))
