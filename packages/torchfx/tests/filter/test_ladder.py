"""The ladder: SciPy's bilinear transform where it is linear, its circuit's equations where it saturates."""

import numpy as np
import pytest
import torch
from scipy import signal

from oracle import deviation
from torchfx.errors import ArgumentError
from torchfx.filter import Ladder
from torchfx.plan import CausalStep

FS = 48_000


NUMERATORS = {
    "LPF12": [1, 2, 1], "HPF12": [1, 2, 1, 0, 0], "BPF12": [1, 1, 0],
    "LPF24": [1], "HPF24": [1, 0, 0, 0, 0], "BPF24": [1, 0, 0],
}  # fmt: skip
"""Of each mode over (s + 1)^4 + 4 resonance, s in units of the cutoff."""


def loop(x, cutoff, resonance, drive):
    """Four trapezoidal one-poles after u = tanh(drive (x - k y)) / drive, solved by bisection for every sample.

    Return what drives them, and the output.
    """
    share = np.tan(np.pi * cutoff / FS)
    share /= 1 + share

    def stages(s, u):
        states, v = [], u
        for each in s:
            change = share * (v - each)
            v = each + change
            states.append(each + 2 * change)
        return states, v

    s, driven, y = [0.0] * 4, [], []
    for sample in x:
        low, high = -1e3, 1e3
        for _ in range(80):
            u = (low + high) / 2
            wanted = np.tanh(drive * (sample - 4 * resonance * stages(s, u)[1])) / drive
            low, high = (u, high) if wanted > u else (low, u)
        s, v = stages(s, u)
        driven.append(u)
        y.append(v)
    return np.array(driven), np.array(y)


@pytest.mark.parametrize("mode", NUMERATORS)
@pytest.mark.parametrize("cutoff", [20.0, 1000.0, 20_000.0])
@pytest.mark.parametrize("resonance", [0.0, 0.25, 0.95])
def test_without_drive_it_is_the_bilinear_transform(rng, cutoff, resonance, mode):
    edge = 2 * FS * np.tan(np.pi * cutoff / FS)
    poles = edge * ((4 * resonance) ** 0.25 * np.exp(1j * np.pi * np.array([1, 3, 5, 7]) / 4) - 1)
    zeros = edge * np.roots(NUMERATORS[mode])
    sos = signal.zpk2sos(*signal.bilinear_zpk(zeros, poles, edge ** (4 - len(zeros)), FS))
    x = rng.standard_normal((2, 4000))
    module = Ladder(cutoff, resonance, 0, mode=mode, fs=FS)
    y = module(torch.from_numpy(x))
    bound = 1e-9 if cutoff < 100 else 1e-11  # what the coefficients of low sections lose
    assert deviation(y, signal.sosfilt(sos, x)) < bound
    assert deviation(CausalStep(module, FS, "").run(torch.from_numpy(x)), y.numpy()) < bound


@pytest.mark.parametrize(
    ("cutoff", "resonance", "drive"), [(100.0, 0.3, 1.0), (3000.0, 1.0, 4.0), (15_000.0, 0.8, 0.2)]
)
def test_with_drive_it_solves_its_equations(rng, cutoff, resonance, drive):
    x = 5 * rng.standard_normal(300)
    y = Ladder(cutoff, resonance, drive, fs=FS)(torch.from_numpy(x))
    assert deviation(y, loop(x, cutoff, resonance, drive)[1]) < 1e-11
    y32 = Ladder(cutoff, resonance, drive, fs=FS)(torch.from_numpy(x).float())
    assert deviation(y32, loop(x.astype(np.float32).astype(np.float64), cutoff, resonance, drive)[1]) < 2e-7


@pytest.mark.parametrize("mode", NUMERATORS)
def test_a_mode_is_a_filter_of_what_drives_the_stages(rng, mode):
    x = 3 * rng.standard_normal((2, 300))
    driven = np.stack([loop(each, 3000.0, 0.9, 2.0)[0] for each in x])
    edge = 2 * FS * np.tan(np.pi * 3000.0 / FS)
    zeros = edge * np.roots(NUMERATORS[mode])
    wanted = signal.sosfilt(
        signal.zpk2sos(*signal.bilinear_zpk(zeros, [-edge] * 4, edge ** (4 - len(zeros)), FS)), driven
    )
    module = Ladder(3000.0, 0.9, 2.0, mode, fs=FS)
    assert deviation(module(torch.from_numpy(x)), wanted) < 1e-10
    by_hand, after = module.step(torch.from_numpy(x), module.init_state((2,), FS), FS)
    assert deviation(by_hand, wanted) < 1e-10
    fed_back = Ladder(3000.0, 0.9, 2.0, fs=FS)
    _, others = fed_back.step(torch.from_numpy(x), fed_back.init_state((2,), FS), FS)
    assert torch.allclose(after[0], others[0], rtol=1e-9)


def test_at_full_resonance_it_sings_at_its_cutoff():
    x = torch.zeros(FS, dtype=torch.float64)
    x[0] = 1.0
    y = Ladder(1000, resonance=1.0, drive=1.0, fs=FS)(x)
    tail = y[FS // 2 :]
    spectrum = torch.fft.rfft(tail * torch.hann_window(len(tail), dtype=torch.float64)).abs()
    assert abs(int(spectrum.argmax()) * FS / len(tail) - 1000) <= 2
    assert 1e-3 < float(tail.abs().max()) < 2


def test_it_bounds_what_saturates(rng):
    x = torch.from_numpy(1e6 * rng.standard_normal((17, 1025)))
    y = Ladder(500, resonance=0.9, drive=2.0, fs=FS)(x)
    assert float(y.abs().max()) <= 0.5  # the amplifier gives 1 / drive at most, and the poles have no gain


def test_a_linear_ladder_that_would_sing_is_refused():
    with pytest.raises(ArgumentError, match="resonance must stay below 1 where drive is 0, got 1"):
        Ladder(1000, resonance=1.0, drive=0)
    module = Ladder(1000, resonance=1.0)
    with pytest.raises(ArgumentError, match="resonance must stay below 1"):
        module.drive = 0
    with pytest.raises(ArgumentError, match=r"resonance must lie in \[0, 1\], got 1.5"):
        Ladder(1000, resonance=1.5)
