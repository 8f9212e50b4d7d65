"""Curves, with and without oversampling."""

import math

import numpy as np
import pytest
import torch

from torchfx._ops import native
from torchfx.effect import BitCrush, Distortion, HardClip, Overdrive, SoftClip, WaveShaper
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.realtime import Stream
from torchfx.spec import build

FS = 48_000
X = torch.linspace(-2, 2, 1025, dtype=torch.float64)
U = 10 ** (6 / 20) * X.numpy()


def overdriven(u):
    size = abs(u)
    return math.copysign(2 * size if size < 1 / 3 else (3 - (2 - 3 * min(size, 2 / 3)) ** 2) / 3, u)


CURVES = [
    (HardClip(-6.0), np.clip(X.numpy(), -(10 ** (-6 / 20)), 10 ** (-6 / 20))),
    (SoftClip("tanh", 6.0), np.tanh(U)),
    (SoftClip("cubic", 6.0), 1.5 * np.clip(U, -1, 1) - 0.5 * np.clip(U, -1, 1) ** 3),
    (SoftClip("arctan", 6.0), 2 / np.pi * np.arctan(U)),
    (Distortion(6.0), np.tanh(U)),
    (Overdrive(6.0), [overdriven(u) for u in U]),
    (BitCrush(4), np.round(X.numpy() * 8) / 8),
    (WaveShaper([-1.0, 0.5, 0.0, 1.0]), np.interp(X.numpy(), np.linspace(-1, 1, 4), [-1.0, 0.5, 0.0, 1.0])),
    (WaveShaper(torch.tanh), np.tanh(X.numpy())),
]


@pytest.mark.parametrize(("module", "expected"), CURVES)
def test_samples_follow_the_curve(module, expected):
    expected = torch.as_tensor(np.asarray(expected))
    assert torch.allclose(module(X), expected, rtol=0, atol=1e-14)
    assert float((module(X.float()) - expected).abs().max()) < 2e-7


def streamed(module, x, block):
    """Return what a stream makes of a signal (channels, time), and whether by native steps."""
    stream = Stream(module, FS, x.shape[0])
    y = torch.cat([*(stream.process(part) for part in x.split(block, dim=-1)), stream.flush()], dim=-1)
    return y[:, stream.latency_samples :], bool(stream._runner._running)


@pytest.mark.skipif(native.library is None, reason="needs the native library")
@pytest.mark.parametrize("block", [1, 64, 1025])
@pytest.mark.parametrize(("module", "expected"), CURVES)
def test_streams_follow_the_curve_by_native_steps(module, expected, block):
    expected = torch.as_tensor(np.asarray(expected))
    for x, bound in ((X, 1e-15), (X.float(), 2e-7)):
        strided = torch.stack([x, -x], dim=-1).flatten()[None, ::2]
        y, is_native = streamed(module, strided, block)
        assert is_native == (getattr(module, "table", None) is not torch.tanh)
        assert float((y[0] - expected).abs().max()) < bound


@pytest.mark.skipif(native.library is None, reason="needs the native library")
@pytest.mark.parametrize("block", [7, 64, 3000])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_channels_have_parameters_of_their_own_in_streams(generator, times, block):
    drives = torch.tensor([0.0, 6.0, 40.0])
    x = torch.randn(3, 3000, generator=generator)
    for make in (HardClip, Distortion, Overdrive):
        exact = make(drives, oversample=times)(x.double())
        y, is_native = streamed(make(drives, oversample=times), x, block)
        assert is_native
        assert float((y - exact).abs().max() / exact.abs().max()) < 2e-7


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("module", [module for module, _ in CURVES if not isinstance(module, WaveShaper)])
def test_what_is_not_finite_stays_where_it_is(module, value):
    x = torch.zeros(1, 20)
    x[0, 3] = value
    assert torch.equal(streamed(module, x, 20)[0].nan_to_num(9.0), module(x).nan_to_num(9.0))


def test_streams_follow_a_curve_that_a_subclass_changes():
    class Louder(Distortion):
        def curve(self, x):
            return 2 * x

    x = torch.ones(1, 8)
    assert torch.equal(streamed(Louder(), x, 8)[0], 2 * x)


def aliases_db(y):
    """Return the largest partial of a distorted 5 kHz sine that is no harmonic below 24 kHz, relative to the sine."""
    spectrum = torch.fft.rfft(y[4800:-4800] * torch.hann_window(len(y) - 9600, dtype=torch.float64)).abs()
    hz = torch.fft.rfftfreq(len(y) - 9600, 1 / 48_000)
    harmonic = (hz[:, None] - 5000 * torch.arange(5)).abs().amin(1) < 20
    return 20 * math.log10(float(spectrum[~harmonic].max() / spectrum.max()))


@pytest.mark.parametrize("kind", [HardClip, Distortion, Overdrive])
def test_oversampling_takes_aliases_out(kind):
    sine = torch.sin(2 * math.pi * 5000 / 48_000 * torch.arange(24_000, dtype=torch.float64))
    plain, twice, eightfold = (aliases_db(kind(oversample=times)(sine)) for times in (1, 2, 8))
    assert twice < plain - 10
    assert eightfold < plain - 40


@pytest.mark.parametrize("times", [2, 3, 4, 8, 16])
def test_what_is_not_clipped_passes_oversampling_unchanged(times):
    sine = torch.sin(2 * math.pi * 1000 / 48_000 * torch.arange(4800, dtype=torch.float64))
    y = HardClip(20.0, oversample=times)(sine)
    assert float((y - sine)[300:-300].abs().max()) < 1e-6


def test_a_table_is_learned_and_built_from_text():
    table = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
    WaveShaper(table)(torch.tensor([0.25, 0.75])).sum().backward()
    assert table.grad.tolist() == [0.0, 1.0, 1.0]
    assert build("waveshaper:[-1,0,1],oversample=4")(torch.zeros(1, 8)).shape == (1, 8)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: HardClip(oversample=0), ArgumentError, "oversample must be a whole number >= 1, got 0"),
        (lambda: HardClip(oversample=17), ArgumentError, "oversample must be a whole number <= 16, got 17"),
        (lambda: SoftClip("sigmoid"), ArgumentError, "shape must be one of tanh, cubic, arctan, got 'sigmoid'"),
        (lambda: BitCrush(0), ArgumentError, "bits must be a whole number >= 1, got 0"),
        (lambda: BitCrush(7.5), ArgumentTypeError, "bits must be a whole number >= 1, got 7.5"),
        (lambda: WaveShaper([1.0]), ArgumentError, r"table must have the shape \(n >= 2,\), got \(1,\)"),
        (lambda: Distortion("loud"), ArgumentError, "drive_db must be a number in dB, got 'loud'"),
    ],
)
def test_misuse_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
