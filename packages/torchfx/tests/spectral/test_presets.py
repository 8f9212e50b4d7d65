"""Presets against the projects' published formulas, written out in NumPy's float64."""

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from torchfx.design.mel import mel_filters
from torchfx.spectral import ComputeDeltas, GriffinLim, LogMel, SlidingWindowCmn, SpecAugment, Spectrogram, TimeMasking

from .test_spectra import noise

pytestmark = pytest.mark.filterwarnings("ignore:mel band")


def spectra(x, starts, window, n_fft):
    return np.abs(np.stack([np.fft.rfft(x[s : s + len(window)] * window, n_fft) for s in starts], axis=-1)) ** 2


def whisper(x):
    x = np.pad(x, 200, mode="reflect")
    power = spectra(x, range(0, len(x) - 399, 160), signal.get_window("hann", 400), 400)[:, :-1]
    levels = np.log10(np.maximum(mel_filters(201, 16_000, 80, norm="slaney", mel_scale="slaney") @ power, 1e-10))
    return (np.maximum(levels, levels.max() - 8) + 4) / 4


def kaldi(x):
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85
    frames = []
    for start in range(0, len(x) - 399, 160):
        frame = x[start : start + 400] * 32768
        frame = frame - frame.mean()
        frame = frame - 0.97 * np.concatenate([frame[:1], frame[:-1]])
        frames.append(np.abs(np.fft.rfft(frame * window, 512)) ** 2)
    bands = mel_filters(257, 16_000, 23, 20.0, mel_scale="kaldi") @ np.stack(frames, axis=-1)
    return np.log(np.maximum(bands, np.finfo(np.float32).eps))


def librosa(x):
    x = np.pad(x, 1024)
    power = spectra(x, range(0, len(x) - 2047, 512), signal.get_window("hann", 2048), 2048)
    bands = mel_filters(1025, 16_000, 128, norm="slaney", mel_scale="slaney") @ power
    levels = 10 * np.log10(np.maximum(bands, 1e-10))
    return np.maximum(levels, levels.max() - 80)


def slaney_filters(rate, n_fft, bands):
    """Return what `librosa.filters.mel` gives, with loops: triangles between mel corners, each of area 1 over Hz."""

    def hz(mel):
        return mel * 200 / 3 if mel < 15 else 1000 * np.exp((mel - 15) * np.log(6.4) / 27)

    top = 15 + np.log(rate / 2 / 1000) * 27 / np.log(6.4)
    corners = [hz(top * i / (bands + 1)) for i in range(bands + 2)]
    filters = np.zeros((bands, n_fft // 2 + 1))
    for m in range(bands):
        low, middle, high = corners[m : m + 3]
        for k in range(n_fft // 2 + 1):
            f = k * rate / n_fft
            filters[m, k] = max(0, min((f - low) / (middle - low), (high - f) / (high - middle))) * 2 / (high - low)
    return filters


def nemo_batch(x, lengths, pad_to=0):
    """Return `FilterbankFeatures` in evaluation: of signals filled up with zeros, (batch, 64, frames), and lengths.

    Source: NVIDIA NeMo, nemo/collections/asr/parts/preprocessing/features.py, with the defaults of
    AudioToMelSpectrogramPreprocessor. There is dither in training only. Frame f has its middle at sample 160 f. There
    is one more than whole hops, and only length // 160 count: others don't enter mean and deviation and are 0.
    """
    valid = lengths // 160
    emphasised = np.concatenate([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], axis=1)
    emphasised[np.arange(x.shape[1]) >= lengths[:, None]] = 0
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(320) / 319)
    around = np.pad(emphasised, [(0, 0), (256, 256)])
    starts = range(
        96, 96 + x.shape[1] // 160 * 160 + 1, 160
    )  # torch.stft puts a short window in the transform's middle
    frames = np.stack([np.abs(np.fft.rfft(around[:, s : s + 320] * window, 512)) ** 2 for s in starts], axis=-1)
    found = np.log(slaney_filters(16_000, 512, 64) @ frames + 2.0**-24)
    for item, count in zip(found, valid, strict=True):
        counted = item[:, :count]
        mean, deviation = counted.mean(-1, keepdims=True), counted.std(-1, ddof=1, keepdims=True)
        item[:, :count] = (counted - mean) / (deviation + 1e-5)
        item[:, count:] = 0
    missing = -found.shape[-1] % pad_to if pad_to else 0
    return np.pad(found, [(0, 0), (0, 0), (0, missing)]), valid


def nemo(x):
    found, [frames] = nemo_batch(x[None], np.array([len(x)]))
    return found[0, :, :frames]


def torchaudio(x):
    x = np.pad(x, 200, mode="reflect")
    power = spectra(x, range(0, len(x) - 399, 200), signal.get_window("hann", 400), 400)
    return 10 * np.log10(np.maximum(mel_filters(201, 16_000, 128) @ power, 1e-10))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("formula", [whisper, kaldi, librosa, nemo, torchaudio], ids=lambda each: each.__name__)
def test_presets_are_the_projects_formulas(formula, dtype):
    fade = torch.linspace(-3, 0, 24_000, dtype=torch.float64)
    x = (noise(24_000, dtype=torch.float64) * 10**fade).to(dtype)  # 60 dB of level
    exact = formula(x.double().numpy())
    y = LogMel(formula.__name__, fs=16_000)(x)
    assert y.shape == exact.shape
    bound = 1e-5 if dtype == torch.float32 else 1e-10
    np.testing.assert_allclose(y.double(), exact, atol=bound * np.abs(exact).max(), rtol=0)


@pytest.mark.parametrize("time", [320, 479, 480, 481, 4000, 16_001])
def test_nemo_s_frames_are_those_that_count_in_its_batches(time):
    longest = 20_000
    x = noise(2, longest, dtype=torch.float64)
    padded = x.clone()
    padded[1, time:] = 0
    batch, valid = nemo_batch(padded.numpy().copy(), np.array([longest, time]), pad_to=16)
    assert batch.shape[-1] % 16 == 0
    for item, count, alone in zip(batch, valid, (x[0], x[1, :time]), strict=True):
        y = LogMel("nemo", fs=16_000)(alone).numpy()
        assert y.shape[-1] == count == len(alone) // 160
        np.testing.assert_allclose(y, item[:, :count], atol=1e-9)
        assert (item[:, count:] == 0).all()


def test_nemo_s_silence_is_0_and_a_single_frame_is_refused():
    assert (LogMel("nemo", fs=16_000)(torch.zeros(1600, dtype=torch.float64)).abs() < 1e-6).all()
    with pytest.raises(fx.ArgumentError, match="at least two frames"):  # NeMo raises, too, on a GPU
        LogMel("nemo", fs=16_000)(noise(319))
    with pytest.raises(fx.ArgumentError, match="at least 160 samples"):
        LogMel("nemo", fs=16_000)(noise(159))


def test_a_rate_that_contradicts_a_preset_is_refused():
    with pytest.raises(fx.SampleRateError, match="preset 'whisper' is for 16000 Hz, and the signal has 44100 Hz"):
        fx.Wave(noise(1, 44_100), 44_100) | LogMel("whisper")
    with pytest.raises(fx.SampleRateError, match="preset 'nemo' is for 16000 Hz"):
        LogMel("nemo", fs=8000)


def test_a_running_mean_is_that_of_its_window():
    x = noise(3, 40, dtype=torch.float64) + 1000
    for center in (False, True):
        y = SlidingWindowCmn(cmn_window=9, min_cmn_window=4, center=center, norm_vars=True)(x)
        for t in range(40):
            first, end = (t - 4, t + 5) if center else (t - 9, t + 1)
            first, end = (0, end - first if center else max(t + 1, 4)) if first < 0 else (first, end)
            first, end = (max(0, first - (end - 40)), 40) if end > 40 else (first, end)
            part = x[:, first:end]
            expected = (x[:, t] - part.mean(-1)) / part.std(-1, correction=0)
            assert torch.allclose(y[:, t], expected, atol=1e-9)


def test_slopes_are_those_of_regression():
    x = noise(4, 30, dtype=torch.float64)
    y = ComputeDeltas(win_length=7)(x)
    for t in range(3, 27):
        expected = np.polyfit(np.arange(-3, 4), x[:, t - 3 : t + 4].T.numpy(), 1)[0]
        np.testing.assert_allclose(y[:, t], expected, atol=1e-12)


def test_masks_are_stretches_within_their_bounds():
    torch.manual_seed(0)
    for _ in range(20):
        hidden = (TimeMasking(20, iid_masks=True)(torch.ones(5, 8, 50)) == 0).all(1)
        assert (hidden.sum(-1) < 20).all()
        assert (hidden.int().diff(dim=-1).abs().sum(-1) <= 2).all()
    assert (TimeMasking(40, p=0.1)(torch.ones(1, 8, 50)) == 0).all(1).sum() < 5
    x = noise(3, 20, 50)
    y = SpecAugment(2, 10, 2, 5)(x)
    assert torch.equal(y[y != x], x.mean().expand(int((y != x).sum())))


def test_griffin_lim_finds_a_signal_with_these_magnitudes():
    torch.manual_seed(0)
    x = torch.sin(torch.cumsum(torch.linspace(0.05, 1.5, 8000, dtype=torch.float64), 0))
    magnitudes = Spectrogram(n_fft=256, hop_length=64, power=1)(x)

    def distance(iterations):
        found = GriffinLim(256, iterations, hop_length=64, power=1, rand_init=False, length=8000)(magnitudes)
        return float((Spectrogram(n_fft=256, hop_length=64, power=1)(found) - magnitudes).norm() / magnitudes.norm())

    assert distance(60) < 0.1
    assert distance(60) < 0.5 * distance(1)
