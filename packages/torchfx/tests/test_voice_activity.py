"""Speech is found where it is, in any blocks, at any rate, in batches."""

import numpy as np
import pytest
import torch
from scipy import signal

from torchfx import voice_activity
from torchfx.errors import ArgumentError, SampleRateError


def voiced(fs, spans, length_s, seed=0, snr_db=20.0, hz=120):
    """Pulses through formants within some spans, in white noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(length_s * fs)) / fs
    speech = np.zeros(len(time), bool)
    for start, end in spans:
        speech |= (time >= start) & (time < end)
    x = (np.floor(time * hz) > np.floor((time - 1 / fs) * hz)) * speech.astype(float)
    for formant, width in ((700, 120), (1200, 150), (2600, 200)):
        r = np.exp(-np.pi * width / fs)
        x = signal.lfilter([1.0], [1, -2 * r * np.cos(2 * np.pi * formant / fs), r**2], x)
    x *= 0.1 / np.sqrt(np.mean(x[speech] ** 2)) if speech.any() else 1.0
    return torch.from_numpy(x + 0.1 * 10 ** (-snr_db / 20) * rng.standard_normal(len(time))), speech


@pytest.mark.parametrize("fs", [11_025, 16_000, 44_100, 48_000])
@pytest.mark.parametrize("snr_db", [20.0, 10.0])
def test_speech_is_found_where_it_is(fs, snr_db):
    spans = [(1.0, 1.8), (2.5, 2.9), (4.0, 5.5)]
    x, _ = voiced(fs, spans, 6.5, snr_db=snr_db)
    for given in (x, x.float(), torch.stack([torch.randn_like(x) * 1e-3, x])):
        found = voice_activity.intervals(given, fs, keep_s=0.0)
        assert len(found) == 3
        for (start, end), (first, last) in zip(found, spans, strict=True):
            assert abs(start / fs - first) < 0.15
            assert abs(end / fs - last) < 0.15


@pytest.mark.parametrize("fs", [8000, 16_000])
@pytest.mark.parametrize("snr_db", [30.0, 10.0])
def test_most_frames_are_right(fs, snr_db):
    x, speech = voiced(fs, [(1.0, 2.0), (3.0, 3.5), (4.5, 6.0), (7.0, 7.2)], 9.0, snr_db=snr_db)
    frames = torch.from_numpy(speech).unflatten(0, (-1, fs // 100)).any(-1)
    found = voice_activity.probabilities(x, fs) >= 0.5
    assert found[frames].double().mean() > 0.9
    assert found[~frames].double().mean() < 0.16  # 0.06 of it within the 40 ms before and behind speech


def test_stationary_noise_is_no_speech():
    x = torch.randn(17, 160_000, generator=torch.Generator().manual_seed(0))
    for level in (1e-6, 1e-2, 1.0):
        assert (voice_activity.probabilities(level * x, 16_000) >= 0.5).double().mean() < 0.06
    assert voice_activity.intervals(torch.zeros(2, 50_000), 16_000) == []
    assert voice_activity.intervals(0.01 * x[0], 16_000) == []


@pytest.mark.parametrize("sizes", [(1, 7, 300), (160,), (5000, 1), (40_000,)])
@pytest.mark.parametrize("time", [1, 159, 161, 1025, 40_000])
def test_blocks_equal_the_whole(sizes, time):
    x = voiced(16_000, [(0.8, 1.5)], 2.5)[0][:time].expand(2, 3, time)
    whole = voice_activity.probabilities(x, 16_000)
    assert whole.shape == (2, 3, -(-time // 160))
    if len(sizes) > 2 and time > 2000:
        sizes = (1000, 1, 2000)
    detector, parts, start, i, known = voice_activity.Detector(16_000), [], 0, 0, 0
    while start < time:
        end = min(time, start + sizes[i % len(sizes)])
        parts.append(detector.process(x[..., start:end]))
        start, i, known = end, i + 1, known + parts[-1].shape[-1]
        assert known == max(0, (start - detector.latency_samples) // 160)
    parts.append(detector.finish())
    assert torch.allclose(torch.cat(parts, dim=-1), whole, rtol=0, atol=1e-9)


def test_each_signal_of_a_batch_is_by_itself():
    signals = torch.stack([voiced(16_000, [(0.5 + i / 10, 1.5)], 2.0, seed=i)[0] for i in range(5)])
    both = voice_activity.probabilities(signals, 16_000)
    for one, row in zip(signals, both, strict=True):
        assert torch.allclose(voice_activity.probabilities(one, 16_000), row, rtol=0, atol=1e-9)
    strided = torch.stack([signals, signals], dim=-1)[..., 0]
    assert torch.equal(voice_activity.probabilities(strided, 16_000), both)
    assert voice_activity.probabilities(signals[:0], 16_000).shape == (0, 200)
    assert both.dtype == torch.float64
    assert voice_activity.probabilities(signals.float(), 16_000).dtype == torch.float32


def test_the_level_does_not_matter():
    x = voiced(16_000, [(1.0, 2.0)], 3.0)[0]
    assert torch.allclose(
        voice_activity.probabilities(x, 16_000), voice_activity.probabilities(100 * x, 16_000), atol=1e-3
    )


def test_intervals_join_drop_and_widen():
    fs = 16_000
    x, _ = voiced(fs, [(1.0, 1.5), (1.75, 2.2), (3.5, 3.6)], 5.0, snr_db=30.0)
    assert len(voice_activity.intervals(x, fs, least_pause_s=0.05, least_speech_s=0.0)) == 3
    assert len(voice_activity.intervals(x, fs, least_pause_s=0.3, least_speech_s=0.0)) == 2
    [plain] = voice_activity.intervals(x, fs, least_speech_s=0.3, keep_s=0.0)
    [wide] = voice_activity.intervals(x, fs, least_speech_s=0.3, keep_s=0.2)
    assert wide == (plain[0] - 3200, plain[1] + 3200)
    assert voice_activity.intervals(x, fs, threshold=0.0) == [(0, len(x))]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: voice_activity.probabilities(torch.zeros(10), 7999), r"fs must lie in \[8000, inf\) Hz, got 7999"),
        (lambda: voice_activity.intervals(torch.zeros(1, 2, 9), 8000), r"x must have the shape \(time,\)"),
        (lambda: voice_activity.intervals(torch.zeros(9), 8000, 1.5), r"threshold must lie in \[0, 1\], got 1.5"),
        (
            lambda: voice_activity.intervals(torch.zeros(9), 8000, keep_s=-1),
            r"keep_s must lie in \[0, inf\) s, got -1 s",
        ),
        (lambda: voice_activity.Detector(8000).finish(), "finish must be called after at least one block"),
    ],
)
def test_misuse_is_said(call, message):
    with pytest.raises((ArgumentError, SampleRateError), match=message):
        call()
    detector = voice_activity.Detector(8000)
    detector.process(torch.zeros(2, 100))
    with pytest.raises(ArgumentError, match=r"block must have the leading dimensions of the first, \(2,\), got"):
        detector.process(torch.zeros(3, 100))
    with pytest.raises(ArgumentError, match="block must be finite, got NaN or infinite samples"):
        detector.process(torch.full((2, 1000), torch.nan))
    assert detector.process(torch.zeros(2, 1000)).shape[-1] > 0  # as if the lost block had never been there
