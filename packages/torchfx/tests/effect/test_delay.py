"""Delays with and without feedback."""

import numpy as np
import pytest
import torch

import torchfx as fx
from torchfx.effect import Delay, PingPongDelay
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.spec import build

FS = 48_000


def impulse(count, dtype=torch.float64):
    x = torch.zeros(count, dtype=dtype)
    x[0] = 1
    return x


@pytest.mark.parametrize(
    ("time", "bpm", "expected"),
    [
        (0.25, 120, 12_000),
        (0, 120, 0),
        ("250ms", 120, 12_000),
        ("0.5 s", 120, 24_000),
        ("480 samples", 120, 480),
        ("1/4", 120, 24_000),
        ("1/4.", 120, 36_000),
        ("1/4d", 120, 36_000),
        ("1/4t", 120, 16_000),
        ("1/8", 90, 16_000),
        ("3/16", 60, 36_000),
    ],
)
def test_it_shifts_by_the_nearest_sample(time, bpm, expected):
    x = torch.zeros(40_000)
    x[0] = 1
    y = Delay(time, bpm, fs=48_000)(x)
    assert y.nonzero().tolist() == [[expected]]
    assert float(y[expected]) == 1


def test_chains_fuse_it_and_streams_keep_it(generator):
    chain = fx.filter.LoButterworth(1000) | Delay("5ms")
    assert chain.plan(48_000).calls() == 1
    x = torch.randn(2, 900, generator=generator)
    stream = fx.realtime.Stream(chain, 48_000, 2)
    blocks = torch.cat([stream.process(block) for block in x.split(100, dim=-1)], dim=-1)
    assert torch.allclose(blocks, (fx.Wave(x, 48_000) | chain).ys, atol=1e-6)


def test_it_is_built_from_text():
    assert repr(build("delay:1/8.,bpm=90")) == "Delay(time=1/8., bpm=90, feedback=0, mix=1)"
    assert build("delay:250ms").time == 0.25


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1,), ArgumentError, r"time must lie in \[0, inf\) s, got -1"),
        (("soon",), ArgumentError, r"time must be seconds >= 0, or a text such as '250ms', .*, got 'soon'"),
        (("-5ms",), ArgumentError, "time must be seconds >= 0, .* got '-5ms'"),
        (("1/0",), ArgumentError, "time must be seconds >= 0, .* got '1/0'"),
        ((None,), ArgumentTypeError, "time must be a number in s, got None"),
        ((0.1, 0), ArgumentError, r"bpm must lie in \(0, 10000\], got 0"),
    ],
)
def test_misuse_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Delay(*arguments)
    with pytest.raises(
        ArgumentError, match="fade_in must be seconds >= 0, or a text such as '250ms', '1:30' or '480 samples', "
    ):
        fx.effect.Fade("1/8")


# --- with feedback --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("feedback", [0.6, -0.9, 0.999])
def test_repetitions_are_powers_of_the_feedback(feedback, dtype):
    y = Delay("7 samples", feedback=feedback, mix=0.3, fs=FS)(impulse(1025, dtype))
    expected = torch.zeros(1025, dtype=torch.float64)
    expected[0] = 0.7
    for k in range(1, 1024 // 7 + 1):
        expected[7 * k] = 0.3 * feedback ** (k - 1)
    assert torch.allclose(y.double(), expected, rtol=0, atol=1e-7 if dtype == torch.float32 else 1e-14)


def test_every_repetition_is_filtered_once_more():
    y = Delay("400 samples", feedback=0.8, low_cut=100.0, high_cut=4000.0, fs=FS)(impulse(1600))
    both = fx.FilterChain(fx.filter.DCBlocker(100, fs=FS), fx.filter.OnePole(4000, fs=FS))
    echo, expected = impulse(1600), torch.zeros(1600, dtype=torch.float64)
    for k in range(1, 4):
        expected[400 * k :] += echo[: 1600 - 400 * k]
        echo = 0.8 * both(echo)
    assert torch.allclose(y, expected, rtol=0, atol=1e-14)


def test_ping_pong_alternates():
    y = PingPongDelay("5 samples", feedback=-0.5, mix=0.4, fs=FS)(torch.stack([impulse(31), 3 * impulse(31)]))
    expected = np.zeros((2, 31))
    expected[:, 0] = 0.6, 1.8
    for k in range(1, 7):
        expected[(k - 1) % 2, 5 * k] = 0.4 * 2 * (-0.5) ** (k - 1)
    assert np.allclose(y.numpy(), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("stereo", [False, True])
@pytest.mark.parametrize("cross_feed", [0.0, 0.3, 0.5, 1.0])
def test_cross_feed_is_the_part_of_a_repetition_that_changes_sides(cross_feed, stereo):
    x = torch.stack([impulse(41), 3 * impulse(41)])
    y = PingPongDelay("5 samples", feedback=0.8, mix=0.4, cross_feed=cross_feed, stereo=stereo, fs=FS)(x)
    expected = np.zeros((2, 41))
    expected[:, 0] = 0.6, 1.8
    sides = np.array([1.0, 3.0] if stereo else [2.0, 0.0])
    for k in range(1, 9):
        expected[:, 5 * k] = 0.4 * sides
        sides = 0.8 * ((1 - cross_feed) * sides + cross_feed * sides[::-1])
    assert np.allclose(y.numpy(), expected, rtol=0, atol=1e-15)


def test_sides_without_cross_feed_are_two_delays(generator):
    x = torch.randn(2, 900, generator=generator, dtype=torch.float64)
    apart = PingPongDelay("13 samples", feedback=0.7, mix=0.5, cross_feed=0.0, stereo=True, high_cut=5000.0, fs=FS)(x)
    both = Delay("13 samples", feedback=0.7, mix=0.5, high_cut=5000.0, fs=FS)
    torch.testing.assert_close(apart, both(x), rtol=0, atol=1e-14)
    mono = PingPongDelay("13 samples", feedback=0.7, mix=0.5, cross_feed=0.2, stereo=True, fs=FS)(x[0])
    torch.testing.assert_close(mono[0], mono[1], rtol=0, atol=1e-14)


def test_parameters_of_examples_are_their_own(generator):
    x, feedback = torch.randn(2, 2, 500, generator=generator), torch.tensor([[0.2], [0.7]])
    for effect in (Delay, PingPongDelay):
        together = effect("13 samples", feedback=feedback, high_cut=torch.tensor([[1e3], [9e3]]), fs=FS)(x)
        for i, (own, cut) in enumerate(((0.2, 1e3), (0.7, 9e3))):
            alone = effect("13 samples", feedback=own, high_cut=cut, fs=FS)(x[i])
            assert torch.allclose(together[i], alone, atol=1e-6)


def test_a_feedback_can_be_assigned_in_a_stream(generator):
    module, x = Delay("100 samples", feedback=0.5, mix=0.5, fs=FS), torch.randn(2, 4000, generator=generator)
    stream = fx.realtime.Stream(module, FS, 2)
    before = stream.process(x[:, :1000])
    module.feedback = 0.9
    after = stream.process(x[:, 1000:])
    whole = Delay("100 samples", feedback=0.5, mix=0.5, fs=FS)(x)
    assert torch.allclose(before, whole[:, :1000], atol=1e-6)
    jump = (after[:, :1] - before[:, -1:]).abs() - (whole[:, 1000:1001] - whole[:, 999:1000]).abs()
    assert float(jump.max()) < 0.01  # it crosses to the new feedback within 10 ms
    assert float((after - whole[:, 1000:])[:, 600:].abs().max()) > 0.1


def test_a_loop_without_delay_is_refused():
    with pytest.raises(
        ArgumentError, match=r"time must be at least a sample where there is feedback or a mix, got 0 s"
    ):
        Delay(0, feedback=0.5, fs=FS)
    with pytest.raises(ArgumentError, match=r"at least a sample .*, got 0 samples"):
        fx.Wave(torch.zeros(2, 9), FS) | PingPongDelay("0 samples")
    with pytest.raises(ArgumentError, match=r"feedback must lie in \(-1, 1\), got 1"):
        Delay(0.1, feedback=1.0)
    with pytest.raises(ArgumentError, match=r"x must have 1 or 2 channels, .* for PingPongDelay, got 3"):
        PingPongDelay(fs=FS)(torch.zeros(3, 9))


@pytest.mark.parametrize("cls", [Delay, PingPongDelay])
@pytest.mark.parametrize("time", ["601s", "100:00:00", "28800001 samples", "8/1"])
def test_delays_have_an_end(cls, time):
    """They would keep as many samples."""
    with pytest.raises(ArgumentError, match=r"time must be at most 600 s, got .*, which is \d+"):
        cls(time, bpm=3.0, feedback=0.5, fs=48_000)
    with fx.sample_rate(48_000), pytest.raises(ArgumentError, match=r"time must be at most 600 s"):
        cls(time, bpm=3.0)(torch.zeros(2, 10))
