"""SoX's effects by torchaudio's names: against closed forms and against loops over samples."""

import math

import numpy as np
import pytest
import torch
from scipy import signal

from oracle import deviation
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.functional import torchaudio as F

SHAPES = [(1,), (1025,), (17, 300), (2, 3, 200), (0, 2, 64)]


def waveform(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.3


@pytest.mark.parametrize("shape", SHAPES)
def test_curves_are_their_formulas(shape):
    x = waveform(*shape) * 3
    u = np.pi / 2 * x.numpy()
    assert np.allclose(F.contrast(x, 40.0), np.sin(u + 40 / 750 * np.sin(4 * u)), rtol=0, atol=1e-14)
    assert np.allclose(F.gain(x, -7.0), x.numpy() * 10 ** (-7 / 20), rtol=1e-14)
    assert np.allclose(F.dcshift(x, -0.3), np.clip(x.numpy() - 0.3, -1, 1), rtol=0, atol=1e-15)
    assert F.contrast(x.float()).dtype == torch.float32


@pytest.mark.parametrize("side", [1, -1])
def test_dcshift_bends_the_peaks_it_moves_out(side):
    x = torch.linspace(-1, 1, 2000, dtype=torch.float64)
    before = x.clone()
    y = F.dcshift(x, 0.4 * side, 0.05)
    assert torch.equal(x, before)
    over = x * side > 0.65
    assert np.allclose(y[~over], (x[~over] + 0.4 * side).clamp(-1, 1), rtol=0, atol=1e-15)
    bent = ((x[over] * side - 0.65) * 0.05 / 0.35 + 0.65 + 0.4).clamp(max=0.65) * side
    assert np.allclose(y[over], bent, rtol=0, atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES[:4])
def test_overdrive_is_a_cubic_without_its_constant_part(shape):
    x = waveform(*shape).numpy()
    u = np.clip(x * 10 + 0.15, -1, 1)
    expected = np.clip(0.5 * x + 0.75 * signal.lfilter([1, -1], [1, -0.995], u - u**3 / 3), -1, 1)
    assert np.allclose(F.overdrive(torch.from_numpy(x), 20, 30), expected, rtol=0, atol=1e-12)


def turn(length, start, sinusoidal):
    places = (np.arange(length) + int(start * length + 0.5)) % length
    if sinusoidal:
        return (np.sin(2 * np.pi * places / length) + 1) / 2
    return np.interp(places / length, [0, 0.25, 0.75, 1], [0.5, 1, 0, 0.5])


@pytest.mark.parametrize("sinusoidal", [True, False])
@pytest.mark.parametrize("decay", [0.0, 0.4, 0.99])
@pytest.mark.parametrize("shape", [(1,), (1025,), (2, 3, 3000)])
def test_phaser_is_its_recursion(shape, decay, sinusoidal):
    x = waveform(*shape) * 0.2
    fs, longest = 8000, 24
    delays = longest + 1 - np.floor(turn(4211, 0.25, sinusoidal) * (longest - 1) + 1.5).astype(int)
    w = 0.4 * x.numpy()
    for n in range(shape[-1]):
        late = delays[n % len(delays)]
        if n >= late:
            w[..., n] += decay * w[..., n - late]
    y = F.phaser(x, fs, decay=decay, mod_speed=1.9, sinusoidal=sinusoidal)
    assert np.allclose(y, np.clip(0.74 * w, -1, 1), rtol=0, atol=1e-12)
    strided = torch.stack([x, x], dim=-1)[..., 0]
    assert torch.equal(F.phaser(strided, fs), F.phaser(x, fs))
    assert deviation(F.phaser(x.float(), fs), F.phaser(x, fs).numpy()) < 2e-7


def flanged(x, fs, lowest, highest, start, feedback, amount, speed, turns, sinusoidal, quadratic):
    """One sample after the other, as a delay line works."""
    table = (turn(int(fs / speed), start, sinusoidal) * (highest - lowest) + lowest).astype(np.float32).astype(float)
    y, w = np.zeros_like(x), np.zeros_like(x)
    for channel in range(x.shape[-2]):
        last = np.zeros(x.shape[:-2])
        for n in range(x.shape[-1]):
            place = table[(n + int(channel * len(table) * turns + 0.5)) % len(table)]
            w[..., channel, n] = x[..., channel, n] + feedback * last
            at = [w[..., channel, n - k] if n >= k else 0 for k in range(int(place), int(place) + 3)]
            part = place - int(place)
            if quadratic:
                last = at[0] + part * (at[1] - at[0]) + part * (part - 1) / 2 * (at[2] - 2 * at[1] + at[0])
            else:
                last = at[0] + part * (at[1] - at[0])
            y[..., channel, n] = (x[..., channel, n] + amount * (1 - abs(feedback)) * last) / (1 + amount)
    return np.clip(y, -1, 1)


@pytest.mark.parametrize(("modulation", "interpolation"), [("sinusoidal", "quadratic"), ("triangular", "linear")])
@pytest.mark.parametrize("regen", [0.0, 60.0, -95.0])
@pytest.mark.parametrize(("delay", "depth"), [(0.0, 2.0), (3.0, 1.0), (0.0, 0.0)])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3, 700)])
def test_flanger_is_a_delay_line(shape, delay, depth, regen, modulation, interpolation):
    x = waveform(*shape)
    fs = 8000
    y = F.flanger(x, fs, delay, depth, regen, 80.0, 9.0, 30.0, modulation, interpolation)
    sinusoidal, quadratic = modulation == "sinusoidal", interpolation == "quadratic"
    ends = delay * 8, (delay + depth) * 8
    expected = flanged(x.numpy(), fs, *ends, 0.75, regen / 100, 0.8, 9.0, 0.3, sinusoidal, quadratic)
    assert np.allclose(y, expected, rtol=0, atol=1e-12)


def test_effects_pass_gradients():
    x = waveform(1, 40).requires_grad_()
    for effect in (
        lambda x: F.phaser(x, 4000, decay=0.7, delay_ms=2.0),
        lambda x: F.flanger(x, 4000, regen=50.0, depth=3.0),
        lambda x: F.overdrive(x, 3.0),
        lambda x: F.contrast(x),
        lambda x: F.dcshift(x, 0.1, 0.05),
    ):
        assert torch.autograd.gradcheck(effect, (x,))


def test_dither_adds_a_triangle_over_the_time():
    for length in (1, 2, 1025):
        x = waveform(17, length)
        triangle = 1 - np.abs(2 * np.arange(length) / length - 1) if length > 1 else 1
        expected = np.round(x.numpy() * 32766 + triangle) / 32768
        assert np.array_equal(F.dither(x), expected)
    late = np.pad(expected - x.numpy(), ((0, 0), (1, 0)))[:, :-1]
    assert np.array_equal(F.dither(x, noise_shaping=True), expected + late)
    assert F.dither(x[:0]).shape == (0, 1025)


@pytest.mark.parametrize(("density", "picks", "less"), [("RPDF", 1, 0.5), ("GPDF", 7, 0.0)])
def test_dither_adds_one_number_of_the_signal(density, picks, less):
    x = waveform(3, 50)
    torch.manual_seed(4)
    y = F.dither(x, density)
    torch.manual_seed(4)
    places = [(int(torch.randint(2, (1,))), int(torch.randint(49, (1,)))) for _ in range(picks)]
    added = sum(float(x[place]) for place in places) - less
    assert np.allclose(y * 32768, np.round(x.numpy() * 32766 + added), rtol=0, atol=1e-9)


# --- vad --------------------------------------------------------------------------------------------------------------


def voiced(fs, silence_s, speech_s, noise_level=1e-3, seed=0):
    """Pulses at 120 Hz through a formant, behind noise alone."""
    rng = np.random.default_rng(seed)
    count = int((silence_s + speech_s) * fs)
    pulses = np.zeros(count)
    pulses[int(silence_s * fs) :: fs // 120] = 1.0
    formant = signal.lfilter([1.0], [1, -2 * 0.97 * np.cos(2 * np.pi * 700 / fs), 0.97**2], pulses)
    return torch.from_numpy(0.2 * formant + noise_level * rng.standard_normal(count))


def measured_start(x, fs, level=7.0, freq=20.0, search=1.0, allowed_gap=0.25):
    """SoX's procedure with its default settings, one channel, measurement by measurement."""
    width, period = int(fs * 2 / freq + 0.5), int(fs / freq + 0.5)
    n_fft = 16
    while n_fft < width:
        n_fft *= 2
    low, high = max(1, int(50 / fs * n_fft + 0.5)), min(n_fft // 2, int(6000 / fs * n_fft + 0.5))
    first, last = math.ceil(fs * 0.5 / 2000), min(n_fft // 4, math.floor(fs * 0.5 / 150))
    window = 2 / np.sqrt(width) * signal.get_window("hann", width)
    lifter = 2 / np.sqrt(high - low) * signal.get_window("hann", high - low)
    spectrum = noise = np.zeros(high - low)
    mean, levels = 0.0, []
    for k, end in enumerate(range(width, len(x), period)):
        magnitude = np.abs(np.fft.rfft(x[end - width : end] * window, n_fft))[low:high]
        keep = k / (k + 1) if k <= 6 else np.exp(-1 / (0.4 * freq))
        spectrum = keep * spectrum + (1 - keep) * magnitude
        follow = 0.0 if k <= 6 else np.where(spectrum**2 > noise, np.exp(-1 / (0.1 * freq)), np.exp(-1 / (0.01 * freq)))
        noise = follow * noise + (1 - follow) * spectrum**2
        rest = np.zeros(n_fft // 2)
        rest[low:high] = lifter * np.sqrt(np.maximum(0, spectrum**2 - 1.35 * noise))
        power = np.mean(np.abs(np.fft.rfft(rest)[first:last]) ** 2)
        levels.append(max(0.0, 21 + np.log(power)) if power > 0 else 0.0)
        mean += (1 - np.exp(-1 / (0.25 * freq))) * (levels[-1] - mean)
        if mean >= level:
            count = math.ceil(search * freq)
            back = [*reversed(levels), *[0.0] * count][:count]
            trigger = zero = count
            for j, one in enumerate(back):
                if one >= level and j <= trigger + int(allowed_gap * freq + 0.5):
                    trigger = zero = j
                elif one == 0 and trigger >= zero:
                    zero = j
            return max(0, end - width - min(count - 1, zero) * period)
    return len(x)


@pytest.mark.parametrize("fs", [8000, 16_000, 44_100])
@pytest.mark.parametrize("silence_s", [0.2, 1.5, 2.6])
def test_vad_cuts_what_lies_before_speech(fs, silence_s):
    x = voiced(fs, silence_s, 1.5)
    y = F.vad(x, fs)
    assert len(x) - len(y) == measured_start(x.numpy(), fs)
    assert torch.equal(y, x[len(x) - len(y) :])
    if silence_s > 1:
        assert silence_s - 0.25 < (len(x) - len(y)) / fs <= silence_s


def test_vad_takes_the_earliest_channel():
    fs = 16_000
    late, early = voiced(fs, 3.0, 1.0), voiced(fs, 2.0, 2.0)
    both = F.vad(torch.stack([late, early]), fs)
    assert both.shape == (2, len(F.vad(early, fs)))
    assert torch.equal(both[1], F.vad(early, fs))
    assert F.vad(early.float(), fs).shape[-1] == both.shape[-1]
    kept = F.vad(early, fs, pre_trigger_time=0.5).shape[-1]
    assert kept == both.shape[-1] + fs // 2


@pytest.mark.parametrize("pre_trigger_time", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("shape", [(32_000,), (2, 20_000), (2, 3, 100), (1, 1)])
def test_vad_of_no_speech_keeps_what_comes_before_a_trigger(pre_trigger_time, shape):
    kept = min(shape[-1], round(pre_trigger_time * 16_000))
    x = torch.full(shape, 1e-30)
    assert torch.equal(F.vad(x, 16_000, pre_trigger_time=pre_trigger_time), x[..., :kept])


def test_vad_of_no_speech_is_empty():
    assert F.vad(torch.zeros(2, 50_000), 16_000).shape == (2, 0)
    assert F.vad(torch.zeros(1), 16_000).shape == (0,)
    assert F.vad(torch.zeros(0, 2, 40_000), 16_000).shape == (0, 2, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.contrast(x, 101), r"enhancement_amount must lie in \[0, 100\], got 101"),
        (lambda x: F.dcshift(x, 3.0), r"shift must lie in \[-2, 2\], got 3"),
        (lambda x: F.dcshift(x, 0.1, 0.2), r"limiter_gain must be less than \|shift\| = 0.1, got 0.2"),
        (lambda x: F.overdrive(x, -1), r"gain must lie in \[0, 100\], got -1"),
        (lambda x: F.phaser(x, 8000, decay=1.0), r"decay must lie in \[0, 0.99\], got 1"),
        (lambda x: F.phaser(x, 8000, delay_ms=0.01), "delay_ms must be at least one sample, got 0.01 ms"),
        (lambda x: F.flanger(x.expand(5, 50), 8000), r"waveform must have the shape \(..., channels <= 4, time\)"),
        (lambda x: F.flanger(x, 8000, modulation="square"), "modulation must be one of sinusoidal, triangular"),
        (lambda x: F.dither(x, "blue"), "density_function must be one of TPDF, RPDF, GPDF, got 'blue'"),
        (lambda x: F.vad(x, 8000, hp_filter_freq=9000.0), "lp_filter_freq must lie above hp_filter_freq = 9000 Hz"),
        (lambda x: F.vad(x, 8000, hp_lifter_freq=3000.0), "lp_lifter_freq must lie above hp_lifter_freq = 3000 Hz"),
        (lambda x: F.vad(x, 8000, search_time=0), r"search_time must lie in \(0, inf\), got 0"),
        (lambda x: F.gain(x.int()), "x must be float32 or float64"),
    ],
)
def test_misuse_is_said(call, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        call(torch.zeros(1, 50))


def test_true_is_1_as_in_torchaudio():
    x = torch.randn(2, 300, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.equal(F.phaser(x, 8000, True), F.phaser(x, 8000, 1.0))
    assert torch.autograd.gradcheck(lambda x: F.phaser(x, 8000, True), x[:, :20].clone().requires_grad_())
