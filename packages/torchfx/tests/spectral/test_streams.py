"""Frames appear when their samples are there, and any split of a signal gives what the whole gives."""

from random import Random

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import torchfx as fx
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError
from torchfx.spectral import (
    CQT,
    MFCC,
    AmplitudeToDB,
    ComputeDeltas,
    GriffinLim,
    InverseCQT,
    InverseSpectrogram,
    LogMel,
    MelScale,
    MelSpectrogram,
    SlidingWindowCmn,
    Spectrogram,
)

from .test_spectra import noise

pytestmark = pytest.mark.filterwarnings("ignore:mel band", "ignore:length is above")
FS = 16_000
MADE = {
    "centred": lambda: Spectrogram(n_fft=64, hop_length=20),
    "centred among zeros": lambda: Spectrogram(n_fft=64, hop_length=20, pad_mode="constant"),
    "complex": lambda: Spectrogram(n_fft=63, win_length=50, hop_length=9, power=None),
    "from the start": lambda: Spectrogram(n_fft=64, win_length=40, hop_length=16, center=False),
    "hop above the window": lambda: Spectrogram(n_fft=32, hop_length=45),
    "mel": lambda: MelSpectrogram(n_fft=128, n_mels=10),
    "levels": lambda: Spectrogram(n_fft=64) | MelScale(n_mels=10, n_stft=33) | AmplitudeToDB(),
    "cepstra": lambda: MFCC(n_mfcc=5, n_mels=10, n_fft=64, log_mels=True),
    "whisper": lambda: LogMel("whisper", normalize=False),
    "kaldi": lambda: LogMel("kaldi"),
    "librosa": lambda: LogMel("librosa", normalize=False),
    "nemo": lambda: LogMel("nemo", normalize=False),
    "torchaudio": lambda: LogMel("torchaudio"),
    "slopes": lambda: LogMel("kaldi", 8) | ComputeDeltas(7),
    "slopes among zeros": lambda: Spectrogram(n_fft=64) | ComputeDeltas(mode="constant"),
    "slopes of reflected ends": lambda: Spectrogram(n_fft=64) | ComputeDeltas(9, "reflect"),
    "slopes of slopes": lambda: MFCC(n_mfcc=5, n_mels=10, n_fft=64, log_mels=True) | ComputeDeltas() | ComputeDeltas(3),
    "running mean": lambda: LogMel("kaldi", 8) | SlidingWindowCmn(9, 4),
    "running mean from far": lambda: LogMel("kaldi", 8) | SlidingWindowCmn(3, 12),
    "running mean of more than there is": lambda: LogMel("kaldi", 8) | SlidingWindowCmn(600, 100, norm_vars=True),
    "running mean around": lambda: LogMel("kaldi", 8) | SlidingWindowCmn(6, center=True, norm_vars=True),
    "running mean around more than there is": lambda: LogMel("kaldi", 8) | SlidingWindowCmn(99, center=True),
    "slopes of what a running mean leaves": lambda: LogMel("kaldi", 8) | SlidingWindowCmn(5, 2) | ComputeDeltas(),
    "behind a filter": lambda: fx.filter.HiButterworth(80) | MelSpectrogram(n_fft=64, n_mels=10),
    "and back": lambda: Spectrogram(64, 50, 20, power=None) | InverseSpectrogram(64, 50, 20),
    "and back, normalised": lambda: (
        Spectrogram(63, None, 9, power=None, normalized=True) | InverseSpectrogram(63, None, 9, normalized=True)
    ),
    "and back to a length": lambda: Spectrogram(64, power=None) | InverseSpectrogram(64, length=2300),
    "and back to more than there is": lambda: Spectrogram(64, power=None) | InverseSpectrogram(64, length=2600),
    "and back from the start": lambda: (
        Spectrogram(64, None, 30, window="hamming", center=False, power=None)
        | InverseSpectrogram(64, None, 30, window="hamming", center=False)
    ),
    "and back by windows side by side": lambda: (
        Spectrogram(32, None, 32, window="boxcar", power=None) | InverseSpectrogram(32, None, 32, window="boxcar")
    ),
    "and back, then a filter": lambda: (
        Spectrogram(64, power=None) | InverseSpectrogram(64) | fx.filter.LoButterworth(90)
    ),
    "behind a late step": lambda: fx.effect.Limiter() | MelSpectrogram(n_fft=64, n_mels=10),
}


def blocks(x, seed):
    random, at = Random(seed), 0
    while at < x.shape[-1]:
        size = random.choice([0, 1, 7, 160, 400, 1111])
        yield x[..., at : at + size]
        at += size


@pytest.mark.parametrize("name", MADE)
def test_what_is_not_finite_is_where_it_is_in_the_whole(name):
    chain, x = MADE[name](), noise(2, 4000) / 5
    x[0, 1357], x[1, 1500], x[1, 2700] = float("nan"), float("inf"), -float("inf")
    with fx.sample_rate(FS):
        whole = chain(x)
    stream = fx.Stream(chain, FS, 2)
    y = torch.cat([*(stream.process(block) for block in blocks(x, 0)), stream.flush()], dim=-1)
    assert torch.equal(y.isfinite(), whole.isfinite())
    assert torch.allclose(
        y[y.isfinite()], whole[y.isfinite()], atol=1e-5 * float(noise(2, 4000).abs().max()), rtol=1e-5
    )


@pytest.mark.parametrize("time", [2500, 4000])
@pytest.mark.parametrize("name", MADE)
def test_any_split_equals_the_whole(name, time):
    chain, x = MADE[name](), noise(2, time) / 5
    with fx.sample_rate(FS):
        whole = chain(x)
    stream = fx.Stream(chain, FS, 2)
    for seed in range(2):  # the second signal starts again
        parts = [stream.process(block) for block in blocks(x, seed)]
        y = torch.cat([*parts, stream.flush()], dim=-1)
        assert y.shape == whole.shape
        assert float((y - whole).abs().max()) <= 2e-6 * float(whole.abs().max())


REPEATED = {
    "whisper": lambda: LogMel("whisper", normalize=False),
    "kaldi": lambda: LogMel("kaldi"),
    "mel": lambda: MelSpectrogram(n_fft=128, n_mels=10),
    "powers": lambda: Spectrogram(n_fft=64, hop_length=20),
    "magnitudes": lambda: Spectrogram(n_fft=64, hop_length=45, power=1.0),
    "cubes": lambda: Spectrogram(n_fft=64, power=3.0),
    "complex": lambda: Spectrogram(n_fft=64, power=None),
    "cepstra": lambda: MFCC(n_mfcc=5, n_mels=10, n_fft=64, log_mels=True),
    "behind a filter": lambda: fx.filter.HiButterworth(80) | MelSpectrogram(n_fft=64, n_mels=10),
    "behind a late step": lambda: fx.effect.Limiter(-20.0) | MelSpectrogram(n_fft=64, n_mels=10),
    "at another rate": lambda: fx.filter.Resample(11_025) | Spectrogram(n_fft=64, hop_length=20),
    "slopes behind a filter": lambda: fx.filter.HiButterworth(80) | LogMel("kaldi", 8) | ComputeDeltas(),
    "levels behind a filter": lambda: fx.filter.HiButterworth(80) | Spectrogram(n_fft=64) | AmplitudeToDB(),
}


@pytest.mark.parametrize("size", [160, 333])
@pytest.mark.parametrize("name", REPEATED)
def test_blocks_like_the_last_one_give_what_steps_give(name, size):
    # The second stream's blocks are views with the other sign, which never take the short way.
    chain, x = REPEATED[name](), noise(2, 12 * size)
    fast, slow = fx.Stream(chain, FS, 2), fx.Stream(chain, FS, 2)
    for i, block in enumerate(x.split(size, dim=-1)):
        like = {4: block.clone().requires_grad_(), 7: block.T.contiguous().T}.get(i, block)
        found, expected = fast.process(like), slow.process(torch._neg_view(-block))
        assert torch.equal(found, expected)
        assert not found.requires_grad
        assert all(map(torch.equal, fast.state, slow.state))
    assert torch.equal(fast.flush(), slow.flush())


def test_frames_of_repeated_blocks_are_the_caller_s():
    stream, x = fx.Stream(LogMel("whisper", normalize=False), FS, 1), noise(1, 1600)
    found = [stream.process(x) for _ in range(4)]
    kept = [y.clone() for y in found]
    x.zero_()
    stream.process(x)
    assert all(map(torch.equal, found, kept))
    assert torch.equal(found[2], found[3])


def test_profilers_and_modes_see_repeated_blocks():
    stream, x = fx.Stream(LogMel("whisper", normalize=False), FS, 1), noise(1, 1600)
    for _ in range(3):
        stream.process(x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        stream.process(x)
    assert any("mel_forward" in event.key for event in profile.key_averages())

    class Heard(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            heard.add(str(function))
            return function(*args, **(kwargs or {}))

    heard = set()
    with Heard():
        stream.process(x)
    assert "torchfx_ext.mel_forward.default" in heard


def test_a_refused_block_leaves_the_stream_as_it_was():
    stream, other, x = *(fx.Stream(LogMel("kaldi"), FS, 1) for _ in range(2)), noise(1, 1600)
    for _ in range(3):
        stream.process(x), other.process(x)
    with pytest.raises(ArgumentError, match="block must"):
        stream.process(noise(2, 1600))
    assert torch.equal(stream.process(x), other.process(x))


def test_a_frame_appears_with_its_last_sample():
    stream = fx.Stream(Spectrogram(n_fft=64, hop_length=20), FS, 1)
    x = noise(1, 300)
    seen = 0
    for t in range(300):
        seen += stream.process(x[:, t : t + 1]).shape[-1]
        # Frame f ends with sample 20 f + 31; the first one also needs what is reflected, samples 1 to 32.
        assert seen == (0 if t < 32 else (t - 31) // 20 + 1)
    assert seen + stream.flush().shape[-1] == 16


@pytest.mark.parametrize(
    ("make", "first"),
    [
        (lambda: ComputeDeltas(), 0),
        (lambda: ComputeDeltas(9), 0),
        (lambda: SlidingWindowCmn(6, 4), 3),
        (lambda: SlidingWindowCmn(6, 1, norm_vars=True), 0),
        (lambda: SlidingWindowCmn(6, center=True), 3),
        (lambda: SlidingWindowCmn(7, center=True), 3),
    ],
)
def test_a_frame_s_change_appears_as_late_as_it_says(make, first):
    # Nothing appears before more than `first` frames can; then each frame does `latency_frames` behind its own.
    change = make()
    stream = fx.Stream(Spectrogram(n_fft=16, hop_length=8, center=False) | change, FS, 1)
    x = noise(1, 16 + 8 * 39)
    given = 0
    for come, at in enumerate([0, *range(16, x.shape[-1], 8)], 1):
        given += stream.process(x[:, at : at + (8 if at else 16)]).shape[-1]
        ready = come - change.latency_frames
        assert given == (ready if ready > first else 0)
    assert given + stream.flush().shape[-1] == 40


@pytest.mark.parametrize("change", [lambda: ComputeDeltas(7), lambda: SlidingWindowCmn(9, 4, norm_vars=True)])
def test_changes_are_saved_and_restored(change):
    chain, x = LogMel("kaldi", 20) | change(), noise(2, 8000)
    first, second = fx.Stream(chain, FS, 2), fx.Stream(chain, FS, 2)
    first.process(x[:, :3234])
    second.state = first.state
    assert torch.equal(first.process(x[:, 3234:]), second.process(x[:, 3234:]))
    assert torch.equal(first.flush(), second.flush())


def test_a_constant_has_no_deviation():
    for x in (torch.full((3, 50), 0.1), torch.full((3, 50), -23.02585, dtype=torch.float64)):
        assert (SlidingWindowCmn(9, 4, norm_vars=True)(x) == 0).all()


def test_a_state_is_saved_and_restored():
    chain, x = LogMel("kaldi", 20), noise(2, 4000)
    first, second = fx.Stream(chain, FS, 2), fx.Stream(chain, FS, 2)
    begun = first.process(x[:, :1234])
    second.state = first.state
    assert torch.equal(first.process(x[:, 1234:]), second.process(x[:, 1234:]))
    assert begun.shape[-1] == (1234 - 400) // 160 + 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: LogMel("whisper"), "normalize=False leaves out"),
        (lambda: LogMel("nemo"), "normalize=False leaves out"),
        (lambda: MFCC(), "range of 80 dB"),
        (lambda: Spectrogram() | AmplitudeToDB(top_db=80), "loudest value"),
        (lambda: Spectrogram() | ComputeDeltas(mode="circular"), "whose end lies before its start"),
        (lambda: Spectrogram(pad=3), "needs the whole signal"),
        (lambda: Spectrogram() | GriffinLim(), "each iteration changes the phases"),
        (lambda: CQT(), "parts of the spectrum of all samples"),
        (lambda: InverseCQT(hop_length=32), "parts of the spectrum of all samples"),
    ],
)
def test_what_needs_the_whole_signal_says_so(make, reason):
    with pytest.raises(StreamError, match=reason):
        fx.Stream(make(), FS, 1)


def test_a_signal_shorter_than_its_padding_is_refused_at_its_end():
    stream = fx.Stream(Spectrogram(), FS, 1)
    assert stream.process(noise(1, 150)).shape == (1, 201, 0)
    with pytest.raises(ArgumentError, match="at least 201 samples"):
        stream.flush()


def test_features_do_not_change_while_a_signal_runs():
    chain = fx.effect.Gain(0.5) | MelSpectrogram(n_fft=64, n_mels=10)
    stream = fx.Stream(chain, FS, 1)
    stream.process(noise(1, 1000))
    chain[0].gain = 0.25
    assert stream.process(noise(1, 1000)).isfinite().all()
    chain[1].n_mels = 12
    with pytest.raises(StreamError, match="reset"):
        stream.process(noise(1, 1000))


def test_spectra_become_samples_block_by_block():
    inverse, x = InverseSpectrogram(64, 40, 12), Spectrogram(64, 40, 12, power=None)(noise(2, 900, dtype=torch.float64))
    whole, random = inverse(x), Random(3)
    stream = fx.Stream(inverse, FS, 2)
    parts, at = [], 0
    while at < x.shape[-1]:
        count, again = random.choice([0, 1, 2, 7]), fx.Stream(inverse, FS, 2)
        if parts:
            again.state, stream = stream.state, again
        parts.append(stream.process(x[..., at : at + count]))
        at += count
        given = sum(part.shape[-1] for part in parts)
        assert given == max(0, 12 * min(at, x.shape[-1]) - 32) >= 12 * (min(at, x.shape[-1]) - inverse.latency_frames)
    assert torch.allclose(torch.cat([*parts, stream.flush()], dim=-1), whole, atol=1e-12)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (torch.zeros(2, 33, 4), "block must be complex, got torch.float32"),
        (torch.zeros(3, 33, 4) + 0j, r"shape \(2, bins, frames\), got \(3, 33, 4\)"),
        (torch.zeros(2, 30, 4) + 0j, "x must have n_fft // 2 \\+ 1 = 33 bins, got 30"),
    ],
)
def test_blocks_of_features_are_checked(block, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        fx.Stream(InverseSpectrogram(64), FS, 2).process(block)


def test_levels_of_features_come_in_blocks():
    x = Spectrogram(64)(noise(2, 900))
    stream = fx.Stream(AmplitudeToDB(), FS, 2)
    parts = [stream.process(part) for part in x.split(5, dim=-1)]
    assert torch.allclose(torch.cat([*parts, stream.flush()], dim=-1), AmplitudeToDB()(x))


def test_too_few_frames_are_refused_whole_and_in_a_stream():
    inverse, frame = InverseSpectrogram(64, pad=3), torch.zeros(1, 33, 1) + 0j
    stream = fx.Stream(inverse, FS, 1)
    stream.process(frame)
    for call in (lambda: inverse(frame), stream.flush):
        with pytest.raises(ArgumentError, match=r"at least 2 frames of 64 samples, 32 apart, .* got 1"):
            call()


def test_live_audio_refuses_frames():
    chain = Spectrogram(64, power=None) | InverseSpectrogram(64)
    with pytest.raises(StreamError, match="features return frames"):
        fx.realtime.RealtimeProcessor(chain, fx.realtime.FileClock(noise(2, 4000))).start()
