"""The biquad classes: each is its design, and a batch of equalisers is one operator call."""

import inspect

import pytest
import torch
from scipy import signal

import torchfx as fx
from oracle import deviation
from torchfx import _ops, spec
from torchfx.design import biquad
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.filter import (
    AllPass,
    BiquadAllPass,
    BiquadBPF,
    BiquadBPFPeak,
    BiquadHPF,
    BiquadLPF,
    BiquadNotch,
    HiShelving,
    LoShelving,
    Notch,
    ParametricEQ,
    Peaking,
)

FS = 48_000
CLASSES = {
    BiquadLPF: "lowpass", BiquadHPF: "highpass", BiquadBPF: "bandpass", BiquadBPFPeak: "bandpass_skirt", Notch: "notch",
    AllPass: "allpass", Peaking: "peaking", LoShelving: "lowshelf", HiShelving: "highshelf",
}  # fmt: skip


@pytest.mark.parametrize("cls", CLASSES)
def test_a_class_is_its_design(cls, rng):
    takes_gain = "gain_db" in cls.declarations
    assert list(inspect.signature(cls).parameters)[: 2 + takes_gain] == ["cutoff", "q", "gain_db"][: 2 + takes_gain]
    module = cls(300, 2.0, *([6.0] if takes_gain else []), fs=FS)
    sos = biquad(300, 2.0, 6.0, FS, CLASSES[cls])
    assert torch.equal(module.sos, sos)
    x = rng.standard_normal((2, 1025))
    exact = signal.sosfilt(sos.numpy(), x)
    assert deviation(module(torch.from_numpy(x)), exact) < 1e-12
    assert deviation(module(torch.from_numpy(x).float()), exact) < 2e-7
    assert str(spec.build(f"{cls.__name__}:1kHz")).startswith(f"{cls.__name__}(cutoff=1000, q=0.7071067811865476")


def test_the_cookbooks_names_are_the_same_classes():
    assert BiquadNotch is Notch
    assert BiquadAllPass is AllPass


def test_shelves_take_slopes():
    shelf = LoShelving(100, gain_db=9.0, slope=0.6, fs=FS)
    assert torch.equal(shelf.sos, biquad(100, 1.0, 9.0, FS, "lowshelf", 0.6))
    shelf.slope = None
    assert torch.equal(shelf.sos, biquad(100, shelf.q, 9.0, FS, "lowshelf"))
    assert str(spec.build("hishelving:8kHz,gain_db=-3dB,slope=none")) == str(HiShelving(8000, gain_db=-3))
    slope = torch.nn.Parameter(torch.tensor(0.5))
    HiShelving(1000, gain_db=6, slope=slope, fs=FS)(torch.randn(100)).square().sum().backward()
    assert float(slope.grad) != 0


def test_an_equaliser_for_each_example_is_one_call(rng, monkeypatch):
    calls = []
    original = _ops.parallel_iir_forward
    monkeypatch.setattr(_ops, "parallel_iir_forward", lambda *args, **kw: calls.append(1) or original(*args, **kw))
    cutoff, q = torch.tensor([100.0, 1000.0, 8000.0]), torch.from_numpy(rng.uniform(0.5, 4, (5, 1, 3)))
    gain = torch.nn.Parameter(torch.from_numpy(rng.uniform(-12, 12, (5, 1, 3))))
    eq = ParametricEQ(cutoff, q, gain, ["lowshelf", "peaking", "highshelf"], fs=FS)
    assert [name for name, _ in eq.named_parameters()] == ["gain_db"]
    x = torch.from_numpy(rng.standard_normal((5, 2, 300)))
    y = eq(x)
    assert calls == [1]
    for i in range(5):
        alone = ParametricEQ(cutoff.tolist(), q[i, 0].tolist(), gain[i, 0].tolist(), eq.btype, fs=FS)
        assert torch.allclose(y[i], alone(x[i]), atol=1e-12)
    y.square().sum().backward()
    assert float(gain.grad.abs().min()) > 0


def test_an_equaliser_is_built_from_text():
    text = "parametriceq:[100,1kHz],q=[0.7,2],gain_db=[3dB,-2],btype=[lowshelf,peaking]"
    shown = "ParametricEQ(cutoff=[100, 1000], q=[0.7, 2], gain_db=[3, -2], btype=['lowshelf', 'peaking'])"
    assert str(spec.build(text)) == shown
    assert str(spec.build("parametriceq:1kHz")) == str(ParametricEQ(1000))


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: Peaking(30_000, fs=FS), ArgumentError, r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 30000"),
        (lambda: Peaking(1000, q=-1), ArgumentError, r"q must lie in \[0.001, 1000000\], got -1"),
        (lambda: Peaking(1000, gain_db="loud"), ArgumentError, "gain_db must be a number in dB, got 'loud'"),
        (lambda: LoShelving(100, slope=2), ArgumentError, r"slope must lie in \(0, 1\], got 2"),
        (lambda: ParametricEQ([100, 200], q=[1, 2, 3]), ArgumentError, "got 2 of cutoff, 3 of q"),
        (lambda: ParametricEQ([]), ArgumentError, "cutoff must hold a value for each band, got none"),
        (lambda: ParametricEQ([100, -5]), ArgumentError, r"cutoff must lie in \(0, fs/2\) Hz, got -5"),
        (lambda: ParametricEQ([100], btype="peak"), ArgumentError, "btype must be one of lowpass, .* got 'peak'"),
        (
            lambda: ParametricEQ([torch.tensor(100.0)]),
            ArgumentTypeError,
            r"cutoff must be numbers or one tensor \(..., bands\), got a list of tensors",
        ),
    ],
)
def test_bad_parameters_raise(made, error, message):
    with pytest.raises(error, match=message):
        made()


def test_a_changed_band_changes_the_filter(generator):
    x = torch.randn(2, 200, generator=generator)
    eq = ParametricEQ([100, 1000], gain_db=[3, 6], fs=FS)
    chain = eq | fx.effect.Gain(1.0)
    before = chain(x)
    eq.gain_db = [3, -6]
    assert torch.equal(chain(x), ParametricEQ([100, 1000], gain_db=[3, -6], fs=FS)(x))
    assert not torch.equal(chain(x), before)
    with pytest.raises(ArgumentError, match="got 2 of cutoff, 3 of gain_db"):
        eq.gain_db = [1, 2, 3]
    assert eq.gain_db == (3, -6)
