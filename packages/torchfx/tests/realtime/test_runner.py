"""Runners: native programs give what the steps give in Python, and states go from one to the other."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import torchfx as fx
from torchfx.effect import (
    Chorus,
    Compand,
    Compressor,
    Distortion,
    Expander,
    Flanger,
    Gain,
    HardClip,
    Limiter,
    NoiseGate,
    Phaser,
    RingModulation,
    SoftClip,
    TransientShaper,
    Tremolo,
    Vibrato,
    WaveShaper,
)
from torchfx.filter import Ladder
from torchfx.plan import plan_of
from torchfx.realtime.engine import in_full
from torchfx.realtime.runner import Runner

FS = 48_000
CPU = torch.device("cpu")


class Watched(TorchDispatchMode):
    """Under a mode all steps run in Python."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def per_example(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


def dynamics(link: bool) -> list[fx.Processor]:
    high = fx.filter.HiButterworth(150, order=3)
    return [
        Compressor(-30.0, link=link, sidechain=high),
        Compressor(-30.0, link=link, sidechain=fx.FilterChain()),
        Expander(
            -25.0, link=link, sidechain=high | Expander(-20.0, link=not link) | (Gain(2.0) + fx.filter.DCBlocker())
        ),
        NoiseGate(-20.0, link=link, hold_ms=1.3) | Gain(0.5),
        NoiseGate(-20.0, link=link, hold_ms=0.02, sidechain=high),
        NoiseGate(-20.0, link=link, sidechain=NoiseGate(-30.0, link=link)),
        Compand([[-60.0, -60.0], [-30.0, -20.0], [0.0, -6.0]], 5.0, link=link, lookahead_ms=0.3),
        Limiter(-12.0, link=link, true_peak=True),
        fx.filter.LoButterworth(9000) | Limiter(-12.0, link=link, true_peak=True, lookahead_ms=0.0),
    ]


def shapers(link: bool) -> list[fx.Processor]:
    return [
        TransientShaper(9.0, -6.0, link=link) | Ladder(2000, resonance=0.9, drive=2.0),
        HardClip(-12.0) | TransientShaper(-6.0, 3.0, attack_ms=1.0, link=link) | Gain(0.5),
        (Ladder(300, resonance=1.0) + SoftClip("arctan", 12.0)) | SoftClip("cubic", 3.0, oversample=3),
        Distortion(20.0, oversample=2) | WaveShaper([-1.0, 0.3, 0.5, 1.0], oversample=2) | HardClip(-3.0),
    ]


def modulation() -> list[fx.Processor]:
    return [
        Tremolo(7.0, 0.8) | RingModulation(3000.0),
        Chorus() | Phaser(3.0, depth_octaves=2.0),
        Flanger(11.0, mix=0.4) | Vibrato(),
        Phaser(stages=1) | Phaser(stages=24, mix=1.0),
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (17,), (3, 2)], ids=str)
@pytest.mark.parametrize(("size", "time"), [(1, 5), (17, 200), (64, 400), (1000, 1025)])
@pytest.mark.parametrize(
    ("make", "bound"),
    [
        (partial(dynamics, True), 2e-7),
        (partial(dynamics, False), 2e-7),
        (partial(shapers, True), 1e-6),  # PyTorch's curves round in float32
        (partial(shapers, False), 1e-6),
        (modulation, 2e-7),
    ],
)
def test_programs_give_what_their_steps_give(generator, make, bound, size, time, shape, dtype):
    x = torch.randn(*shape, time, generator=generator, dtype=dtype) * torch.linspace(0, 1, time, dtype=dtype)
    for chain in make():
        plan = in_full(plan_of(chain, FS).frozen())
        runner, state = Runner(plan.steps, shape, dtype, CPU), plan.init_state(shape, dtype, CPU)
        assert list(runner._ends.values()) == [len(plan.steps)], chain
        for number, block in enumerate(x.split(size, dim=-1)):
            given = block.repeat_interleave(2, dim=-1)[..., ::2] if number % 2 else block
            if number % 5 == 3:
                with Watched():
                    y = runner.process(given)
            else:
                y = runner.process(given)
            expected, state = plan.step(block, state)
            torch.testing.assert_close(y, expected, rtol=0, atol=bound if dtype is torch.float32 else 1e-13)
        for kept, value in zip(runner.state, state, strict=True):
            torch.testing.assert_close(kept, value, rtol=1e-6, atol=bound / 2)


def test_examples_have_side_chains_and_thresholds_of_their_own(generator):
    x = torch.randn(3, 2, 1025, generator=generator)
    cutoffs, thresholds = [100.0, 1000.0, 5000.0], [-40.0, -30.0, -20.0]
    gate = NoiseGate(per_example(thresholds), sidechain=fx.filter.HiButterworth(per_example(cutoffs), order=2))
    limiter = Limiter(per_example(thresholds), true_peak=True)
    plan = in_full(plan_of(gate | limiter, FS).frozen())
    runner = Runner(plan.steps, (3, 2), x.dtype, CPU)
    assert list(runner._ends.values()) == [len(plan.steps)]
    y = torch.cat([runner.process(block) for block in x.split(100, dim=-1)], dim=-1)
    for i in range(3):
        alone = NoiseGate(thresholds[i], sidechain=fx.filter.HiButterworth(cutoffs[i], order=2))
        own = in_full(plan_of(alone | Limiter(thresholds[i], true_peak=True), FS))
        expected, _ = own.step(x[i], own.init_state((2,), x.dtype, CPU))
        torch.testing.assert_close(y[i], expected, rtol=0, atol=2e-7)


def test_examples_swing_as_they_were_told(generator):
    x, rates = torch.randn(3, 2, 1025, generator=generator), [0.5, 3.0, 20.0]

    def chain(rate: fx.parameters.Value) -> fx.Processor:
        return Tremolo(rate) | Chorus(rate) | Phaser(rate)

    plan = in_full(plan_of(chain(per_example(rates)), FS).frozen())
    runner = Runner(plan.steps, (3, 2), x.dtype, CPU)
    assert list(runner._ends.values()) == [3]
    y = torch.cat([runner.process(block) for block in x.split(100, dim=-1)], dim=-1)
    for i in range(3):
        own = plan_of(chain(rates[i]), FS)
        expected, _ = own.step(x[i], own.init_state((2,), x.dtype, CPU))
        torch.testing.assert_close(y[i], expected, rtol=0, atol=1e-6)


def test_what_is_learned_or_changes_the_shape_runs_in_python():
    cutoff = torch.nn.Parameter(torch.tensor(100.0))
    bands = fx.filter.HiButterworth(per_example([100.0, 200.0]))
    sidechains = (fx.filter.HiButterworth(cutoff), fx.Memoryless(torch.nn.Tanh()), bands)
    learned = [
        Distortion(cutoff), WaveShaper(torch.nn.Parameter(torch.ones(3))), Ladder(cutoff), Ladder(500, drive=cutoff),
        TransientShaper(attack_ms=cutoff), TransientShaper(torch.tensor([1.0, 2.0]), link=False),
    ]  # fmt: skip
    for module in (*(Compressor(sidechain=heard) for heard in sidechains), *learned):
        plan = plan_of(module, FS)
        assert not Runner(plan.steps, (1,), torch.float32, CPU)._running
    rates = per_example([1.0, 2.0])
    for module in (Tremolo(cutoff), Chorus(mix=torch.nn.Parameter(torch.tensor(0.5))), Phaser(cutoff), Chorus(rates)):
        assert not Runner(plan_of(module, FS).steps, (1,), torch.float32, CPU)._running


def test_streams_run_the_step_that_a_subclass_writes():
    class Muted(fx.effect.Limiter):
        def step(self, x, state, rate):
            return torch.zeros_like(x), state

    assert torch.equal(
        fx.realtime.Stream(Muted(lookahead_ms=0.0), 48_000, 1).process(torch.ones(1, 8)), torch.zeros(1, 8)
    )


@pytest.mark.parametrize("sizes", [[60], [1] * 60, [7, 50, 3]])
@pytest.mark.parametrize("true_peak", [False, True])
def test_steps_that_lag_one_behind_the_other_give_the_whole(sizes, true_peak):
    chain = fx.FilterChain(
        Limiter(-20.0, lookahead_ms=0.06, fs=FS, true_peak=true_peak),
        Limiter(-23.0, lookahead_ms=0.09, fs=FS),
        fx.filter.HiButterworth(100, fs=FS),
        Compressor(-30.0, lookahead_ms=0.1, fs=FS),
    )
    x = torch.randn(2, 60, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    stream = fx.Stream(chain, FS, 2)
    y = torch.cat([*(stream.process(block) for block in x.split(sizes, -1)), stream.flush()], -1)
    torch.testing.assert_close(y[..., stream.latency_samples :], chain(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("module", [fx.effect.Reverb(), fx.effect.FDNReverb(), fx.effect.Delay("5ms", feedback=0.5)])
def test_what_lines_hold_after_short_blocks_is_what_they_hold_after_the_whole(module):
    x = torch.randn(2, 64 * 70, generator=torch.Generator().manual_seed(0))
    blocks, whole = (fx.realtime.Stream(module, FS, 2) for _ in range(2))
    y = torch.cat([blocks.process(block) for block in x.split(64, dim=-1)], dim=-1)
    assert torch.allclose(y, whole.process(x), rtol=0, atol=1e-6)
    for own, other in zip(blocks.state, whole.state, strict=True):
        assert torch.allclose(own, other, rtol=0, atol=1e-12)
    later = fx.realtime.Stream(module, FS, 2)
    later.state = blocks.state
    assert torch.allclose(later.process(x), whole.process(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("delay", [3, 5, 28, 255, 256, 257, 600])
@pytest.mark.parametrize(
    "make",
    [
        lambda delay: fx.filter.Comb(FS / delay, q=58.0, fs=FS),
        lambda delay: fx.effect.Delay(f"{delay} samples", feedback=0.9, mix=1.0, fs=FS),
        lambda delay: fx.effect.PingPongDelay(f"{delay} samples", feedback=0.9, mix=1.0, fs=FS),
    ],
    ids=["comb", "delay", "ping-pong"],
)
def test_blocks_as_long_as_some_delays_equal_the_whole(make, delay, generator):
    """Line and block meet at every size, wherever in its ring a line has got to."""
    module = make(delay)
    sizes = [
        size
        for first in (1, delay // 3 + 1)
        for count in (1, 2, 3, 4)
        for size in (first, max(1, count * delay - 1), count * delay, count * delay + 1)
    ]
    x = torch.randn(2, sum(sizes), dtype=torch.float64, generator=generator)
    stream = fx.Stream(module, FS, 2)
    y = torch.cat([stream.process(block) for block in x.split(sizes, dim=-1)], dim=-1)
    torch.testing.assert_close(y, module(x), rtol=0, atol=1e-11)


def test_a_steady_stream_notices_what_is_unlike_the_block_before(generator):
    """Blocks like the last one go straight to the program, where no attribute was assigned since."""
    x = torch.randn(2, 64, generator=generator)
    effect = fx.effect.Compressor(-20)
    stream, twin = (fx.realtime.Stream(effect, FS, 2) for _ in range(2))
    for block in x, x, x:
        stream.process(block)
    for unlike in x.double(), x[:1], x[None]:
        with pytest.raises(fx.errors.ArgumentError):
            stream.process(unlike)
    with pytest.raises(fx.errors.ArgumentTypeError):
        stream.process(x.numpy())
    strided = torch.randn(64, 2, generator=generator).T
    blocks = [x, x[:, :10], strided, x, x]
    found = [stream.process(block) for block in blocks]
    with torch.profiler.profile() as profiler:
        found.append(stream.process(x))
    assert any(event.key == "torchfx_ext::dynamics" for event in profiler.key_averages())
    for block in x, x, x:
        twin.process(block)
    expected = twin.process(torch.cat([*blocks, x], dim=-1))
    torch.testing.assert_close(torch.cat(found, dim=-1), expected, rtol=0, atol=1e-6)


def test_a_steady_stream_follows_what_is_assigned(generator):
    x = torch.randn(2, 4800, generator=generator)
    effect = fx.effect.Gain(0.5)
    stream = fx.realtime.Stream(effect, FS, 2)
    for _ in range(3):
        torch.testing.assert_close(stream.process(x), 0.5 * x)
    effect.gain = 0.25
    stream.process(x)
    for _ in range(3):
        torch.testing.assert_close(stream.process(x), 0.25 * x)
