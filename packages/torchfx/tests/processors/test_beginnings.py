"""Every dynamics processor with a threshold begins as if silence had come before, in whole signals and in blocks."""

import math

import pytest
import torch

from processors.cases import FS, drawn, streams
from torchfx.catalogue import available
from torchfx.effect import Expander, NoiseGate
from torchfx.plan import plan_of
from torchfx.realtime import Stream
from torchfx.realtime.engine import LiveProgram

DYNAMICS = {
    name: entry
    for name, entry in available().items()
    if streams(entry) and any(each.name == "threshold_db" for each in entry.declarations)
}

OPENING = [name for name, entry in DYNAMICS.items() if any(each.name == "range_db" for each in entry.declarations)]
"""Those that are quiet until something loud comes."""


def low_noise(db, seconds=0.5):
    """Return noise of which no sample is louder than so many dB."""
    x = torch.rand(1, round(seconds * FS), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return 10 ** (db / 20) * (2 * x - 1)


def loudness_db(y):
    return 10 * math.log10(float(y.square().mean()) + 1e-40)


def test_the_dynamics_processors_are_found():
    assert {"noisegate", "expander", "compressor", "limiter", "multibandcompressor", "deesser"} <= set(DYNAMICS)
    assert {"noisegate", "expander"} <= set(OPENING)


@pytest.mark.parametrize("in_blocks", [False, True], ids=["whole", "blocks"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DYNAMICS)
def test_noise_below_the_threshold_is_no_louder_where_the_signal_begins(name, seed, in_blocks):
    module = drawn(DYNAMICS[name], seed, **({"threshold_db": -20.0}))
    x = low_noise(-60.0)
    y = module(x)
    if in_blocks:
        stream = Stream(module, FS, 1)
        y = torch.cat([stream.process(block) for block in x.split(480, dim=-1)], dim=-1)
        y = y[..., stream.latency_samples :]
    window, settled = FS // 100, y[..., -FS // 10 :]
    for start in range(0, FS // 5, window):
        assert loudness_db(y[..., start : start + window]) <= loudness_db(settled) + 0.5


@pytest.mark.parametrize("name", OPENING)
def test_what_is_loud_at_once_is_heard_as_the_attack_says(name):
    """The gain in dB comes from where silence is, and 1 / e of it is left after the attack."""
    module = DYNAMICS[name].load()(threshold_db=-20.0, attack_ms=5.0, release_ms=50.0, fs=FS)
    x = torch.full((1, FS // 10), 0.5, dtype=torch.float64)
    gain = 20 * torch.log10(module(x)[0] / 0.5)
    times = torch.arange(1, FS // 10 + 1, dtype=torch.float64) / FS
    torch.testing.assert_close(gain, -module.range_db * torch.exp(-times / 0.005), rtol=0, atol=1e-9)


@pytest.mark.parametrize("detector", ["peak", "rms"])
@pytest.mark.parametrize("threshold_db", [-190.0, -40.0])
@pytest.mark.parametrize("ratio", [1.0, 1.5, 10.0, math.inf])
def test_silence_leaves_the_gain_as_it_begins(ratio, threshold_db, detector):
    module = Expander(threshold_db, ratio, knee_db=0.0, range_db=200.0, detector=detector, fs=FS)
    begun = module.init_state((2,), FS, torch.float64)
    _, after = module.step(torch.zeros(2, FS, dtype=torch.float64), begun, FS)
    torch.testing.assert_close(after[0], begun[0], rtol=1e-12, atol=1e-8)


@pytest.mark.parametrize("cls", [Expander, NoiseGate])
def test_a_live_program_begins_closed(cls):
    module = cls(threshold_db=-20.0, fs=FS)
    program = LiveProgram(plan_of(module, FS), 2, 64)
    try:
        assert -module.range_db in {float(value.flatten()[0]) for value in program.state if value.numel()}
    finally:
        program.free()


@pytest.mark.parametrize("cls", [Expander, NoiseGate])
def test_the_gain_at_the_beginning_is_learned_with_the_rest(cls):
    reach = torch.tensor(30.0, dtype=torch.float64, requires_grad=True)
    x = torch.full((1, 400), 0.5, dtype=torch.float64)

    def loss(reach):
        return cls(threshold_db=-20.0, attack_ms=5.0, range_db=reach, fs=FS)(x).square().sum()

    loss(reach).backward()
    with torch.no_grad():
        expected = (loss(reach + 1e-3) - loss(reach - 1e-3)) / 2e-3
    assert float(reach.grad) == pytest.approx(float(expected), rel=1e-5)
    assert float(reach.grad) < 0
