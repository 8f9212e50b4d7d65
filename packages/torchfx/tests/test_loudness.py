"""Loudness: the synthetic signals of EBU Tech 3341 and 3342, and what follows from BS.1770's formulas."""

import math

import pytest
import torch

import torchfx as fx
from torchfx import loudness
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError

FS = 48_000


def tone(*parts, fs=FS, frequency=1000.0, channels=2, dtype=torch.float32):
    """Return a sine whose level follows (decibels, seconds), the same in all channels; -inf is silence."""
    level = torch.cat([torch.full((round(seconds * fs),), 10 ** (db / 20)) for db, seconds in parts])
    phase = 2 * math.pi * frequency / fs * torch.arange(len(level), dtype=torch.float64)
    return (level * phase.sin()).to(dtype).expand(channels, -1)


def noise(*shape, seed=0, dtype=torch.float32):
    return 0.1 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


# --- EBU Tech 3341, table 1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fs", [FS, pytest.param(44_100, marks=pytest.mark.many)])
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([(-23, 20)], -23, id="1"),
        pytest.param([(-33, 20)], -33, id="2"),
        pytest.param([(-36, 10), (-23, 60), (-36, 10)], -23, id="3"),
        pytest.param([(-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)], -23, id="4"),
        pytest.param([(-26, 20), (-20, 20.1), (-26, 20)], -23, id="5"),
    ],
)
def test_integrated_loudness_of_tech_3341(parts, expected, fs):
    x = tone(*parts, fs=fs)
    assert float(loudness.integrated(x, fs)) == pytest.approx(expected, abs=0.05)
    if len(parts) == 1:
        for measure in (loudness.momentary, loudness.short_term):
            assert (measure(x, fs) - expected).abs().max() < 0.1


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_integrated_loudness_is_pyloudnorms(channels):
    """At 48 kHz, where both filters are the standard's own."""
    pyloudnorm = pytest.importorskip("pyloudnorm")
    x = noise(channels, 10 * FS, dtype=torch.float64) * torch.linspace(0.01, 1, 10 * FS).square()
    expected = pyloudnorm.Meter(FS, filter_class="DeMan").integrated_loudness(x.T.contiguous().numpy())
    assert float(loudness.integrated(x, FS)) == pytest.approx(expected, abs=1e-9)


def test_surround_of_tech_3341():
    """Case 6, of 5 s instead of 20, as 5.0 and as 5.1, whose LFE does not count."""
    five = torch.cat([tone((db, 5), channels=1) for db in (-28, -28, -24, -30, -30)])
    assert float(loudness.integrated(five, FS)) == pytest.approx(-23, abs=0.05)
    six = torch.cat([five[:3], tone((0, 5), channels=1), five[3:]])
    assert float(loudness.integrated(six, FS)) == pytest.approx(float(loudness.integrated(five, FS)), abs=1e-9)


def test_constant_short_term_loudness_of_tech_3341():
    x = tone(*[(-20, 1.34), (-30, 1.66)] * 5)
    assert (loudness.short_term(x, FS) + 23).abs().max() < 0.1  # case 9


def test_constant_momentary_loudness_of_tech_3341():
    x = tone(*[(-20, 0.18), (-30, 0.22)] * 25)
    assert (loudness.momentary(x, FS)[..., 60:] + 23).abs().max() < 0.1  # case 12


@pytest.mark.parametrize("index", [0, 7, 19])
def test_short_tones_of_tech_3341(index):
    """Cases 10 and 13 begin at odd instants; 11 and 14 have other levels."""
    for level in (-23, -38 + index):
        x = tone((-math.inf, 0.15 * index), (level, 3), (-math.inf, 1))
        assert float(loudness.short_term(x, FS).amax()) == pytest.approx(level, abs=0.1)
        x = tone((-math.inf, 0.02 * index), (level, 0.4), (-math.inf, 1))
        assert float(loudness.momentary(x, FS).amax()) == pytest.approx(level, abs=0.1)


@pytest.mark.parametrize(
    ("divisor", "degrees", "amplitude", "expected"),
    [(4, 0, 0.5, -6), (4, 45, 0.5, -6), (6, 60, 0.5, -6), (8, 67.5, 0.5, -6), (4, 45, 1.41, 3)],
)
def test_true_peak_of_tech_3341(divisor, degrees, amplitude, expected):
    """Cases 15 to 19: a tone of a second, faded in and out within 10 ms."""
    phase = 2 * math.pi / divisor * torch.arange(FS, dtype=torch.float64) + math.radians(degrees)
    fade = (torch.arange(FS) / 480).clamp(max=1)
    x = (amplitude * phase.sin() * fade * fade.flip(0)).expand(2, -1)
    assert -0.4 < float(loudness.true_peak(x, FS)) - expected < 0.2


@pytest.mark.parametrize("offset", range(4))
def test_true_peak_between_samples_of_tech_3341(offset):
    """Cases 20 to 23: a tone of fs/6 at 4 times the rate, with a peak of 0 dB on a sample, decimated at each offset."""
    phase = 2 * math.pi / 24 * (torch.arange(4 * FS, dtype=torch.float64) - 2 * FS)
    x = (0.5 * phase.cos() * (1 + torch.exp(-(((torch.arange(4 * FS) - 2 * FS) / 2000.0) ** 2))))[offset::4]
    assert -0.4 < float(loudness.true_peak(x, FS)) < 0.2


# --- EBU Tech 3342, table 1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "expected"), [((-20, -30), 10), ((-20, -15), 5), ((-40, -20), 20), ((-50, -35, -20, -35, -50), 15)]
)
def test_loudness_range_of_tech_3342(levels, expected):
    x = tone(*((level, 20) for level in levels))
    assert float(loudness.range(x, FS)) == pytest.approx(expected, abs=0.1)


# --- BS.1770 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fs", "within"), [(16_000, 0.05), (22_050, 0.025), (44_100, 0.01), (FS, 0.01), (96_000, 0.01), (192_000, 0.02)]
)
def test_full_scale_at_any_rate(fs, within):
    """The bilinear transform raises the K curve's shelf at 1.7 kHz as the rate falls."""
    x = tone((0, 1), fs=fs, frequency=997, channels=1)
    assert float(loudness.integrated(x[0], fs)) == pytest.approx(-3.01, abs=within)


def test_integrated_loudness_is_the_standards_formula():
    """Two stages of SciPy's filter, blocks, and both gates, written out."""
    signal = pytest.importorskip("scipy.signal")
    x = noise(2, 4 * FS, dtype=torch.float64) * torch.linspace(0, 1, 4 * FS, dtype=torch.float64) ** 4
    y = torch.as_tensor(signal.sosfilt(fx.filter.Weighting("K", fs=FS).sos.numpy(), x.numpy()))
    powers = y.unfold(-1, 19_200, 4800).square().mean(-1).sum(0)
    loud = powers[-0.691 + 10 * powers.log10() > -70]
    gate = -0.691 + 10 * loud.mean().log10() - 10
    passing = loud[-0.691 + 10 * loud.log10() > gate]
    assert len(passing) < len(powers)
    assert float(loudness.integrated(x, FS)) == pytest.approx(float(-0.691 + 10 * passing.mean().log10()), abs=1e-9)
    assert float(loudness.integrated(x.float(), FS)) == pytest.approx(float(loudness.integrated(x, FS)), abs=1e-5)


def test_channel_weights_scale_powers():
    x = noise(3, FS)
    alone = loudness.integrated(x[:1], FS)
    assert float(loudness.integrated(x, FS, [2.0, 0, 0]) - alone) == pytest.approx(10 * math.log10(2), abs=1e-9)


@pytest.mark.parametrize("measure", [loudness.integrated, loudness.short_term, loudness.range, loudness.true_peak])
def test_items_of_a_batch_are_measured_apart(measure):
    x = noise(2, 3, 2, 4 * FS) * torch.logspace(-6, 0, 3)[:, None, None]
    found = measure(x, FS)
    assert found.dtype == torch.float64
    for i in range(2):
        for j in range(3):
            assert torch.allclose(found[i, j], measure(x[i, j], FS), rtol=0, atol=1e-9)


def test_silence():
    x = torch.zeros(2, 4 * FS, requires_grad=True)
    for measure in (loudness.integrated, loudness.true_peak):
        assert measure(x, FS).tolist() == -math.inf
    assert loudness.momentary(x, FS).unique().tolist() == [-math.inf]
    assert loudness.range(x, FS).tolist() == 0
    x.grad = None
    loudness.integrated(x, FS).backward()
    assert not x.grad.any()


def test_a_wave_brings_its_rate():
    wave = fx.Wave(noise(2, 44_100), 44_100)
    assert loudness.integrated(wave) == loudness.integrated(wave.ys, 44_100)
    with fx.sample_rate(44_100):
        assert loudness.integrated(wave.ys) == loudness.integrated(wave)


@pytest.mark.parametrize("measure", [loudness.integrated, loudness.momentary, loudness.true_peak])
def test_gradients(measure):
    x = noise(2, 3600, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: measure(x, 8000)[..., None][..., :1], x, fast_mode=True)


def test_a_gain_learns_a_loudness():
    """A gradient through the gates: in decibels, the loudness follows the gain one to one."""
    gain = torch.zeros((), dtype=torch.float64, requires_grad=True)
    loudness.integrated(noise(2, FS) * 10 ** (gain / 20), FS).backward()
    assert float(gain.grad) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: loudness.integrated(noise(2, 19_000), FS), ArgumentError, r"at least 0.4 s .*, got 0.39 s"),
        (lambda: loudness.short_term(noise(2, FS), FS), ArgumentError, r"at least 3 s .*, got 1 s"),
        (lambda: loudness.range(noise(2, FS), FS), ArgumentError, r"at least 3 s .*, got 1 s"),
        (lambda: loudness.integrated(noise(2, FS)), SampleRateError, "fs must be given in Hz"),
        (lambda: loudness.integrated(noise(2, FS), 4000), SampleRateError, "fs must lie in"),
        (lambda: loudness.integrated(fx.Wave(noise(2, FS), FS), 8000), SampleRateError, "fs must be the wave's 48000"),
        (lambda: loudness.integrated(noise(7, FS), FS), ArgumentError, "channel_weights must be given for 7 channels"),
        (lambda: loudness.integrated(noise(2, FS), FS, [1]), ArgumentError, "channel_weights must be 2 finite numbers"),
        (lambda: loudness.integrated(noise(2, FS), FS, [1, -1]), ArgumentError, "channel_weights must be 2 finite"),
        (lambda: loudness.integrated([0.0], FS), ArgumentTypeError, "x must be a tensor"),
        (lambda: loudness.Meter(FS, 0), ArgumentError, "channels must"),
        (lambda: loudness.Meter(FS, 2).process(noise(3, 10)), ArgumentError, r"block must have the shape \(2, time\)"),
        (lambda: loudness.Meter(FS, 2).integrated, ArgumentError, "at least 0.4 s .*, got less than 0.01 s"),
    ],
)
def test_bad_arguments_raise(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_raises(bad):
    x = noise(2, FS)
    x[1, -1] = bad
    for measure in (loudness.integrated, loudness.true_peak):
        with pytest.raises(ArgumentError, match="x must be finite to be measured"):
            measure(x, FS)


# --- blocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("fs", [FS, 22_050])
@pytest.mark.parametrize("block", [FS // 3, pytest.param(23, marks=pytest.mark.many)])
def test_blocks_equal_the_whole(dtype, fs, block):
    x = noise(2, 5 * fs + 100, dtype=dtype) * torch.linspace(0, 1, 5 * fs + 100, dtype=dtype)
    meter = loudness.Meter(fs, 2)
    sizes = [1, 479, 1000, block]
    for part in [*x[:, :1480].split(sizes[:3], dim=-1), *x[:, 1480:].split(block, dim=-1)]:
        meter.process(part)
    assert float(meter.integrated) == pytest.approx(float(loudness.integrated(x, fs)), abs=1e-9)
    assert float(meter.loudness_range) == pytest.approx(float(loudness.range(x, fs)), abs=1e-9)
    assert float(meter.true_peak) == pytest.approx(float(loudness.true_peak(x, fs)), abs=1e-6)
    for name in ("momentary", "short_term"):
        found = getattr(loudness, name)(x, fs)
        assert float(getattr(meter, name)) == pytest.approx(float(found[-1]), abs=1e-9)
        assert float(getattr(meter, f"max_{name}")) == pytest.approx(float(found.amax()), abs=1e-9)


def test_a_meter_forgets():
    meter = loudness.Meter(FS, 1)
    meter.process(noise(FS))
    meter.reset()
    assert float(meter.true_peak) == -math.inf
    x = noise(FS, seed=1)
    meter.process(x)
    assert meter.integrated == loudness.integrated(x, FS)


# --- several files ----------------------------------------------------------------------------------------------------


def test_an_album_does_not_depend_on_the_order_rates_or_blocks_of_its_files(tmp_path):
    generator, paths, blocks = torch.Generator().manual_seed(0), [], []
    for number, (fs, seconds, level) in enumerate([(48_000, 3.29, 0.2), (44_100, 1.13, 0.05), (16_000, 0.3, 0.9)]):
        x = level * torch.randn(1 + number % 2, round(fs * seconds), generator=generator).clamp(-4, 4)
        paths.append(tmp_path / f"{number}.wav")
        fx.Wave(x, fs).save(paths[-1], encoding="FLOAT")
        if seconds >= 0.4:
            meter = loudness.metered(paths[-1])
            blocks.append(loudness._windows(meter._heard(), 40, 10))
    found = loudness.measure_album(paths)
    for again in (loudness.measure_album(paths, block=999), loudness.measure_album(paths[::-1])):
        assert again.integrated_lufs == pytest.approx(found.integrated_lufs, abs=1e-9)
    power = torch.cat(blocks)
    loud = power[10 * power.log10() - 0.691 > -70]  # the gates of BS.1770, over the blocks of all files
    loud = loud[loud > 0.1 * loud.mean()]
    assert found.integrated_lufs == pytest.approx(10 * math.log10(loud.mean()) - 0.691, abs=1e-9)
    assert found.true_peak_dbtp == max(loudness.measure_file(path).true_peak_dbtp for path in paths)


def test_an_album_of_one_file_measures_as_the_file(tmp_path):
    fx.Wave(0.1 * torch.randn(2, 200_000, generator=torch.Generator().manual_seed(1)), 48_000).save(tmp_path / "a.wav")
    one, album = loudness.measure_file(tmp_path / "a.wav"), loudness.measure_album([tmp_path / "a.wav"])
    assert all(getattr(one, name) == value for name, value in vars(album).items())
    with pytest.raises(ArgumentError, match="one or more files, got 0"):
        loudness.measure_album([])
