"""The filters of coloured noise: their slope, their power, and noise that is the same from its first sample on."""

import numpy as np
import pytest
import torch
from scipy import linalg, signal

from torchfx.design.colored_noise import COLORS, color_sections, color_start

SLOPES = {"pink": 1, "brown": 2}


@pytest.mark.parametrize("color", SLOPES)
def test_the_response_falls_as_the_colour_says(color):
    f = np.geomspace(1e-6, 0.5, 10_000)
    _, h = signal.sosfreqz(color_sections(color).numpy(), 2 * np.pi * f)
    rest = 20 * np.log10(np.abs(h)) + 10 * SLOPES[color] * np.log10(f)
    rest -= np.median(rest[f > 1e-3])
    assert np.abs(rest[f > 4e-4]).max() < 0.3
    assert np.abs(rest[f > 1e-3]).max() < 0.15
    assert -3.1 < rest[f > 1e-4][0] < -0.5
    assert np.ptp(20 * np.log10(np.abs(h[f < 1e-5]))) < 0.1


@pytest.mark.parametrize("color", COLORS)
def test_noise_is_stationary_from_its_first_sample(color):
    """Samples are a matrix times independent numbers: their covariance is the response's autocorrelation."""
    sos, start, count, time = color_sections(color).numpy(), color_start(color).numpy(), COLORS[color], 50
    if color == "white":
        assert sos.shape == (0, 6)
        assert start.shape == (0, 0)
        return
    states = np.concatenate([start.T, np.zeros((time, 2 * count))]).reshape(-1, count, 2).swapaxes(0, 1)
    y, _ = signal.sosfilt(sos, np.eye(2 * count + time, time, -2 * count), zi=states)
    response = signal.sosfilt(sos, np.eye(1, 1 << 17)[0])
    expected = [response[lag:] @ response[: len(response) - lag] for lag in range(time)]
    assert np.abs(y.T @ y - linalg.toeplitz(expected)).max() < 1e-6
    assert expected[0] == pytest.approx(1, abs=1e-6)


def test_a_traced_program_calls_the_design():
    compiled = torch.compile(lambda x: x @ color_start("pink"), backend="eager", fullgraph=True)
    x = torch.ones(10, dtype=torch.float64)
    assert torch.equal(compiled(x), x @ color_start("pink"))
