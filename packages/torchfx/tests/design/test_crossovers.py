"""Linkwitz-Riley designs: -6 dB where they meet, and bands that add up to an all-pass."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from torchfx.design import crossover, linkwitz_riley
from torchfx.errors import ArgumentError, ArgumentTypeError

W = 2 * np.pi * np.geomspace(1, 24_000, 2000) / 48_000


def response(sos, w=W):
    """Return H of sections (..., sections, 6) at w (rad/sample)."""
    z = np.exp(-1j * np.asarray(w))[:, None]
    rows = np.asarray(sos)[..., None, :, :]
    b, a = (rows[..., i] + rows[..., i + 1] * z + rows[..., i + 2] * z**2 for i in (0, 3))
    return (b / a).prod(-1)


@pytest.mark.parametrize("order", [2, 4, 6, 8, 12])
@pytest.mark.parametrize("cutoff", [100, 3000, 20_000])
def test_the_halves_meet_at_6_db_and_add_up_to_an_all_pass(order, cutoff):
    low, high = (response(linkwitz_riley(cutoff, order, 48_000, side)) for side in ("lowpass", "highpass"))
    sign = -1 if order % 4 else 1
    assert np.allclose(abs(low + sign * high), 1, rtol=0, atol=1e-10)
    for side in ("lowpass", "highpass"):
        at = response(linkwitz_riley(cutoff, order, 48_000, side), [2 * np.pi * cutoff / 48_000])
        assert 20 * np.log10(abs(at)) == pytest.approx(20 * np.log10(0.5), abs=1e-9)


@pytest.mark.parametrize("order", [2, 4, 6, 8])
@pytest.mark.parametrize("cutoffs", [1000, (200, 2000), (150, 1500, 9000), (100, 400, 1600, 6400)])
def test_bands_add_up_to_an_all_pass(order, cutoffs):
    bands = response(crossover(cutoffs, order, 48_000))
    assert len(bands) == np.size(cutoffs) + 1
    assert np.allclose(abs(bands.sum(0)), 1, rtol=0, atol=1e-10)


def test_bands_pass_what_lies_between_their_cutoffs():
    bands = abs(response(crossover((200, 2000), 8, 48_000), 2 * np.pi * np.array([50, 600, 8000]) / 48_000))
    assert (abs(20 * np.log10(bands.diagonal())) < 0.5).all()
    assert (20 * np.log10(bands[~np.eye(3, dtype=bool)]) < -60).all()


def test_cutoffs_can_be_learned():
    cutoffs = torch.tensor([800.0, 5000.0], dtype=torch.float64, requires_grad=True)
    assert torch.allclose(crossover(cutoffs, 4, 48_000), crossover((800, 5000), 4, 48_000), rtol=1e-12, atol=1e-15)
    assert gradcheck(lambda values: crossover(values, 4, 48_000), cutoffs, eps=1e-3)
    batch = crossover(torch.tensor([[800.0, 5000.0], [100.0, 200.0]]), 6, 48_000)
    assert torch.allclose(batch[1], crossover((100, 200), 6, 48_000), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1000, 3, 48_000), ArgumentError, "order must be even for a Linkwitz-Riley filter, got 3"),
        ((1000, 0, 48_000), ArgumentError, "order must be a whole number >= 2, got 0"),
        ((1000, 102, 48_000), ArgumentError, "order must be a whole number <= 100, got 102"),
        ((1000, "4", 48_000), ArgumentTypeError, "order must be a whole number >= 2, got '4'"),
        ((24_000, 4, 48_000), ArgumentError, r"\(0, 24000\) Hz, got 24000"),
        ((1000, 4, 0), ArgumentError, r"fs must lie in \(0, inf\) Hz, got 0"),
    ],
)
def test_bad_arguments_raise(arguments, error, message):
    for design in (linkwitz_riley, crossover):
        with pytest.raises(error, match=message):
            design(*arguments)


def test_bad_sides_and_cutoffs_raise():
    with pytest.raises(ArgumentError, match="btype must be one of lowpass, highpass, got 'bandpass'"):
        linkwitz_riley(1000, 4, 48_000, "bandpass")
    with pytest.raises(ArgumentError, match=r"cutoffs must be one or more ascending .* got \[2000, 200\]"):
        crossover((2000, 200), 4, 48_000)
    with pytest.raises(ArgumentError, match="cutoff must be one frequency for a lowpass"):
        linkwitz_riley((200, 2000), 4, 48_000)
    with pytest.raises(ArgumentError, match="cutoffs must ascend"):
        crossover(torch.tensor([2000.0, 200.0]), 4, 48_000)
