"""Classical designs against SciPy's and against the physics behind them."""

import numpy as np
import pytest
import torch
from scipy import signal
from torch.autograd import gradcheck, gradgradcheck

from torchfx.design import bessel, butterworth, chebyshev1, chebyshev2, elliptic
from torchfx.design.iir import BAND_TYPES
from torchfx.errors import ArgumentError, ArgumentTypeError

FAMILIES = {
    "butterworth": (butterworth, lambda n, e, b, fs: signal.butter(n, e, b, fs=fs, output="sos")),
    "chebyshev1": (
        lambda c, n, fs, b: chebyshev1(c, n, 0.3, fs, b),
        lambda n, e, b, fs: signal.cheby1(n, 0.3, e, b, fs=fs, output="sos"),
    ),
    "chebyshev2": (
        lambda c, n, fs, b: chebyshev2(c, n, 50, fs, b),
        lambda n, e, b, fs: signal.cheby2(n, 50, e, b, fs=fs, output="sos"),
    ),
    "elliptic": (
        lambda c, n, fs, b: elliptic(c, n, 0.3, 50, fs, b),
        lambda n, e, b, fs: signal.ellip(n, 0.3, 50, e, b, fs=fs, output="sos"),
    ),
    "bessel": (bessel, lambda n, e, b, fs: signal.bessel(n, e, b, fs=fs, output="sos")),
}
"""Each family's design and SciPy's, with the same levels."""

WIDE = np.longdouble
PI = 4 * np.arctan(WIDE(1))


def response(sos, w):
    """Return H at w (rad/sample) in long double, and what rounded coefficients may move it by."""
    z = np.exp(-1j * np.asarray(w, WIDE))
    h, spread = np.ones_like(z), np.zeros(len(z), WIDE)
    for b0, b1, b2, a0, a1, a2 in np.asarray(sos, WIDE):
        b, a = b0 + b1 * z + b2 * z**2, a0 + a1 * z + a2 * z**2
        h = h * b / a
        spread += 4 * (abs(b0) + abs(b1) + abs(b2)) / np.maximum(abs(b), 1e-300) + 16 / abs(a)
    return h, np.finfo(float).eps * spread * abs(h) + 1e-12


def frequencies(edges, fs):
    """Return frequencies (rad/sample) over all decades, and many around the edges."""
    near = [np.linspace(0.97 * edge, min(1.03 * edge, 0.5 * fs - 1), 30) for edge in np.atleast_1d(edges)]
    return 2 * PI * np.concatenate([np.geomspace(1, 0.49999 * fs, 150), *near]).astype(WIDE) / fs


def edges_of(btype, rng, fs):
    """Return random edges, by ratio; in wider bands SciPy loses digits of the lower poles."""
    low, high = sorted(float(edge) for edge in np.exp(rng.uniform(np.log(20), np.log(0.49 * fs), 2)))
    high = min(high, 100 * low)
    return (low, high) if btype.startswith("band") else low


def level(sos, f, fs):
    """Return the gain at a frequency (Hz), dB."""
    return 20 * float(np.log10(abs(response(sos, [2 * PI * WIDE(f) / fs])[0][0])))


@pytest.mark.parametrize("family", ["butterworth", "chebyshev1", "bessel"])
@pytest.mark.parametrize("side", ["lowpass", "highpass"])
def test_sections_of_all_pole_filters_are_scipys(family, side):
    ours, scipys = FAMILIES[family]
    for order in range(1, 13):
        for cutoff, fs in ((20.0, 48000), (1000, 44100), (0.45 * 96000, 96000)):
            expected = scipys(order, cutoff, side, fs)
            found = ours(cutoff, order, fs, side).numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15 * (expected != 0).all())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("btype", BAND_TYPES)
@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.many)])
def test_responses_are_scipys(family, btype, rounds, rng):
    ours, scipys = FAMILIES[family]
    for order in [*range(1, 13)] * rounds:
        if (family, btype, order) == ("chebyshev2", "bandstop", 1):
            continue  # SciPy finds its lower pole as the difference of numbers a thousand times as large
        fs = int(rng.choice([8000, 44100, 48000, 96000]))
        edges = edges_of(btype, rng, fs)
        expected = scipys(order, edges, btype, fs)
        found = ours(edges, order, fs, btype).numpy()
        assert len(found) == len(expected)
        (h, bound), (exact, other) = (response(sos, frequencies(edges, fs)) for sos in (found, expected))
        assert (abs(h - exact) <= bound + other).all(), (order, fs, edges)


@pytest.mark.parametrize(
    ("btype", "edges"),
    [
        ("lowpass", 20),
        ("highpass", 47_900),
        ("bandpass", (20, 20.5)),
        ("bandpass", (20, 20_000)),
        ("bandpass", (9000, 47_900)),
        ("bandstop", (20, 200)),
        ("bandstop", (20, 20_000)),
    ],
)
@pytest.mark.parametrize("order", [1, 2, 12])
def test_hard_edges_against_the_definition_in_long_double(btype, edges, order):
    fs, high = 96_000, btype in {"highpass", "bandstop"}
    w = frequencies(edges, fs)
    s, warped = 1j * np.tan(w / 2), [np.tan(PI * WIDE(edge) / fs) for edge in np.atleast_1d(edges)]
    if len(warped) == 2:
        s, warped = (s**2 + warped[0] * warped[1]) / ((warped[1] - warped[0]) * s), [WIDE(1)]
    s = warped[0] / s if high else s / warped[0]
    exact = np.ones_like(s)
    for k in range(1, order + 1):
        angle = PI * (2 * k - 1) / (2 * order)
        exact = exact / (1 - s / (-np.sin(angle) + 1j * np.cos(angle)))
    h, bound = response(butterworth(edges, order, fs, btype), w)
    assert (abs(h - exact) <= bound).all()


@pytest.mark.parametrize("order", [1, 4, 7])
@pytest.mark.parametrize(
    ("family", "at_edges", "even"),
    [
        ("butterworth", 10 * np.log10(0.5), 0),
        ("chebyshev1", -0.3, -0.3),
        ("chebyshev2", -50, 0),
        ("elliptic", -0.3, -0.3),
    ],
)
def test_levels_at_the_edges_and_where_the_filter_passes(family, at_edges, even, order):
    """Even orders of families with ripple in the passband begin in a trough of it."""
    ours, fs, passes = FAMILIES[family][0], 48_000, 0 if order % 2 else even
    low, high = ours(3000, order, fs, "lowpass"), ours(3000, order, fs, "highpass")
    band, stop = ours((300, 3000), order, fs, "bandpass"), ours((300, 3000), order, fs, "bandstop")
    middle = fs / np.pi * np.arctan(np.sqrt(np.tan(np.pi * 300 / fs) * np.tan(np.pi * 3000 / fs)))
    for sos, f in ((low, 0), (high, fs / 2), (band, middle), (stop, 0), (stop, fs / 2)):
        assert level(sos, f, fs) == pytest.approx(passes, abs=1e-9)
    for sos, f in ((low, 3000), (high, 3000), (band, 300), (band, 3000), (stop, 300), (stop, 3000)):
        assert level(sos, f, fs) == pytest.approx(at_edges, abs=1e-8)


@pytest.mark.parametrize("norm", ["phase", "delay", "mag"])
def test_bessel_norms_are_scipys(norm):
    expected = signal.bessel(5, 1000, "lowpass", norm=norm, fs=48000, output="sos")
    np.testing.assert_allclose(bessel(1000, 5, 48000, norm=norm), expected, rtol=1e-12)
    if norm == "mag":
        assert level(expected, 1000, 48000) == pytest.approx(10 * np.log10(0.5), abs=1e-9)


@pytest.mark.parametrize("edges", [(20, 20_000), (100, 110)])
def test_a_band_of_high_order_keeps_the_digits_of_its_signal(edges, rng):
    """Sections pair poles with the zeros next to them: no part of the signal is suppressed on the way."""
    sos = butterworth(edges, 8, 48_000, "bandpass").numpy()
    x = rng.standard_normal(20_000)
    exact = signal.sosfilt(sos.astype(WIDE), x.astype(WIDE))
    assert abs(signal.sosfilt(sos, x) - exact).max() < 1e-11 * abs(exact).max()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("btype", BAND_TYPES)
@pytest.mark.parametrize("order", [1, 2, 5])
def test_tensors_give_a_filter_for_each_of_their_values(family, btype, order):
    ours, band = FAMILIES[family][0], btype.startswith("band")
    cutoff = torch.tensor([[20.0, 300.0], [700.0, 9000.0], [2000.0, 23_000.0]], dtype=torch.float64)
    cutoff = cutoff if band else cutoff.reshape(2, 3)
    found = ours(cutoff, order, 48_000, btype)
    rows = found.reshape(-1, *found.shape[-2:])
    for row, edges in zip(rows, cutoff.reshape(-1, 2) if band else cutoff.reshape(-1), strict=True):
        number = ours(tuple(edges.tolist()) if band else float(edges), order, 48_000, btype)
        np.testing.assert_allclose(row, number, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("btype", ["lowpass", "bandpass", "bandstop"])
@pytest.mark.parametrize("order", [3, pytest.param(4, marks=pytest.mark.many)])
def test_gradients_of_first_and_second_order(family, btype, order):
    cutoff = torch.tensor([2000.0, 5000.0], dtype=torch.float64, requires_grad=True)
    cutoff = cutoff if btype.startswith("band") else cutoff.detach()[0].requires_grad_()

    def run(cutoff):
        return FAMILIES[family][0](cutoff, order, 48_000, btype)

    assert gradcheck(run, cutoff, eps=1e-3, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(run, cutoff, eps=1e-3)


@pytest.mark.parametrize(
    ("cutoff", "message"),
    [
        (0, r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 0"),
        (-5, "got -5"),
        (24000, r"\(0, 24000\) Hz, got 24000"),
        (30000, r"\(0, 24000\) Hz, got 30000"),
        (float("nan"), "cutoff must be finite, got nan Hz"),
        (float("inf"), "cutoff must be finite, got inf Hz"),
        ((300, 3400), r"cutoff must be one frequency for a lowpass, got \[300, 3400\]"),
    ],
)
def test_bad_cutoffs_raise(cutoff, message):
    with pytest.raises(ArgumentError, match=message):
        butterworth(cutoff, 2, 48000, "lowpass")
    with pytest.raises(ArgumentError, match=message):
        chebyshev1(cutoff, 2, 0.5, 48000, "lowpass")


@pytest.mark.parametrize(
    ("cutoff", "message"),
    [
        ((3400, 300), r"cutoff must be one or more ascending frequencies in Hz, got \[3400, 300\]"),
        ((300, 24000), r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 24000"),
        (1000, "cutoff must be a pair of frequencies for a bandpass, got 1000"),
        ((1, 2, 3), r"cutoff must be a pair of frequencies for a bandpass, got \[1, 2, 3\]"),
        (torch.tensor([1.0, 2.0, 3.0]), r"cutoff must be a tensor \(..., 2\) for a bandpass, got "),
        (torch.tensor([[3.0, 5.0], [4.0, 2.0]]), "cutoff must hold pairs of ascending frequencies in its last dim"),
    ],
)
def test_bad_bands_raise(cutoff, message):
    with pytest.raises(ArgumentError, match=message):
        butterworth(cutoff, 2, 48000, "bandpass")


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (0, ArgumentError),
        (-1, ArgumentError),
        (2.5, ArgumentTypeError),
        (True, ArgumentTypeError),
        ("2", ArgumentTypeError),
    ],
)
def test_bad_orders_raise(order, error):
    for design, _ in FAMILIES.values():
        with pytest.raises(error, match="order must be a whole number >= 1"):
            design(1000, order, 48000, "lowpass")


def test_bad_levels_and_rates_raise():
    with pytest.raises(ArgumentError, match=r"ripple must lie in \(0, 3000\] dB, got 0"):
        chebyshev1(1000, 2, 0, 48000, "lowpass")
    with pytest.raises(ArgumentError, match=r"fs must lie in \(0, inf\) Hz, got -1"):
        butterworth(1000, 2, -1, "lowpass")
    with pytest.raises(ArgumentError, match=r"ripple must lie in \(0, 3000\] dB, got 4000"):
        chebyshev1(1000, 2, 4000, 48000, "lowpass")
    with pytest.raises(ArgumentError, match="ripple cannot be learned here"):
        chebyshev1(1000, 2, torch.tensor(1.0, requires_grad=True), 48000, "lowpass")
    with pytest.raises(ArgumentError, match=r"attenuation must lie in \(0, 3000\] dB, got -1"):
        chebyshev2(1000, 2, -1, 48000, "lowpass")
    with pytest.raises(ArgumentError, match="attenuation must exceed the ripple of 3 dB, got 2"):
        elliptic(1000, 2, 3, 2, 48000, "lowpass")
    with pytest.raises(ArgumentError, match="norm must be one of phase, delay, mag, got 'flat'"):
        bessel(1000, 2, 48000, norm="flat")
    with pytest.raises(ArgumentError, match="order must be a whole number <= 50, got 51"):
        bessel(1000, 51, 48000)
    with pytest.raises(ArgumentTypeError, match="cutoff must be a number in Hz, got array"):
        butterworth(np.array(1j), 2, 48000, "lowpass")
    with pytest.raises(ArgumentError, match="cutoff must be a number in Hz or kHz, got 'low'"):
        butterworth("low", 2, 48000, "lowpass")


def test_other_types_of_band_raise():
    for btype in ("high", "band", None):
        with pytest.raises(ArgumentError, match=f"btype must be one of lowpass, .*, bandstop, got {btype!r}"):
            butterworth(torch.tensor(1000.0, requires_grad=True), 2, 48000, btype)


@pytest.mark.parametrize(
    ("cutoff", "order", "btype", "advice"),
    [
        (1e-12, 4, "lowpass", "cutoff 1e-12 Hz and order 4 .* float64 cannot hold; raise the cutoff"),
        (95_999.99999999999, 4, "lowpass", "float64 cannot hold; lower the cutoff"),
        ((1e-9, 2e-9), 2, "bandpass", "cutoff 1e-09 Hz and 2e-09 Hz and order 2"),
        (20, 1000, "lowpass", "or lower the order"),
    ],
)
def test_a_filter_float64_cannot_hold_raises(cutoff, order, btype, advice):
    with pytest.raises(ArgumentError, match=advice):
        butterworth(cutoff, order, 192000, btype)
