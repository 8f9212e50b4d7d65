"""Harmonic and percussive parts against librosa's definition, by SciPy's median filter in float64."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch.autograd import gradcheck

from torchfx import functional
from torchfx.effect import HarmonicPart, PercussivePart
from torchfx.errors import ArgumentError, ArgumentTypeError


def shares(magnitudes, kernel_size, power, margin):
    """Return the masks of librosa.decompose.hpss, float64, of magnitudes (bins, frames)."""
    harmonic = ndimage.median_filter(magnitudes, size=(1, kernel_size), mode="reflect")
    percussive = ndimage.median_filter(magnitudes, size=(kernel_size, 1), mode="reflect")

    def share(x, other):
        silent = np.maximum(x, other) < np.finfo(np.float32).tiny
        with np.errstate(invalid="ignore"):
            found = x**power / (x**power + other**power)
        return np.where(silent, 0.5 if margin == 1 else 0.0, found)

    return share(harmonic, margin * percussive), share(percussive, margin * harmonic)


def sound(rng, time):
    """Two notes, three clicks and hiss."""
    t = np.arange(time)
    x = np.sin(0.21 * t) + 0.4 * np.sin(0.5 * t + 1) + 0.02 * rng.standard_normal(time)
    x[:: max(1, time // 3)] += 5
    return x


@pytest.mark.parametrize(
    ("kernel_size", "power", "margin"), [(31, 2.0, 1.0), (17, 1.0, 3.0), (1, 0.5, 1.0), (5, 7.5, 1.2)]
)
@pytest.mark.parametrize("shape", [(129, 80), (9, 7), (40, 1), (1, 3)])
def test_shares_are_librosas(rng, shape, kernel_size, power, margin):
    spectra = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    spectra[:, 2:3] *= 20
    spectra[3:5] = 0
    expected = shares(np.abs(spectra), kernel_size, power, margin)
    given = torch.from_numpy(spectra)
    settings = {"kernel_size": kernel_size, "power": power, "margin": margin}
    for dtype, most in ((torch.complex64, 1e-5), (torch.complex128, 1e-12)):
        masks = functional.hpss(given.to(dtype), mask=True, **settings)
        parts = functional.hpss(given.to(dtype), **settings)
        of_magnitudes = functional.hpss(given.to(dtype).abs(), mask=True, **settings)
        for mask, part, plain, truth in zip(masks, parts, of_magnitudes, expected, strict=True):
            assert not mask.is_complex()
            assert float((mask - torch.from_numpy(truth)).abs().max()) < most
            assert torch.equal(plain, mask)
            assert torch.equal(part, mask * given.to(dtype))


def test_leading_dimensions_are_filtered_apart(rng):
    S = torch.from_numpy(rng.uniform(size=(2, 3, 20, 30)))
    together = functional.hpss(S, 7)
    for i, j in np.ndindex(2, 3):
        alone = functional.hpss(S[i, j], 7)
        assert torch.equal(together[0][i, j], alone[0])
        assert torch.equal(together[1][i, j], alone[1])


@pytest.mark.parametrize("time", [1, 300, 511, 512, 5000])
@pytest.mark.parametrize("margin", [1.0, 2.5])
def test_the_parts_of_a_signal_are_librosas(rng, time, margin):
    n, hop, kernel_size = 512, 128, 17
    x = sound(rng, time)
    window = torch.hann_window(n, dtype=torch.float64)
    spectra = torch.stft(torch.from_numpy(x), n, hop, window=window, pad_mode="constant", return_complex=True)
    masks = shares(spectra.abs().numpy(), kernel_size, 2.0, margin)
    for make, mask in zip((HarmonicPart, PercussivePart), masks, strict=True):
        expected = torch.istft(torch.from_numpy(mask) * spectra, n, hop, window=window, length=time)
        for dtype, most in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
            found = make(kernel_size, margin=margin, n_fft=n)(torch.from_numpy(x).to(dtype))
            assert float((found - expected).abs().max()) < most * np.abs(x).max()


def test_both_parts_add_up_to_the_signal_and_a_margin_leaves_something(rng):
    x = torch.from_numpy(sound(rng, 20_000))
    assert torch.allclose(HarmonicPart(n_fft=512)(x) + PercussivePart(n_fft=512)(x), x, atol=1e-12)
    rest = x - HarmonicPart(n_fft=512, margin=4)(x) - PercussivePart(n_fft=512, margin=4)(x)
    assert 0.001 < float(rest.square().sum() / x.square().sum()) < 0.5


def test_gradients_through_the_shares(rng):
    S = torch.from_numpy(rng.uniform(0.1, 1.0, (6, 7))).requires_grad_()
    for power in (0.5, 2.0):
        assert gradcheck(lambda S, power=power: functional.hpss(S, 3, power, margin=1.5), (S,), check_forward_ad=True)
    silent = torch.zeros(6, 7, requires_grad=True)
    for power in (0.5, 2.0):
        harmonic, percussive = functional.hpss(silent, 3, power)
        assert torch.autograd.grad((harmonic + percussive).sum(), silent)[0].tolist() == [[1.0] * 7] * 6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: functional.hpss(torch.ones(4, 4), 4), "kernel_size must be odd, got 4"),
        (lambda: functional.hpss(torch.ones(4, 4), power=0), "power must be > 0, got 0"),
        (lambda: functional.hpss(torch.ones(4, 4), margin=0.5), "margin must be >= 1, got 0.5"),
        (lambda: functional.hpss(torch.ones(4, 4), margin=math.inf), "margin must .*inf"),
        (lambda: functional.hpss(torch.ones(4)), r"S must have the shape .* got \(4,\)"),
        (lambda: functional.hpss(torch.ones(4, 0)), r"S must have the shape .* got \(4, 0\)"),
        (lambda: functional.hpss(torch.ones(4, 4).int()), r"S must be .*got torch\.int32"),
        (lambda: functional.hpss([[1.0]]), "S must be .*got list"),
        (lambda: HarmonicPart(30), "kernel_size must be odd, got 30"),
        (lambda: PercussivePart(n_fft=510), "n_fft must be a multiple of 4, got 510"),
        (lambda: PercussivePart(margin=0.9), "margin must .*got 0.9"),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        make()
