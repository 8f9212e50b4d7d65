"""Spectra and mel bands against formulas in float64, and torch.stft in float64."""

import math

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from torchfx._ops import native
from torchfx.design.mel import cosine_transform, hz_to_mel, linear_filters, mel_filters, mel_to_hz
from torchfx.errors import ArgumentError, SampleRateError
from torchfx.spectral import (
    LFCC,
    MFCC,
    AmplitudeToDB,
    InverseMelScale,
    InverseSpectrogram,
    MelScale,
    MelSpectrogram,
    SpectralCentroid,
    Spectrogram,
)
from torchfx.spectral.framed import window_taps

pytestmark = pytest.mark.filterwarnings("ignore:mel band")
BOUND = {torch.float32: 2e-6, torch.float64: 1e-12}
SIZES = (
    {},
    {"n_fft": 512, "win_length": 400, "hop_length": 160},
    {"n_fft": 1200, "hop_length": 100},
    {"n_fft": 30, "hop_length": 7},
    {"n_fft": 401, "win_length": 300},
    {"n_fft": 98},
    {"n_fft": 4, "hop_length": 1},
    {"center": False},
    {"n_fft": 256, "win_length": 100, "center": False},
    {"pad": 7, "pad_mode": "circular"},
    {"pad": 30, "center": False},
    {"normalized": True, "pad_mode": "constant"},
    {"window": "hamming", "pad_mode": "replicate"},
    {"window": ("kaiser", 8.0), "hop_length": 500},
)


def noise(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def exact_spectra(x, n_fft=400, win_length=None, hop_length=None, pad=0, window="hann", normalized=False, **how):
    """Return complex spectra (..., bins, frames) by torch.stft in float64."""
    length = win_length or n_fft
    taps = torch.from_numpy(signal.get_window(window, length))
    rows = torch.nn.functional.pad(x.double(), (pad, pad)).reshape(-1, x.shape[-1] + 2 * pad)
    if how.get("center", True) and how.get("pad_mode") in {"replicate", "circular"}:
        rows = torch.nn.functional.pad(rows, (n_fft // 2, n_fft // 2), mode=how["pad_mode"])
        how = {"center": False}
    hop = hop_length or length // 2
    found = torch.stft(rows, n_fft, hop, length, taps, return_complex=True, **how)
    found = found / taps.square().sum().sqrt() if normalized else found
    return found.reshape(*x.shape[:-1], *found.shape[-2:])


def error(y, exact):
    """Return the largest deviation, relative to the exact result's peak."""
    assert y.shape == exact.shape
    return float((y - exact).abs().max() / exact.abs().max())


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("power", [2.0, 1.0, 0.7, None])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_spectra_are_those_of_stft_in_float64(sizes, power, dtype):
    x = noise(2, 3, 3001, dtype=dtype)
    exact = exact_spectra(x, **sizes)
    y = Spectrogram(power=power, **sizes)(x)
    assert y.dtype == (dtype if power else torch.complex64 if dtype == torch.float32 else torch.complex128)
    assert error(y, exact if power is None else exact.abs() ** power) < BOUND[dtype]


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("n_fft", [4, 6, 8, 10, 16, 18, 20, 30, 64, 100, 270, 400, 512, 1200, 2048, 3000])
def test_every_size_of_the_native_pass_and_every_instruction_set(n_fft, isa):
    if native.library is None or native.library.torchfx_set_isa(isa.encode()):
        pytest.skip(f"no {isa} here")
    try:
        x = noise(3, 40 * n_fft // 10 + 5 * n_fft)
        y = Spectrogram(n_fft=n_fft, hop_length=max(1, n_fft // 3))(x)
    finally:
        for name in ("baseline", "avx2", "avx512"):
            native.library.torchfx_set_isa(name.encode())
    assert error(y, exact_spectra(x, n_fft=n_fft, hop_length=max(1, n_fft // 3)).abs() ** 2) < 2e-6


def test_strides_and_threads_change_nothing():
    x = noise(5, 30_000)
    melody = MelSpectrogram(n_mels=40, fs=16_000)
    whole = melody(x)
    assert torch.equal(melody(x.T.contiguous().T), whole)
    assert torch.equal(melody(x[1:4, :].clone()), whole[1:4])
    assert torch.equal(melody(torch.stack([x, -x], dim=-1)[..., 0]), whole)
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if threads > 1 else 2)
    try:
        assert torch.equal(melody(x), whole)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("norm", [None, "slaney"])
@pytest.mark.parametrize("scale", ["htk", "slaney", "kaldi"])
def test_mel_filters_are_triangles_of_the_formula(scale, norm):
    n_fft, rate, n_mels, f_min, f_max = 1024, 22_050.0, 40, 50.0, 9000.0

    def to_mel(f):
        if scale == "slaney":
            return 3 * f / 200 if f < 1000 else 15 + 27 * math.log(f / 1000) / math.log(6.4)
        return 1127.0 * math.log(1 + f / 700)

    def to_hz(m):
        if scale == "slaney":
            return 200 * m / 3 if m < 15 else 1000 * 6.4 ** ((m - 15) / 27)
        return 700 * (math.exp(m / 1127.0) - 1)

    low, high = to_mel(f_min), to_mel(f_max)
    corners = [low + (high - low) * i / (n_mels + 1) for i in range(n_mels + 2)]
    expected = np.zeros((n_mels, n_fft // 2 + 1))
    for m in range(n_mels):
        at = corners[m : m + 3] if scale == "kaldi" else [to_hz(each) for each in corners[m : m + 3]]
        for k in range(n_fft // 2 + (scale != "kaldi")):
            f = to_mel(k * rate / n_fft) if scale == "kaldi" else k * rate / n_fft
            side = (f - at[0]) / (at[1] - at[0]) if f <= at[1] else (at[2] - f) / (at[2] - at[1])
            expected[m, k] = max(0.0, side) * (2 / (to_hz(corners[m + 2]) - to_hz(corners[m])) if norm else 1)
    found = mel_filters(n_fft // 2 + 1, rate, n_mels, f_min, f_max, norm or "none", scale)
    # HTK's 2595 log10 and Kaldi's 1127 log are the same scale, rounded otherwise.
    np.testing.assert_allclose(found, expected, atol=1e-4 * expected.max() if scale != "slaney" else 1e-12)


def test_mel_scales_are_inverted():
    f = np.linspace(0, 20_000, 999)
    for scale in ("htk", "slaney"):
        np.testing.assert_allclose(mel_to_hz(hz_to_mel(f, scale), scale), f, atol=1e-8)


@pytest.mark.parametrize("dtype", BOUND)
def test_mel_bands_are_filters_times_powers(dtype):
    x = noise(2, 9000, dtype=dtype)
    for how in ({}, {"norm": "slaney", "mel_scale": "slaney", "f_min": 30.0, "f_max": 7000.0}):
        filters = torch.from_numpy(mel_filters(257, 16_000, 40, **{"norm": "none", **how}))
        exact = filters @ exact_spectra(x, n_fft=512).abs() ** 2
        assert error(MelSpectrogram(n_fft=512, n_mels=40, fs=16_000, **how)(x), exact) < BOUND[dtype]
        chain = Spectrogram(n_fft=512) | MelScale(n_mels=40, n_stft=257, fs=16_000, **how)
        assert error(chain(x), exact) < BOUND[dtype]


def test_levels_have_a_floor_and_a_range():
    x = torch.tensor([[[1.0, 1e-4, 0.0]], [[100.0, 0.0, 1.0]]])
    assert torch.allclose(AmplitudeToDB()(x)[0, 0], torch.tensor([0.0, -40.0, -100.0]))
    assert torch.allclose(AmplitudeToDB("magnitude")(x)[0, 0], torch.tensor([0.0, -80.0, -200.0]))
    assert torch.allclose(AmplitudeToDB(top_db=50)(x)[0, 0], torch.tensor([0.0, -30.0, -30.0]))  # of all channels
    assert torch.allclose(AmplitudeToDB(top_db=50)(x[:, None])[0, 0, 0], torch.tensor([0.0, -40.0, -50.0]))


@pytest.mark.parametrize("logarithm", [False, True])
def test_cepstra_are_cosine_transforms_of_levels(logarithm):
    x = noise(2, 9000)
    powers = exact_spectra(x).abs() ** 2
    for cls, filters, how in (
        (MFCC, mel_filters(201, 16_000, 40), {"n_mfcc": 13, "n_mels": 40, "log_mels": logarithm}),
        (LFCC, linear_filters(201, 16_000, 30), {"n_lfcc": 13, "n_filter": 30, "log_lf": logarithm}),
    ):
        bands = torch.from_numpy(filters) @ powers
        levels = (bands + 1e-6).log() if logarithm else 10 * bands.clamp(min=1e-10).log10()
        levels = levels if logarithm else levels.clamp(min=float(levels.max()) - 80)
        rows = np.array(
            [[math.cos(math.pi * k * (2 * n + 1) / (2 * len(filters))) for n in range(len(filters))] for k in range(13)]
        )
        rows *= math.sqrt(2 / len(filters))
        rows[0] *= math.sqrt(0.5)
        exact = torch.from_numpy(rows) @ levels
        assert error(cls(fs=16_000, **how)(x), exact) < 2e-6
        assert error(cls(fs=16_000, norm="none", **how)(x)[:, 1:], exact[:, 1:] * math.sqrt(2 * len(filters))) < 5e-6


def test_cosine_transform_is_orthogonal():
    rows = cosine_transform(16, 16)
    np.testing.assert_allclose(rows @ rows.T, np.eye(16), atol=1e-14)


def test_centroid_is_the_mean_frequency():
    x = torch.cat([noise(2, 4000), torch.zeros(2, 4000)], dim=-1)
    magnitudes = exact_spectra(x).abs()
    f = torch.linspace(0, 4000, 201, dtype=torch.float64)[:, None]
    exact = (f * magnitudes).sum(-2, keepdim=True) / magnitudes.sum(-2, keepdim=True)
    y = SpectralCentroid(fs=8000)(x)
    assert error(y[..., :20], exact[..., :20]) < 2e-6
    assert (y[..., 30:] == 0).all()


@pytest.mark.parametrize(
    "sizes", [each for each in SIZES if each.get("center", True) and each.get("hop_length", 1) < 500], ids=str
)
def test_the_inverse_gives_the_signal(sizes):
    x = noise(2, 3, 3000, dtype=torch.float64)
    back = InverseSpectrogram(length=3000, **sizes)(Spectrogram(power=None, **sizes)(x))
    assert error(back, x) < 1e-12


def test_inverse_mel_has_the_bands_it_was_given():
    spectra = Spectrogram(n_fft=512)(noise(8000)) + 1
    scale = MelScale(n_mels=20, n_stft=257, fs=16_000)
    bands = scale(spectra)
    again = scale(InverseMelScale(n_mels=20, n_stft=257, fs=16_000)(bands))
    assert error(again, bands) < 0.2  # what would be negative is 0
    smooth = scale.filters(16_000, spectra.double()).T @ torch.rand(20, 5, dtype=torch.float64)
    assert error(InverseMelScale(n_mels=20, n_stft=257, fs=16_000)(scale(smooth)), smooth) < 1e-9


def test_windows_have_scipys_values():
    assert torch.equal(window_taps("hann", 64), torch.from_numpy(signal.get_window("hann", 64)))
    povey = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85
    np.testing.assert_allclose(window_taps("povey", 400), povey, atol=1e-15)


def test_a_sample_that_is_no_number_reaches_its_frames_alone():
    x = noise(2, 8000)
    x[0, 4000] = torch.nan
    for module in (Spectrogram(), MelSpectrogram(n_mels=30, fs=16_000), fx.spectral.LogMel("torchaudio", fs=16_000)):
        hit = module(x).isnan()
        assert not hit[1].any()
        assert hit[0].any(0).nonzero().flatten().tolist() == [20] or hit[0].any(0).sum() == 2


# --- what cannot be -----------------------------------------------------------------------------------------------


def test_bands_without_a_bin_are_named():
    filters = mel_filters(65, 16_000, 60, f_min=1.5)
    names = ", ".join(str(m) for m in range(60) if not filters[m].any())
    assert names.startswith("0, 1, 4, 5")
    with pytest.warns(UserWarning, match=f"mel bands {names} of 60 have no bin among 65 at 16000 Hz"):
        MelSpectrogram(n_fft=128, n_mels=60, f_min=1.5, fs=16_000)(noise(1000))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Spectrogram(win_length=500), "win_length must be <= n_fft = 400, got 500"),
        (lambda: InverseSpectrogram(hop_length=401), "hop_length must be <= win_length = 400"),
        (lambda: fx.spectral.GriffinLim(hop_length=401), "hop_length must be <= win_length = 400"),
        (lambda: MFCC(n_mfcc=50, n_mels=40), "n_mfcc must be <= n_mels = 40, got 50"),
        (lambda: LFCC(n_lfcc=50, n_filter=40), "n_lfcc must be <= n_filter = 40, got 50"),
        (lambda: Spectrogram(power=-1), r"power must lie in \(0, inf\), got -1"),
        (lambda: Spectrogram(window="none such")(noise(4000)), "window must be one that"),
        (lambda: Spectrogram()(noise(200)), "x must have at least 201 samples"),
        (lambda: Spectrogram(center=False)(noise(399)), "x must have at least n_fft = 400 samples"),
        (lambda: Spectrogram(pad_mode="circular")(noise(150)), "x must have at least 200 samples"),
        (
            lambda: MelSpectrogram(f_min=9000, fs=16_000)(noise(4000)),
            r"must ascend within \[0, fs/2\] = \[0, 8000\] Hz",
        ),
        (lambda: MelScale(fs=16_000)(noise(100, 5)), "n_stft = 201 bins, got 100"),
        (lambda: InverseSpectrogram()(noise(201, 5)), "x must be complex"),
        (lambda: InverseSpectrogram()(noise(200, 5) + 0j), "201 bins, got 200"),
        (
            lambda: InverseSpectrogram(window="boxcar", center=False, hop_length=400, win_length=300, n_fft=400),
            "hop_length",
        ),
        (lambda: AmplitudeToDB()(noise(5)), "shape .*bins >= 1, frames >= 1"),
        (lambda: Spectrogram()(noise(3000) + 0j), "x must be real"),
    ],
)
def test_what_cannot_be_is_refused_by_name(make, message):
    with pytest.raises((ArgumentError, fx.ArgumentTypeError), match=message):
        make()


def test_the_rate_has_to_be_known():
    with pytest.raises(SampleRateError, match="MelSpectrogram has no sample rate"):
        MelSpectrogram()(noise(4000))
