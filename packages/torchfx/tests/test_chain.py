"""`|` and `+` between modules: FilterChain, Parallel, and what they run."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import numpy as np
import pytest
import torch
from scipy import signal
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import torchfx as fx
from oracle import deviation
from torchfx import _ops
from torchfx.effect import Gain, Normalize
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError
from torchfx.filter import FIR, DesignableFIR, HiButterworth, HiChebyshev1, LoButterworth, LoChebyshev1
from torchfx.plan import plan_of

FS = 48000


@pytest.fixture
def wave(rng):
    return fx.Wave(rng.standard_normal((2, 4000)), FS)


@pytest.fixture
def calls(monkeypatch):
    """Every call of the operators' entry points, by wrapping them where callers look them up."""
    seen = []

    def wrap(name):
        original = getattr(_ops, name)

        def counted(*args, **kwargs):
            seen.append(name)
            return original(*args, **kwargs)

        monkeypatch.setattr(_ops, name, counted)

    for name in ("parallel_iir_forward", "biquad_forward", "fir_forward", "lti_forward"):
        wrap(name)
    return seen


def one_by_one(wave, modules):
    for module in modules:
        wave = wave | module
    return wave.ys.numpy()


def test_pipe_between_modules_builds_a_flat_sequential():
    a, b, c, d = HiButterworth(80), LoButterworth(9000), Gain(0.5), nn.Tanh()
    chain = (a | b) | (c | d)
    assert isinstance(chain, fx.FilterChain)
    assert isinstance(chain, nn.Sequential)
    assert list(chain) == [a, b, c, d]
    assert list(nn.Tanh() | a)[1] is a
    assert isinstance(chain[:2], fx.FilterChain)
    assert chain[1] is b


def test_plus_between_modules_builds_a_flat_sum():
    a, b, c = HiButterworth(80), LoButterworth(9000), Gain(0.5)
    assert (a + b + c).branches() == [a, b, c]
    assert isinstance((a | b) + c, fx.Parallel)
    assert isinstance(nn.Tanh() + a, fx.Parallel)
    total = a | b
    total += c
    assert isinstance(total, fx.Parallel)


def cascade(depth):
    return [HiButterworth(20 + i, order=1 + i % 4) if i % 2 else LoChebyshev1(9000 - i) for i in range(depth)]


JOINED = {
    **{f"{depth} recursive filters": (cascade(depth), ["parallel_iir_forward"]) for depth in (1, 2, 5, 20)},
    "static gains add no call": (
        [Gain(0.5), HiButterworth(80), Gain("-3dB"), LoButterworth(9000), Gain(-1.7)],
        ["parallel_iir_forward"],
    ),
    "neighbouring responses": (
        [*(DesignableFIR(1000 + 200 * i, 101 + i) for i in range(5)), Gain(2.0), FIR([0.0, 1.0])],
        ["fir_forward"],
    ),
    "responses among recursive filters": (
        [HiButterworth(80), DesignableFIR(5000, 101), Gain(0.5), LoButterworth(9000), FIR([0.5, 0.5])],
        ["lti_forward"],
    ),
    "other modules split a run": (
        [HiButterworth(80), LoButterworth(9000), nn.Tanh(), HiButterworth(100), Normalize(0.5), Gain(0.5)],
        ["parallel_iir_forward"] * 2,
    ),
}


@pytest.mark.parametrize(
    "container", [lambda *modules: fx.FilterChain(*modules), lambda *modules: nn.Sequential(*modules)]
)
@pytest.mark.parametrize("name", JOINED)
def test_neighbours_join_into_one_call(wave, calls, name, container):
    modules, expected = JOINED[name]
    result = wave | container(*modules)
    assert calls == expected
    assert deviation(result.ys, one_by_one(wave, modules)) < 1e-12


def test_fir_among_iir_keeps_float32_exact(rng):
    """What lies between the two is far louder than the result; its rounding must not show."""
    x = (np.cumsum(rng.standard_normal((2, 20_000)), axis=1) / 100).astype(np.float32)
    taps = signal.firwin(101, 3000, fs=FS)
    exact = signal.sosfilt(
        signal.butter(8, 15000, "high", fs=FS, output="sos"), signal.lfilter(taps, 1, x.astype(float))
    )
    result = fx.Wave(x, FS) | (DesignableFIR(3000, 101) | HiButterworth(15000, order=8))
    assert np.abs(exact).max() < 1e-3 * np.abs(x).max()
    assert deviation(result.ys, exact) < 2e-7


def test_plain_and_nested_sequentials_are_lowered_too(wave, calls):
    inner = nn.Sequential(LoButterworth(9000), nn.Sequential(HiChebyshev1(100)))
    result = wave | nn.Sequential(HiButterworth(80), inner)
    assert calls == ["parallel_iir_forward"]
    assert deviation(result.ys, one_by_one(wave, [HiButterworth(80), LoButterworth(9000), HiChebyshev1(100)])) < 1e-12


def test_modules_with_filters_inside_learn_the_rate(wave):
    class Voice(nn.Module):
        def __init__(self):
            super().__init__()
            self.tone = nn.Sequential(HiButterworth(80), LoButterworth(9000))

        def forward(self, x):
            return torch.tanh(self.tone(x))

    expected = torch.tanh((wave | HiButterworth(80) | LoButterworth(9000)).ys)
    assert torch.allclose((wave | Voice()).ys, expected)
    assert torch.allclose((wave | (Gain(1.0) | Voice() | Gain(2.0))).ys, expected * 2)
    assert torch.allclose((wave | fx.FilterChain(Voice(), Gain(2.0))).ys, expected * 2)


def test_sum_adds_its_branches(wave):
    both = (HiButterworth(80) | LoButterworth(9000)) + Gain(0.25) + nn.Identity()
    expected = (wave | HiButterworth(80) | LoButterworth(9000)).ys + 1.25 * wave.ys
    assert torch.allclose((wave | both).ys, expected, atol=1e-12)
    assert torch.allclose((wave | (both | Gain(2.0))).ys, 2 * expected, atol=1e-12)
    assert torch.allclose((wave | (both + both)).ys, 2 * expected, atol=1e-12)


def test_sum_leaves_its_input_alone(wave):
    before = wave.ys.clone()
    _ = wave | fx.Parallel(nn.Identity(), nn.Identity())
    assert torch.equal(wave.ys, before)


def test_hooks_run(wave):
    heard = []
    chain = HiButterworth(80) | LoButterworth(9000)
    chain[0].register_forward_hook(lambda module, args, y: heard.append("filter"))
    assert torch.allclose((wave | chain).ys, (wave | HiButterworth(80) | LoButterworth(9000)).ys, atol=1e-12)
    chain.register_forward_hook(lambda module, args, y: heard.append("chain"))
    _ = wave | chain
    _ = wave | nn.Sequential(chain)
    side_by_side = Gain(1.0) + Gain(1.0)
    side_by_side.register_forward_pre_hook(lambda module, args: heard.append("sum"))
    _ = wave | side_by_side
    assert heard == ["filter", "filter", "chain", "filter", "chain", "sum"]


def test_hooks_on_a_plain_sequential_run(wave):
    heard = []
    plain = nn.Sequential(HiButterworth(80))
    plain.register_forward_hook(lambda module, args, y: heard.append("plain"))
    _ = wave | plain
    assert heard == ["plain"]


def test_hooks_on_what_is_laid_flat_run(wave):
    chain, total = Gain(3.0) | Gain(1.0), Gain(3.0) + Gain(0.0)
    for module in (chain, total):
        module.register_forward_hook(lambda module, args, y: y * 2)
    assert torch.allclose((wave | (chain | Gain(1.0))).ys, wave.ys * 6)
    assert torch.allclose((wave | (Gain(1.0) | chain)).ys, wave.ys * 6)
    assert torch.allclose((wave | (total + Gain(1.0))).ys, wave.ys * 7)


def test_backward_hooks_run(wave):
    heard = []
    chain, plain = HiButterworth(80) | Gain(0.5), nn.Sequential(Gain(2.0))
    chain[0].register_full_backward_pre_hook(lambda module, gradients: heard.append("before"))
    chain[0].register_full_backward_hook(lambda module, inner, outer: heard.append("after"))
    plain.register_full_backward_hook(lambda module, inner, outer: heard.append("plain"))
    signal = fx.Wave(wave.ys.requires_grad_(), FS)
    (signal | chain | plain).ys.sum().backward()
    assert heard == ["plain", "before", "after"]


class Loud(LoButterworth):
    def forward(self, x):
        return 2 * super().forward(x)


class LoudChain(fx.FilterChain):
    def forward(self, x):
        return 2 * super().forward(x)


class LoudSum(fx.Parallel):
    def forward(self, x):
        return 2 * super().forward(x)


class Steeper(LoButterworth):
    def design(self, rate):
        return super().design(rate).repeat(2, 1)


def test_a_forward_of_its_own_is_called_in_chains_too(wave):
    low = wave | LoButterworth(9000)
    for module in (Loud(9000), LoudChain(LoButterworth(9000)), LoudSum(LoButterworth(9000))):
        for chain in (
            module | Gain(1.0),
            nn.Sequential(module),
            fx.FilterChain(nn.Sequential(module)),
            Gain(0.0) + module,
        ):
            assert torch.allclose((wave | chain).ys, 2 * low.ys, atol=1e-12)


def test_a_forward_put_in_place_is_called_in_chains_too(wave):
    low, chain = LoButterworth(9000), LoButterworth(9000) | Gain(1.0)
    expected = 2 * (wave | chain).ys
    chain[0].forward = lambda x: 2 * low(x)
    assert torch.allclose((wave | chain).ys, expected, atol=1e-12)


def test_a_design_of_its_own_is_still_lowered(wave, calls):
    result = wave | (Steeper(9000) | Gain(1.0) | HiButterworth(80))
    assert calls == ["parallel_iir_forward"]
    assert (
        deviation(result.ys, (wave | LoButterworth(9000) | LoButterworth(9000) | HiButterworth(80)).ys.numpy()) < 1e-12
    )


@pytest.mark.parametrize("effect", [Gain(2.0), FIR([0.5, 0.5]), HiButterworth(80)])
def test_plans_made_in_inference_mode_serve_training(wave, effect):
    chain = LoButterworth(9000) | effect
    with torch.inference_mode():
        expected = (wave | chain).ys
    x = wave.ys.clone().requires_grad_()
    with fx.sample_rate(FS):
        y = chain(x)
    assert torch.equal(y.detach(), expected)
    y.square().sum().backward()
    assert float(x.grad.abs().max()) > 0


def test_a_sequential_with_its_own_forward_is_called_as_it_is(wave):
    class Twice(nn.Sequential):
        def forward(self, x):
            return super().forward(super().forward(x))

    assert torch.allclose((wave | nn.Sequential(Twice(Gain(3.0)))).ys, wave.ys * 9)


def test_plans_follow_changes(wave):
    chain = HiButterworth(80) | Gain(0.5)
    _ = wave | chain
    chain.append(Gain(4.0))
    assert torch.allclose((wave | chain).ys, 2 * (wave | HiButterworth(80)).ys, atol=1e-12)
    chain[0] = HiButterworth(800)
    assert torch.allclose((wave | chain).ys, 2 * (wave | HiButterworth(800)).ys, atol=1e-12)
    del chain[0]
    assert torch.allclose((wave | chain).ys, 2 * wave.ys)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HiButterworth(80) | Gain(0.5),
        lambda: HiButterworth(80) + Gain(0.5),
        lambda: HiButterworth(80),
        lambda: nn.Linear(4, 4),
    ],
)
def test_remembered_plans_keep_no_module_alive(make):
    module = make()
    with fx.sample_rate(FS):
        plan_of(module, FS)
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


def test_a_plan_made_from_fake_tensors_serves_no_real_ones(wave):
    chain = HiButterworth(80) | LoButterworth(9000) | Gain(0.5)
    with FakeTensorMode(), fx.sample_rate(FS):
        chain.plan()
    assert deviation((wave | chain).ys, one_by_one(wave, list(chain))) < 1e-12


def test_tensors_need_a_rate(wave):
    chain = HiButterworth(80) | LoButterworth(9000)
    with pytest.raises(SampleRateError, match=r"HiButterworth has no sample rate"):
        chain(wave.ys)
    with fx.sample_rate(FS):
        assert torch.equal(chain(wave.ys), (wave | chain).ys)
    one_knows = HiButterworth(80, fs=FS) | LoButterworth(9000)
    assert torch.equal(one_knows(wave.ys), (wave | chain).ys)


def test_different_rates_raise_and_name_both(wave):
    with pytest.raises(SampleRateError, match=r"built for fs=44100 Hz but the signal has fs=48000 Hz"):
        wave | HiButterworth(80, fs=44100)
    with pytest.raises(SampleRateError, match=r"built for fs=44100 Hz but the signal has fs=48000 Hz"):
        wave | (Gain(1.0) | HiButterworth(80, fs=44100))
    with pytest.raises(SampleRateError, match=r"44100 Hz and .* for 48000 Hz"):
        (HiButterworth(80, fs=44100) | LoButterworth(80, fs=48000))(wave.ys)


def test_different_devices_raise_and_name_both(wave):
    chain = HiButterworth(80).to("meta") | LoButterworth(9000)
    with pytest.raises(ArgumentError, match=r"moved to meta but the signal is on cpu"):
        wave | chain
    chain[1].move_coeff("cpu")
    with pytest.raises(
        ArgumentError, match=r"share one device, got HiButterworth.* on meta and LoButterworth.* on cpu"
    ):
        wave | chain


def test_explain_prints_the_plan(capsys):
    chain = HiButterworth(80, order=4) | Gain("-3dB") | DesignableFIR(5000, 101) | nn.Tanh() | (Gain(1.0) + Gain(2.0))
    plan = chain.plan(FS)
    assert chain.explain(FS) is None
    text = repr(plan)
    printed = capsys.readouterr().out
    assert printed.startswith(text + "\ntwo channels:\n  1. whole signals: lti_forward: cpu ")
    assert "  2. whole signals: Tanh.forward\n" in printed
    assert text.splitlines()[0] == "plan at 48000 Hz: 6 modules -> 5 operator calls"
    assert "torchfx_ext::lti_forward  101 taps, 2 sections" in text
    assert "Tanh()  called as it is" in text
    assert (Gain(1.0) + HiButterworth(80)).plan(FS).calls() == 3
    assert "any sample rate" in str((Gain(1.0) | Gain(2.0)).plan())


def test_a_module_may_stand_in_a_chain_twice(wave):
    twice = Gain(3.0)
    assert torch.allclose((wave | (twice | twice)).ys, wave.ys * 9)
    assert torch.allclose((wave | (twice + twice)).ys, wave.ys * 6)
    assert torch.allclose((wave | ((twice | twice) | (twice | twice))).ys, wave.ys * 81)


def test_an_empty_chain_does_nothing(wave):
    assert torch.equal((wave | fx.FilterChain()).ys, wave.ys)


def test_named_modules_and_copies(wave):
    chain = fx.FilterChain(OrderedDict(low=HiButterworth(80), high=LoButterworth(9000)))
    assert chain.low.cutoff == 80
    expected = (wave | chain).ys
    for twin in (copy.deepcopy(chain), pickle.loads(pickle.dumps(chain))):
        assert torch.equal((wave | twin).ys, expected)


def test_what_is_no_tensor_raises(wave):
    for module in (HiButterworth(80, fs=FS), FIR([1.0]), HiButterworth(80, fs=FS) | Gain(1.0)):
        for x in (wave, wave.ys.numpy()):
            with pytest.raises(ArgumentTypeError, match=rf"x must be a tensor \(..., time\), got {type(x).__name__}"):
                module(x)


def test_what_is_no_module_raises():
    with pytest.raises(ArgumentTypeError, match=r"modules must be nn.Modules, got 3"):
        fx.FilterChain(HiButterworth(80), 3)
    with pytest.raises(ArgumentError, match=r"at least one module"):
        fx.Parallel()
    with pytest.raises(TypeError):
        HiButterworth(80) | 3
    with pytest.raises(TypeError):
        HiButterworth(80) + 3
