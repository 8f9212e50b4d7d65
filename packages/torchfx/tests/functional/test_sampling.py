"""decimate and medfilt against SciPy's in float64; intervals of silence against a search sample by sample."""

import warnings

import numpy as np
import pytest
import torch
from scipy import signal

from oracle import FLOAT32_BOUND, deviation
from torchfx import functional as F
from torchfx.errors import ArgumentError, ArgumentTypeError

SYSTEMS = [
    ("iir", None),
    ("iir", 3),
    ("fir", None),
    ("fir", 9),
    ("fir", 10),
    (signal.dlti([0.1, 0.2, 0.3], [2.0]), None),
    (signal.dlti(*signal.butter(2, 0.2)), None),
    (signal.dlti(*signal.butter(1, 0.2)), None),
]


@pytest.mark.parametrize("zero_phase", [True, False])
@pytest.mark.parametrize(("ftype", "n"), SYSTEMS)
@pytest.mark.parametrize(("q", "time"), [(2, 1025), (3, 60), (13, 1024), (4, 28)])
def test_decimate_is_scipys(rng, q, time, ftype, n, zero_phase):
    x = rng.standard_normal((17, 2, time))
    expected = signal.decimate(x, q, n, ftype, zero_phase=zero_phase)
    y = F.decimate(torch.from_numpy(x), q, n, ftype, zero_phase=zero_phase)
    assert y.shape == expected.shape
    assert deviation(y, expected) < 1e-12
    turned = torch.from_numpy(x).movedim(-1, 0)[:, ::3]
    assert deviation(F.decimate(turned, q, n, ftype, 0, zero_phase).movedim(0, -1), expected[::3]) < 1e-12
    exact = signal.decimate(np.float32(x).astype(float), q, n, ftype, zero_phase=zero_phase)
    assert deviation(F.decimate(torch.from_numpy(x).float(), q, n, ftype, -1, zero_phase), exact) < FLOAT32_BOUND
    assert F.decimate(torch.zeros(0, 2, time), q, n, ftype).shape == (0, 2, -(-time // q))


def test_decimate_of_one_sample():
    one = torch.tensor([[2.0]], dtype=torch.float64)
    assert deviation(F.decimate(one, 3, ftype="fir"), signal.decimate(one.numpy(), 3, ftype="fir")) < 1e-15
    assert deviation(F.decimate(one, 3, zero_phase=False), signal.decimate(one.numpy(), 3, zero_phase=False)) < 1e-14
    with pytest.raises(ArgumentError, match="x must be longer than padlen = 27 samples, got 1"):
        F.decimate(one, 3)


@pytest.mark.parametrize(
    ("shape", "kernel"),
    [
        ((1,), 3),
        ((1025,), None),
        ((1025,), 9),
        ((17, 200), (1, 5)),
        ((17, 50), 3),
        ((2, 3, 41), (1, 1, 101)),
        ((2, 5, 4), (3, 5, 1)),
        ((5, 4), 1),
    ],
)
def test_medfilt_is_scipys(rng, shape, kernel):
    x = rng.standard_normal(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the kernel is wider than the signal
        expected = signal.medfilt(x, kernel)
    assert np.array_equal(F.medfilt(torch.from_numpy(x), kernel), expected)
    spread = torch.from_numpy(np.repeat(x, 2, axis=-1))[..., ::2]
    assert np.array_equal(F.medfilt(spread, kernel), expected)
    assert np.array_equal(F.medfilt(torch.from_numpy(x).float(), kernel), expected.astype(np.float32))


def test_medfilt_works_in_pieces(rng, monkeypatch):
    x = torch.from_numpy(rng.standard_normal((7, 30)))
    whole = F.medfilt(x, (3, 5))
    monkeypatch.setattr("torchfx.functional.sampling.CHUNK", 1000)
    assert torch.equal(F.medfilt(x, (3, 5)), whole)
    assert F.medfilt(x[:0], 3).shape == (0, 30)


def test_both_pass_gradients(rng):
    x = torch.from_numpy(rng.standard_normal((2, 30))).requires_grad_()
    for call in (
        lambda x: F.medfilt(x, (1, 3)),
        lambda x: F.decimate(x, 3),
        lambda x: F.decimate(x, 3, ftype="fir", zero_phase=False),
    ):
        assert torch.autograd.gradcheck(call, (x,))


# --- silence ----------------------------------------------------------------------------------------------------------


def searched(loud, least, keep):
    """Intervals, found by walking from sample to sample."""
    found, quiet = [], least
    for n, here in enumerate(loud):
        if not here:
            quiet += 1
            continue
        if quiet >= least:
            found.append([n, n + 1])
        found[-1][1], quiet = n + 1, 0
    wide = []
    for i, (start, end) in enumerate(found):
        low = 0 if i == 0 else (found[i - 1][1] + start) // 2
        high = len(loud) if i == len(found) - 1 else (end + found[i + 1][0]) // 2
        wide.append((max(low, start - keep), min(high, end + keep)))
    return wide


@pytest.mark.parametrize("channels", [0, 1, 17])
@pytest.mark.parametrize("time", [1, 2, 1025])
@pytest.mark.parametrize(("least", "keep"), [(1, 0), (3, 1), (40, 15), (2000, 9)])
def test_loud_intervals_are_those_a_walk_finds(rng, channels, time, least, keep):
    for share in (0.0, 0.02, 0.5, 1.0):
        x = np.where(rng.random((channels or 1, time)) < share, 0.2, 0.001) * rng.choice([-1, 1], (channels or 1, time))
        given = torch.from_numpy(x if channels else x[0])
        expected = searched((np.abs(x) > 0.1).any(0), least, keep)
        assert F.loud_intervals(given, -20.0, least, keep) == expected
        spread = torch.stack([given, given], dim=-1)[..., 0].float()
        assert F.loud_intervals(spread, -20.0, least, keep) == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.decimate(x, 0), "q must be a whole number >= 1, got 0"),
        (lambda x: F.decimate(x, 1, ftype="fir"), "q must be a whole number >= 2 for an FIR filter, got 1"),
        (lambda x: F.decimate(x, 2, ftype="box"), "ftype must be one of iir, fir, or a scipy.signal.dlti, got 'box'"),
        (lambda x: F.decimate(x, 2, ftype=3), "ftype must be one of iir, fir, or a scipy.signal.dlti, got 3"),
        (lambda x: F.decimate(x, 2, 0), "n must be a whole number >= 1, got 0"),
        (lambda x: F.medfilt(x, 4), "kernel_size must be odd, for 2 dimensions, got 4"),
        (lambda x: F.medfilt(x, (1, 1, 3)), "kernel_size must be odd, for 2 dimensions, got"),
        (lambda x: F.medfilt(x, -1), "kernel_size must be a whole number >= 1, got -1"),
        (
            lambda x: F.loud_intervals(x[None]),
            r"x must have the shape \(time,\) or \(channels, time\), got \(1, 3, 50\)",
        ),
        (lambda x: F.loud_intervals(x, least=0), "least must be a whole number >= 1, got 0"),
        (lambda x: F.loud_intervals(x, keep=-1), "keep must be a whole number >= 0, got -1"),
        (lambda x: F.loud_intervals(x, "loud"), "silence_db must be"),
    ],
)
def test_misuse_is_said(call, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        call(torch.zeros(3, 50))
