"""Biquads against the cookbook's formulas, written out here as the cookbook has them."""

import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from torchfx.design import biquad, parametric_eq
from torchfx.design.biquad import BIQUADS
from torchfx.errors import ArgumentError

FS = 48_000


def cookbook(f0, q, gain_db, fs, btype, slope=None):
    w0, big = 2 * math.pi * f0 / fs, 10 ** (gain_db / 40)
    c, alpha = math.cos(w0), math.sin(w0) / (2 * q)
    if slope is not None:
        alpha = math.sin(w0) / 2 * math.sqrt((big + 1 / big) * (1 / slope - 1) + 2)
    s = 2 * math.sqrt(big) * alpha
    b, a = {
        "lowpass": (((1 - c) / 2, 1 - c, (1 - c) / 2), (1 + alpha, -2 * c, 1 - alpha)),
        "highpass": (((1 + c) / 2, -(1 + c), (1 + c) / 2), (1 + alpha, -2 * c, 1 - alpha)),
        "bandpass": ((alpha, 0, -alpha), (1 + alpha, -2 * c, 1 - alpha)),
        "bandpass_skirt": ((math.sin(w0) / 2, 0, -math.sin(w0) / 2), (1 + alpha, -2 * c, 1 - alpha)),
        "notch": ((1, -2 * c, 1), (1 + alpha, -2 * c, 1 - alpha)),
        "allpass": ((1 - alpha, -2 * c, 1 + alpha), (1 + alpha, -2 * c, 1 - alpha)),
        "peaking": ((1 + alpha * big, -2 * c, 1 - alpha * big), (1 + alpha / big, -2 * c, 1 - alpha / big)),
        "lowshelf": (
            (
                big * ((big + 1) - (big - 1) * c + s),
                2 * big * ((big - 1) - (big + 1) * c),
                big * ((big + 1) - (big - 1) * c - s),
            ),
            ((big + 1) + (big - 1) * c + s, -2 * ((big - 1) + (big + 1) * c), (big + 1) + (big - 1) * c - s),
        ),
        "highshelf": (
            (
                big * ((big + 1) + (big - 1) * c + s),
                -2 * big * ((big - 1) + (big + 1) * c),
                big * ((big + 1) + (big - 1) * c - s),
            ),
            ((big + 1) - (big - 1) * c + s, 2 * ((big - 1) - (big + 1) * c), (big + 1) - (big - 1) * c - s),
        ),
    }[btype]
    return np.array([[*b, *a]]) / a[0]


def gain_db(sos, f, fs=FS):
    z = np.exp(-2j * np.pi * np.asarray(f, np.longdouble) / fs)
    rows = np.asarray(sos, np.longdouble)
    h = np.prod([(r[0] + r[1] * z + r[2] * z**2) / (r[3] + r[4] * z + r[5] * z**2) for r in rows], axis=0)
    return 20 * np.log10(np.maximum(abs(h), 1e-30))


SETTINGS = [(20, 0.7, 6.0, 192_000), (1000, 0.1, -12.0, FS), (5000, 3.0, 0.0, 44_100), (0.49 * FS, 8.0, 24.0, FS)]


@pytest.mark.parametrize("btype", BIQUADS)
def test_designs_are_the_cookbooks(btype):
    for f0, q, gain, fs in SETTINGS:
        expected = cookbook(f0, q, gain, fs, btype)
        assert np.allclose(biquad(f0, q, gain, fs, btype), expected, rtol=1e-12, atol=1e-14)
        if "shelf" in btype:
            for slope in (0.3, 1.0):
                sloped = biquad(f0, q, gain, fs, btype, slope)
                assert np.allclose(sloped, cookbook(f0, q, gain, fs, btype, slope), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("btype", BIQUADS)
def test_tensors_give_the_numbers_designs(btype):
    f0, q, gain = (torch.tensor(column, dtype=torch.float64) for column in list(zip(*SETTINGS, strict=True))[:3])
    f0 = f0.clamp(max=20_000)
    together = biquad(f0[:, None], q, gain.float(), FS, btype)
    assert together.shape == (4, 4, 1, 6)
    for i in range(4):
        for j in range(4):
            alone = biquad(float(f0[i]), float(q[j]), float(gain[j]), FS, btype)
            assert torch.allclose(together[i, j], alone, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("cutoff", [20.0, 1000.0, 20_000.0])
@pytest.mark.parametrize("gain", [6.0, -30.0])
def test_gains_are_what_is_asked_for(cutoff, gain):
    """To 1e-9 dB; at 20 Hz the rounding of the coefficients alone moves 0 Hz by 1e-8 dB."""
    bound = 1e-9 if cutoff > 20 else 1e-8
    at = [0, cutoff, FS / 2]
    for q in (0.3, 5.0):
        assert gain_db(biquad(cutoff, q, gain, FS, "peaking"), at) == pytest.approx([0, gain, 0], abs=bound)
        low, high = (gain_db(biquad(cutoff, q, gain, FS, f"{side}shelf"), at) for side in ("low", "high"))
        assert low == pytest.approx([gain, gain / 2, 0], abs=bound)
        assert high == pytest.approx([0, gain / 2, gain], abs=bound)
        resonance = 20 * math.log10(q)
        found = {each: gain_db(biquad(cutoff, q, gain, FS, each), at) for each in BIQUADS[:6]}
        assert found["lowpass"][:2] == pytest.approx([0, resonance], abs=bound)
        assert found["highpass"][1:] == pytest.approx([resonance, 0], abs=bound)
        assert found["bandpass"][1] == pytest.approx(0, abs=bound)
        assert found["bandpass_skirt"][1] == pytest.approx(resonance, abs=bound)
        assert found["notch"][[0, 2]] == pytest.approx([0, 0], abs=bound)
        assert found["notch"][1] < -180
        assert found["allpass"] == pytest.approx([0, 0, 0], abs=bound)
        assert max(found["lowpass"][2], found["highpass"][0]) < -250


def test_a_shelf_of_slope_1_is_the_steepest_monotonic_one():
    f = np.geomspace(10, 23_000, 500)
    steep, rounded = (gain_db(biquad(1000, 1.0, 12.0, FS, "highshelf", slope), f) for slope in (1.0, 0.4))
    assert (np.diff(steep) > 0).all()
    assert np.diff(rounded).max() < np.diff(steep).max()
    assert (np.diff(gain_db(biquad(1000, 0.8, 12.0, FS, "highshelf"), f)) < 0).any()


MANY = [pytest.param(each, marks=pytest.mark.many) for each in BIQUADS if each not in ("peaking", "highshelf")]


@pytest.mark.parametrize("btype", ["peaking", "highshelf", *MANY])
def test_gradients_of_both_orders(btype):
    values = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in ([900.0, 9000.0], 0.9, [[5.0], [-7.0]])]
    slope = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    shelf = btype.endswith("shelf")

    def design(cutoff, q, gain, slope):
        return biquad(cutoff * FS, q, gain, FS, btype, slope if shelf else None)

    values[0] = (values[0].detach() / FS).requires_grad_()
    assert gradcheck(design, (*values, slope), check_forward_ad=True)
    assert gradgradcheck(design, (*values, slope))


def test_an_equaliser_is_its_bands_in_a_row():
    cutoffs, qs, gains = [80, 1000, 8000], [0.7, 2.0, 0.5], [3, -6, 2]
    types = ["lowshelf", "peaking", "highshelf"]
    rows = [biquad(*row, FS, each) for *row, each in zip(cutoffs, qs, gains, types, strict=True)]
    eq = parametric_eq(cutoffs, qs, gains, FS, types)
    assert torch.equal(eq, torch.cat(rows))
    for btype in (types, "peaking"):
        expected = parametric_eq(cutoffs, qs, gains, FS, btype)
        tensors = parametric_eq(cutoffs, torch.tensor(qs, dtype=torch.float64), torch.tensor(gains), FS, btype)
        assert torch.allclose(tensors, expected, rtol=1e-14, atol=0)
    assert torch.equal(
        parametric_eq(1000, [0.5, 1], 3, FS), parametric_eq([1000, 1000], [0.5, 1], [3], FS, ["peaking"])
    )
    one_for_all = parametric_eq(torch.tensor([[500.0], [900.0]]), torch.tensor(1.0, requires_grad=True), [3, 6], FS)
    assert one_for_all.shape == (2, 2, 6)
    assert torch.allclose(one_for_all[1], parametric_eq(900, 1, [3, 6], FS))
    assert parametric_eq(torch.tensor(500.0, requires_grad=True), 1, 3, FS).shape == (1, 6)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: biquad(30_000, 1, 0, FS, "notch"), ArgumentError, r"\(0, fs/2\) = \(0, 24000\) Hz, got 30000"),
        (lambda: biquad(1000, 0, 0, FS, "notch"), ArgumentError, r"q must lie in \[0.001, 1000000\], got 0"),
        (lambda: biquad(1000, 1, 300, FS, "peaking"), ArgumentError, r"gain_db must lie in \[-200, 200\] dB, got 300"),
        (lambda: biquad(1000, 1, 3, FS, "lowshelf", 1.5), ArgumentError, r"slope must lie in \(0, 1\], got 1.5"),
        (lambda: biquad(1000, 1, 3, FS, "shelf"), ArgumentError, "btype must be one of lowpass, .*, got 'shelf'"),
        (lambda: biquad(1000, 1, 3, 0, "notch"), ArgumentError, r"fs must lie in \(0, inf\) Hz, got 0"),
        (lambda: biquad("1x", 1, 3, FS, "notch"), ArgumentError, "cutoff must be a number in Hz or kHz, got '1x'"),
        (
            lambda: biquad(1e-9, 1e6, 3, FS, "notch"),
            ArgumentError,
            "cutoff 1e-09 Hz and a damping of 1e-06 at .* float64 cannot hold",
        ),
        (
            lambda: biquad(torch.tensor([100.0, -1.0]), 1, 3, FS, "notch"),
            ArgumentError,
            r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got -1",
        ),
        (
            lambda: parametric_eq([100, 200], [1, 2, 3], 0, FS),
            ArgumentError,
            "one value or one for each band, got 2 of cutoff, 3 of q",
        ),
        (
            lambda: biquad(torch.ones(2), torch.ones(3), 0, FS, "notch"),
            ArgumentError,
            r"leading dimensions must broadcast with each other, got \(2,\) of cutoff, \(3,\) of q",
        ),
        (
            lambda: parametric_eq(torch.ones(2, 4), torch.ones(3, 4), 0, FS),
            ArgumentError,
            r"got \(2, 4\) of cutoff, \(3, 4\) of q",
        ),
        (lambda: parametric_eq(100, [], 0, FS), ArgumentError, "one for each band, got 0 of q"),
        (lambda: parametric_eq([100, 200], 1, 0, FS, ["notch"] * 3), ArgumentError, "got 2 of cutoff, 3 of btype"),
        (lambda: parametric_eq([100, 0], 1, 0, FS), ArgumentError, "cutoff must lie in .* got 0"),
    ],
)
def test_bad_arguments_raise(made, error, message):
    with pytest.raises(error, match=message):
        made()
