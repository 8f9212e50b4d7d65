"""Butterworth, Chebyshev, elliptic and Bessel filters of any band, and the order that a specification needs."""

import inspect

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from oracle import deviation
from torchfx import spec
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.filter.classical import ClassicalFilter

PUBLIC = [getattr(fx.filter, name) for name in fx.filter.__all__]
FAMILIES = [cls for cls in PUBLIC if issubclass(cls, ClassicalFilter) and "btype" in cls.declarations]
SIDES = [
    cls for cls in PUBLIC if issubclass(cls, (*FAMILIES, fx.filter.LinkwitzRiley)) and "btype" not in cls.declarations
]
CUTOFF = {"lowpass": 1000, "highpass": 1000, "bandpass": (300, 3400), "bandstop": (300, 3400)}


def gain_db(module, *frequencies):
    """Return the gain at frequencies in Hz, dB."""
    _, h = signal.sosfreqz(module.sos.numpy(), frequencies, fs=module.fs)
    return 20 * np.log10(np.maximum(abs(h), 1e-300))


def test_every_family_has_a_high_pass_and_a_low_pass():
    names = {cls.__name__ for cls in SIDES}
    assert names == {side + cls.__name__ for cls in (*FAMILIES, fx.filter.LinkwitzRiley) for side in ("Hi", "Lo")}


@pytest.mark.parametrize("cls", SIDES)
def test_defaults_attenuate_an_octave_beyond_the_cutoff_and_pass_an_octave_before(cls):
    stopped, passed = (2000, 500) if cls.btype == "lowpass" else (500, 2000)
    beyond, before = gain_db(cls(1000, fs=48_000), stopped, passed)
    assert beyond < -8
    assert -3.2 < before < 0.1
    assert list(inspect.signature(cls).parameters)[:2] == ["cutoff", "order"]
    assert spec.build(f"{cls.__name__.lower()}:1kHz").cutoff == 1000


@pytest.mark.parametrize("cls", FAMILIES)
@pytest.mark.parametrize("btype", CUTOFF)
def test_float64_and_float32_signals_as_scipy_filters_them(cls, btype, rng):
    x = rng.standard_normal((17, 1025))
    module = cls(CUTOFF[btype], btype=btype, fs=48_000)
    exact = signal.sosfilt(module.sos.numpy().astype(np.longdouble), x.astype(np.longdouble))
    assert deviation(module(torch.from_numpy(x)), exact) < 1e-12
    assert deviation(module(torch.from_numpy(x).float()), exact) < 2e-7
    assert str(module).startswith(f"{cls.__name__}(cutoff=")


def test_text_gives_any_band():
    module = spec.build("butterworth:[300,3.4kHz],4,btype=bandpass,fs=48000")
    assert str(module) == "Butterworth(cutoff=[300, 3400], order=4, fs=48000, btype='bandpass')"
    assert gain_db(module, 300, 3400) == pytest.approx(10 * np.log10([0.5, 0.5]), abs=1e-9)


def test_a_side_is_fixed():
    assert fx.filter.LoElliptic.btype == "lowpass"
    assert isinstance(fx.filter.LoElliptic(1000), fx.filter.Elliptic)
    with pytest.raises(ArgumentTypeError, match="HiButterworth: got an unexpected keyword argument 'btype'"):
        fx.filter.HiButterworth(1000, btype="lowpass")


def test_edges_and_type_of_band_fit_each_other():
    with pytest.raises(ArgumentError, match="cutoff must be a pair of frequencies for a bandpass, got 1000"):
        fx.filter.Chebyshev2(1000, btype="bandpass")
    with pytest.raises(ArgumentError, match=r"cutoff must be one frequency for a lowpass, got \[300, 3400\]"):
        fx.filter.Bessel((300, 3400))
    with pytest.raises(ArgumentError, match=r"ascending frequencies in Hz, got \[3400, 300\]"):
        fx.filter.Butterworth((3400, 300), btype="bandstop")
    with pytest.raises(ArgumentError, match="attenuation must exceed the ripple of 3 dB, got 2"):
        fx.filter.Elliptic(1000, ripple=3, attenuation=2)
    module = fx.filter.Elliptic((300, 3400), btype="bandstop")
    with pytest.raises(ArgumentError, match="cutoff must be a pair of frequencies for a bandstop, got 80"):
        module.cutoff = 80
    assert module.cutoff == (300, 3400)


def test_a_band_learns_its_edges(generator):
    x = torch.randn(4, 2000, generator=generator)
    target = fx.filter.Butterworth((1000, 4000), btype="bandpass", fs=48_000)(x)
    edges = torch.nn.Parameter(torch.tensor([700.0, 5000.0]))
    module = fx.filter.Butterworth(edges, btype="bandpass", fs=48_000)
    optimizer = torch.optim.Adam(module.parameters(), lr=40.0)
    for _ in range(80):
        optimizer.zero_grad()
        (module(x) - target).square().mean().backward()
        optimizer.step()
    assert edges.tolist() == pytest.approx([1000, 4000], rel=0.02)


def test_each_example_of_a_batch_has_edges_of_its_own():
    x = torch.randn(3, 2, 400, generator=torch.Generator().manual_seed(0)).double()
    edges = torch.tensor([[100.0, 900.0], [300.0, 3400.0], [20.0, 20_000.0]])
    together = fx.filter.Elliptic(edges[:, None], btype="bandstop", fs=48_000)(x)
    for i in range(3):
        alone = fx.filter.Elliptic(tuple(edges[i].tolist()), btype="bandstop", fs=48_000)(x[i])
        assert torch.allclose(together[i], alone, atol=1e-12)


@pytest.mark.parametrize("learned", [False, True])
def test_a_compiled_filter_is_traced_whole(learned):
    x = torch.randn(2, 64, generator=torch.Generator().manual_seed(0))
    edges = torch.nn.Parameter(torch.tensor([300.0, 3400.0])) if learned else (300, 3400)
    module = fx.filter.Elliptic(edges, btype="bandpass", fs=48_000)
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x), module(x), atol=1e-6)
    if not learned:
        module.cutoff = (400, 3000)
        assert torch.allclose(compiled(x), module(x), atol=1e-6)


SPECIFICATIONS = {
    "lowpass": (1000, 1500),
    "highpass": (1500, 1000),
    "bandpass": ((500, 2000), (300, 4000)),
    "bandstop": ((300, 4000), (500, 2000)),
}


@pytest.mark.parametrize("cls", [cls for cls in FAMILIES if cls is not fx.filter.Bessel])
@pytest.mark.parametrize("btype", SPECIFICATIONS)
def test_the_filter_of_a_specification_meets_it_and_one_of_lower_order_does_not(cls, btype):
    passband, stopband = SPECIFICATIONS[btype]
    module = cls.from_specification(passband, stopband, gpass=1, gstop=50, fs=48_000)
    assert (type(module), module.btype, module.fs) == (cls, btype, 48_000)
    edges = np.atleast_1d(passband), np.atleast_1d(stopband)
    assert (gain_db(module, *edges[0]) > -1 - 1e-6).all()
    assert (gain_db(module, *edges[1]) < -50 + 1e-6).all()
    module.order -= 1
    assert (gain_db(module, *edges[0]) < -1 - 1e-3).any() or (gain_db(module, *edges[1]) > -50 + 1e-3).any()


def test_a_side_is_made_from_its_own_specification():
    module = fx.filter.LoChebyshev1.from_specification(1000, 3000, 0.5, 60, 48_000)
    order, cutoff = signal.cheb1ord(1000, 3000, 0.5, 60, fs=48_000)
    assert (module.order, module.cutoff, module.ripple) == (order, cutoff, 0.5)


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (fx.filter.LoButterworth, (3000, 1000, 1, 40, 48_000), "must be those of a lowpass, got those of a highpass"),
        (fx.filter.Butterworth, (1000, 1000, 1, 40, 48_000), "two different frequencies, or two pairs .* got 1000 and"),
        (fx.filter.Butterworth, ((300, 3000), 1000, 1, 40, 48_000), r"got \[300, 3000\] and 1000"),
        (fx.filter.Butterworth, ((300, 3000), (500, 4000), 1, 40, 48_000), "one lies inside the other"),
        (fx.filter.Butterworth, (1000, 30_000, 1, 40, 48_000), r"stopband must lie in \(0, fs/2\) = \(0, 24000\) Hz"),
        (fx.filter.Elliptic, (1000, 3000, 0, 40, 48_000), r"gpass must lie in \(0, inf\) dB, got 0"),
        (fx.filter.Elliptic, (1000, 3000, 3, 2, 48_000), "gstop must exceed gpass = 3 dB, got 2"),
        (fx.filter.Bessel, (1000, 3000, 1, 40, 48_000), "Bessel cannot be made from a specification"),
    ],
)
def test_specifications_of_no_filter_raise(cls, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        cls.from_specification(*arguments)


@pytest.mark.parametrize("order", [32, 47, 64])
@pytest.mark.parametrize(
    ("cutoff", "btype"),
    [(50, "lowpass"), (1000, "lowpass"), (8000, "highpass"), ((300, 3400), "bandpass"), ((300, 3400), "bandstop")],
)
@pytest.mark.parametrize("ripple", [0.5, 3.0])
def test_high_orders_filter_as_they_are_designed(generator, cutoff, btype, order, ripple):
    """Their sections are ordered so that none takes away what another one gives back, and with it the rounding."""
    module = fx.filter.Chebyshev1(cutoff, order, ripple, btype=btype, fs=48_000)
    x = torch.randn(1, 24_000, generator=generator)
    rounded, exact = module(x).double(), module(x.double())
    assert float((rounded - exact).abs().max()) < 1e-7 * float(exact.abs().max())
    shifted = torch.from_numpy(signal.sosfilt(module.sos.numpy(), x.double().numpy()))
    assert float((shifted - exact).abs().max()) < 1e-6 * float(exact.abs().max())


def test_a_gain_that_no_normal_number_holds_is_refused():
    with pytest.raises(ArgumentError, match=r"order 100 .* make a filter that float64 cannot hold"):
        _ = fx.filter.Chebyshev1((100, 120), 100, btype="bandpass", fs=48_000).sos
