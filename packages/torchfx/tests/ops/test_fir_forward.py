"""`torchfx_ext::fir_forward`, native and reference, against SciPy in long double."""

from functools import lru_cache

import numpy as np
import pytest
import torch
from scipy import signal

from operators import forms
from oracle import LENGTHS, bound, deviation, exact_fir
from torchfx import _ops
from torchfx.errors import ArgumentError, ArgumentTypeError

FORMS = forms("fir_forward")
DTYPES = [torch.float32, torch.float64]


@lru_cache(maxsize=1)
def filtered(taps, dtype):
    """Return taps, and signals with what they are behind them; the forms are tested one after the other."""
    rng = np.random.default_rng(0)
    b = rng.standard_normal(taps)
    shapes = [(channels, length) for length in LENGTHS for channels in (1, 2, 17)]
    signals = [torch.from_numpy(rng.standard_normal(shape)).to(dtype) for shape in shapes]
    return b, [(x, exact_fir(b, x.numpy())) for x in signals]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("taps", [1, 2, 3, 4, 5, 31, 64, 101, 511, 2000])
def test_any_length_and_channels_are_exact(form, taps, dtype):
    b, signals = filtered(taps, dtype)
    for x, expected in signals:
        y, _ = form(x, torch.from_numpy(b))
        assert deviation(y, expected) < bound(dtype), x.shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("taps", "cutoff", "pass_zero"), [(511, 20000, False), (101, 19000, False), (1023, 50, True)])
def test_strong_attenuation_keeps_its_digits(rng, taps, cutoff, pass_zero, dtype):
    """The output lies far below the input, so an error relative to the input would show."""
    b = signal.firwin(taps, cutoff, pass_zero=pass_zero, fs=44100)
    smooth = np.cumsum(rng.standard_normal((2, 30_000)), axis=-1) if not pass_zero else rng.standard_normal((2, 30_000))
    x = torch.from_numpy(signal.windows.tukey(30_000) * smooth).to(dtype)
    y, _ = _ops.fir_forward(x, torch.from_numpy(b))
    assert deviation(y, exact_fir(b, x.numpy())) < bound(dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("taps", [1, 2, 65, 700])
@pytest.mark.parametrize("length", LENGTHS)
def test_state_goes_in_and_out_as_in_scipy(rng, form, taps, length):
    b, x = rng.standard_normal(taps), rng.standard_normal((3, length))
    zi = rng.standard_normal((3, taps - 1))
    y, state = form(torch.from_numpy(x), torch.from_numpy(b), torch.from_numpy(zi))
    exact, after = exact_fir(b, x, zi)
    assert deviation(y, exact) < 1e-12
    assert state.shape == (3, taps - 1)
    if taps > 1:
        assert deviation(state, after) < 1e-12


def test_long_impulse_response(rng):
    b = rng.standard_normal(60_000) * np.exp(-np.arange(60_000) / 10_000)
    x = rng.standard_normal((2, 50_000))
    y, _ = _ops.fir_forward(torch.from_numpy(x), torch.from_numpy(b))
    assert deviation(y, signal.fftconvolve(x, b[None], axes=-1)[:, :50_000]) < 1e-12


@pytest.mark.parametrize("taps", [31, 511])
def test_strided_views(rng, taps):
    b = rng.standard_normal(taps)
    x = torch.from_numpy(rng.standard_normal((4, 3000, 6)))
    for view in (x[:, :, 0], x[:, ::3, 2], x.movedim(1, -1), x[1].T, x[0, :, 5], x[:2, 7:, :3].movedim(1, -1)):
        y, _ = _ops.fir_forward(view, torch.from_numpy(b))
        assert deviation(y, exact_fir(b, view.numpy())) < 1e-12


@pytest.mark.parametrize("taps", [31, 511])
def test_nan_spreads_to_what_follows_in_its_channel_only(rng, taps):
    b = torch.from_numpy(rng.standard_normal(taps))
    x = torch.from_numpy(rng.standard_normal((3, 8000)))
    clean, _ = _ops.fir_forward(x, b)
    x[1, 4000] = float("nan")
    y, _ = _ops.fir_forward(x, b)
    assert torch.allclose(y[[0, 2]], clean[[0, 2]], atol=1e-10)
    assert torch.allclose(y[1, :4000], clean[1, :4000], atol=1e-10)
    assert y[1, 4000 : 4000 + taps].isnan().all()
    assert torch.allclose(y[1, 4000 + taps :], clean[1, 4000 + taps :], atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("taps", "state", "error", "message"),
    [
        (
            torch.tensor([1.0, float("nan")]).double(),
            None,
            ArgumentError,
            r"taps must be finite, got nan at index \[1\]",
        ),
        (torch.zeros(0).double(), None, ArgumentError, r"shape \(..., n >= 1\), got \(0,\)"),
        (torch.zeros(5, 2).double(), None, ArgumentError, r"broadcast with the signal's \(2,\), got \(5,\)"),
        (torch.zeros(3), None, ArgumentTypeError, "taps must be float64"),
        (torch.zeros(3).double(), torch.zeros(2, 3).double(), ArgumentError, r"state must have the shape \(2, 2\)"),
    ],
)
def test_bad_arguments_raise(form, taps, state, error, message):
    with pytest.raises(error, match=message):
        form(torch.zeros(2, 10), taps, state)
