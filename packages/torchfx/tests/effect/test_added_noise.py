"""Noise: its colours, its ratio to the signal, and how it is taken off again."""

import math

import pytest
import torch

import torchfx as fx
from torchfx import audio_io
from torchfx.effect import AddBackgroundNoise, AddNoise, NoiseReduction
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError
from torchfx.functional import add_noise, noise

FS = 48_000
COLORS = {"white": 0, "pink": 1, "brown": 2}
"""Their power falls by as many times 3.01 dB an octave."""


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def snr_db(x, y):
    return float(10 * torch.log10(x.double().square().mean() / (y.double() - x.double()).square().mean()))


@pytest.mark.parametrize("color", COLORS)
@pytest.mark.parametrize("made", ["functional.noise", "AddNoise"])
def test_colours_fall_by_their_decibels_an_octave(color, made):
    if made == "AddNoise":
        x = torch.ones(8, 2**17, dtype=torch.float64)
        y = AddNoise(0.0, color, seed=3)(x) - x
    else:
        y = noise((8, 2**17), color, seeded())
    f = torch.fft.rfftfreq(y.shape[-1], 1 / FS).double()
    flat = torch.fft.rfft(y.double()).abs().square().mean(0) * f ** COLORS[color]
    octaves = [20 * 2**k for k in range(11)]
    levels = [float(10 * flat[(f >= low) & (f < 2 * low)].mean().log10()) for low in octaves]
    # The lowest octave holds some 400 values: 0.2 dB are their statistical deviation.
    assert max(levels) - min(levels) < 0.8
    assert all(abs(level - sorted(levels)[5]) < 0.5 for level in levels)


def test_noise_has_power_1_and_repeats_from_its_seed():
    for color in COLORS:
        y = noise((4, 100_003), color, seeded(1), torch.float64)
        assert y.shape == (4, 100_003)
        assert y.dtype == torch.float64
        assert torch.equal(y, noise((4, 100_003), color, seeded(1), torch.float64))
        assert not torch.equal(y, noise((4, 100_003), color, seeded(2), torch.float64))
    white = noise((1_000_000,), "white", seeded())
    assert float(white.square().mean()) == pytest.approx(1, abs=0.01)
    pink = noise((200, 4096), "pink", seeded())
    assert float(pink.square().mean()) == pytest.approx(1, abs=0.05)
    assert noise((1,), "pink", seeded()).shape == (1,)


def test_added_noise_is_normal_and_apart_for_seeds_and_channels():
    x = torch.ones(2, 200_000, dtype=torch.float64)
    y = AddNoise(0.0)(x) - x
    y = y / y.square().mean().sqrt()
    assert abs(float(y.mean())) < 0.01
    assert float((y.abs() < 1).double().mean()) == pytest.approx(math.erf(math.sqrt(0.5)), abs=0.005)
    assert float(y.pow(4).mean()) == pytest.approx(3, abs=0.05)
    assert abs(float((y[0] * y[1]).mean())) < 0.01
    other = AddNoise(0.0, seed=1)(x) - x
    assert abs(float((y[0] * other[0]).mean())) < 0.01


@pytest.mark.parametrize("time", [1, 17, 1025, 4000])
def test_the_ratio_is_exact(time, generator):
    for shape in ((time,), (2, time), (3, 17, time)):
        x = torch.randn(*shape, generator=generator)
        for color in COLORS:
            y = AddNoise(13.0, color)(x)
            for i in range(3 if x.dim() == 3 else 1):
                signal, noisy = (x[i], y[i]) if x.dim() == 3 else (x, y)
                assert snr_db(signal, noisy) == pytest.approx(13, abs=0.01)


EFFECTS = {
    **{color: lambda color=color: AddNoise(torch.tensor([[3.0], [20.0]]), color, seed=1) for color in COLORS},
    "one ratio": lambda: AddNoise(3.0, "brown"),
    "mono recording": lambda: AddBackgroundNoise(torch.arange(-50.0, 50.0), 3.0, offset="20 samples"),
    "recording": lambda: AddBackgroundNoise(noise((17, 1000), generator=seeded()), torch.tensor([[0.0], [5.0]])),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", EFFECTS)
def test_blocks_of_two_passes_equal_the_whole(name, dtype, generator):
    effect, x = EFFECTS[name](), torch.randn(2, 1025, 17, dtype=dtype, generator=generator).mT
    for sizes in ([1025], [0, 1, 17, 0, 1007], [512, 513]):
        state = effect.init_state((2, 17), FS, dtype, "cpu")
        for block in x.split(sizes, dim=-1):
            state = effect.measure(block, state, FS)
        kept = [each.shape for each in state]
        blocks = []
        for block in x.split(sizes, dim=-1):
            y, state = effect.step(block, state, FS)
            blocks.append(y)
        assert [each.shape for each in state] == kept == [each.shape for each in effect.init_state((2, 17), FS)]
        whole = effect(x)
        assert (torch.cat(blocks, -1) - whole).abs().max() <= (1e-7 if dtype is torch.float32 else 1e-14) * whole.max()


def test_float32_is_near_float64(generator):
    x = torch.randn(2, 3, 5000, generator=generator)
    for name in ("white", "pink", "one ratio", "mono recording"):
        y, exact = EFFECTS[name]()(x), EFFECTS[name]()(x.double())
        assert (y - exact).abs().max() <= 2e-7 * exact.abs().max(), name


@pytest.mark.parametrize("name", ["pink", "mono recording"])
def test_gradients_reach_the_signal_and_the_ratio(name, generator):
    x = torch.randn(2, 3, 40, dtype=torch.float64, generator=generator).requires_grad_()
    snr_db = torch.tensor([[3.0], [20.0]], dtype=torch.float64, requires_grad=True)

    def noisy(x, snr_db):
        effect = EFFECTS[name]()
        effect.snr_db = snr_db
        whole, state = effect(x), effect.init_state((2, 3), FS, x.dtype, x.device)
        return whole, effect.step(x[..., :11], effect.measure(x, state, FS), FS)[0]

    assert torch.autograd.gradcheck(noisy, (x, snr_db))


def test_one_channel_and_no_examples(generator):
    x = torch.randn(1, 500, generator=generator)
    for effect in (AddNoise(3.0, "pink"), AddBackgroundNoise(torch.arange(-5.0, 5.0), 3.0)):
        assert torch.allclose(effect(x[0]), effect(x)[0])
        assert effect(x[None][:0]).shape == (0, 1, 500)


def test_silence_stays_silence(generator):
    assert not AddNoise()(torch.zeros(2, 100)).any()
    assert not AddBackgroundNoise([1.0, 2.0])(torch.zeros(2, 100)).any()
    assert not NoiseReduction(fs=FS)(torch.zeros(2, 5000)).any()
    x = torch.randn(2, 100, generator=generator)
    assert torch.equal(AddBackgroundNoise(torch.zeros(5))(x), x)
    tiny = 1e-30 * x
    assert snr_db(tiny.double() * 1e30, AddNoise(20.0)(tiny).double() * 1e30) == pytest.approx(20, abs=0.01)


def test_a_recording_is_repeated_from_its_offset(generator):
    hum, x = torch.randn(2, 7, dtype=torch.float64, generator=generator), torch.ones(2, 20, dtype=torch.float64)
    y = AddBackgroundNoise(hum, 6.0, offset="3 samples")(x) - x
    expected = torch.cat([hum[:, 3:], hum, hum], dim=-1)[:, :18]
    assert torch.allclose(y[:, :18] / y[0, 0], expected / expected[0, 0])
    assert snr_db(x, x + y) == pytest.approx(6)


def test_a_file_is_resampled(tmp_path):
    path = tmp_path / "hum.wav"
    t = torch.arange(24_000) / 24_000
    audio_io.save(path, (0.5 * torch.sin(2 * math.pi * 300 * t))[None], 24_000)
    x = torch.ones(2, FS, dtype=torch.float64)
    for wave in (fx.Wave(x, FS) | AddBackgroundNoise(path, 0.0), fx.Wave(x, FS) | AddBackgroundNoise(str(path), 0.0)):
        spectrum = torch.fft.rfft(wave.ys - x)[0].abs()
        assert int(spectrum.argmax()) == 300
    clean = fx.Wave(0.3 * (wave.ys - x), FS) | NoiseReduction(path, reduction_db=40)
    assert float(clean.ys.square().mean()) < 1e-3


@pytest.mark.parametrize("time", [1, 17, 1025, 5000])
def test_a_reduction_of_0_db_changes_nothing(time, generator):
    for dtype, bound in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
        x = torch.randn(17, time, generator=generator).to(dtype)
        assert float((NoiseReduction(reduction_db=0, fs=FS)(x) - x).abs().max()) < bound


@pytest.mark.parametrize("known", [True, False])
def test_noise_goes_down_by_the_reduction_and_a_tone_stays(known):
    t = torch.arange(3 * FS) / FS
    hiss = 0.01 * noise((2, 3 * FS), "white", seeded())
    tone = torch.zeros(2, 3 * FS)
    tone[:, FS : 2 * FS] = 0.3 * torch.sin(2 * math.pi * 1000 * t[:FS])
    profile = 0.01 * noise((2, FS), "white", seeded(1)) if known else None
    y = NoiseReduction(profile, threshold_db=8.0, reduction_db=24.0, fs=FS)(tone + hiss)
    alone, before = y[:, : FS // 2], hiss[:, : FS // 2]
    assert float(10 * torch.log10(alone.square().mean() / before.square().mean())) == pytest.approx(-24, abs=2)
    inside = slice(FS + FS // 4, 2 * FS - FS // 4)
    assert float((y - tone)[:, inside].square().mean()) < 0.2 * float(hiss[:, inside].square().mean())
    assert float(y[:, inside].square().mean()) == pytest.approx(float(tone[:, inside].square().mean()), rel=0.05)


def test_silence_in_front_is_no_noise():
    hiss = 0.01 * noise((1, 2 * FS), "white", seeded())
    hiss[:, :FS] = 0
    y = NoiseReduction(reduction_db=30.0, threshold_db=8.0, fs=FS)(hiss)
    assert float(y[:, -FS // 2 :].square().mean()) < 0.01 * float(hiss[:, -FS // 2 :].square().mean())


def test_text_builds_them():
    from torchfx import spec

    assert repr(spec.build("addnoise:10,pink")) == "AddNoise(snr_db=10, color='pink', seed=0)"
    assert spec.build("noisereduction").reduction_db == 20


def test_misuse_is_named(tmp_path):
    x = torch.ones(2, 10)
    with pytest.raises(ArgumentError, match="color must be one of white, pink, brown, got 'blue'"):
        noise((5,), "blue")
    with pytest.raises(ArgumentError, match=r"shape must be \(..., time\), got \(\)"):
        noise(())
    with pytest.raises(ArgumentError, match="shape must be a whole number >= 1, got 0"):
        noise((2, 0))
    with pytest.raises(ArgumentTypeError, match=r"dtype must be float32 or float64, got torch\.int32"):
        noise((2,), dtype=torch.int32)
    with pytest.raises(ArgumentError, match=r"noise must broadcast to x, \(2, 10\), got \(3, 2, 10\)"):
        add_noise(x, torch.ones(3, 2, 10), 3.0)
    with pytest.raises(ArgumentError, match=r"leading dimensions must broadcast"):
        add_noise(x, torch.ones(2, 9), 3.0)
    with pytest.raises(ArgumentError, match=r"snr_db must lie in \[-200, 200\] dB, got 1000"):
        AddNoise(1000)
    with pytest.raises(ArgumentError, match="noise must have 1 channel or the signal's 2, got 3"):
        AddBackgroundNoise(torch.ones(3, 4))(x)
    with pytest.raises(ArgumentError, match="noise must have 1 channel or the signal's 2, got 3"):
        NoiseReduction(torch.ones(3, 4), fs=FS)(x)
    with pytest.raises(ArgumentError, match="n_fft must be a multiple of 4, got 18"):
        NoiseReduction(n_fft=18)
    with pytest.raises(AudioFileError):
        AddBackgroundNoise(tmp_path / "missing.wav", fs=FS)(x)
