"""Augmentations along the time axis, of recordings and of codecs: closed forms, alignment, repeatability."""

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from processors.cases import noise
from torchfx import audio_io, augment
from torchfx.audio_io.coding import CODECS
from torchfx.augment import (
    BackgroundNoise,
    Codec,
    Compose,
    Convolve,
    Crop,
    OneOf,
    PacketLoss,
    Random,
    Shift,
    SomeOf,
    TimeMask,
    TimeStretch,
    Varispeed,
    choice,
    uniform,
)
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError, SampleRateError

FS = 16_000
SHAPES = [(1, 1, 1), (3, 17, 1025), (5, 2, 4000)]


@pytest.fixture
def folder(tmp_path):
    """Noises and responses: of several rates, lengths and numbers of channels, in folders."""
    (tmp_path / "noises" / "more").mkdir(parents=True)
    (tmp_path / "responses").mkdir()
    audio_io.save(tmp_path / "noises/hiss.wav", noise(1, 5000) / 8, FS)
    audio_io.save(tmp_path / "noises/more/two.flac", noise(2, 900) / 8, 8000)
    (tmp_path / "noises/notes.txt").write_text("no audio")
    ramp = torch.exp(-torch.arange(400) / 60)
    response = torch.stack([noise(400) * ramp, noise(2, 400)[1] * ramp]) / 8
    response[:, 7] = 1.0
    audio_io.save(tmp_path / "responses/room.wav", response, FS)
    audio_io.save(tmp_path / "responses/click.wav", torch.tensor([[0.0, 0.0, 0.5]]), FS)
    return tmp_path


def cases(folder):
    return {
        "shift": Shift(uniform(-0.05, 0.05), fs=FS, p=0.7),
        "wrap": Shift(uniform(-0.3, 0.3), wrap=True, fs=FS),
        "mask": TimeMask(uniform(0, 0.5), p=0.7),
        "stretch": TimeStretch(uniform(0.7, 1.4), n_fft=256, p=0.7),
        "wsola": TimeStretch(uniform(0.7, 1.4), "wsola", n_fft=256),
        "varispeed": Varispeed(uniform(0.7, 1.4), p=0.7),
        "crop": Crop(0.1, fs=FS),
        "longer": Crop(0.5, fs=FS),
        "background": BackgroundNoise(folder / "noises", uniform(0, 20), fs=FS, p=0.7),
        "rooms": Convolve(folder / "responses", fs=FS, p=0.7),
        "codec": Codec(choice(["opus", "mulaw", "gsm", "mp3", "vorbis", "alaw"]), fs=FS, p=0.7),
        "packets": PacketLoss(uniform(0.1, 0.6), 2.0, fs=FS, p=0.7),
        "repeat": PacketLoss(uniform(0.1, 0.6), 2.0, "repeat", fs=FS),
    }


NAMES = [
    "shift", "wrap", "mask", "stretch", "wsola", "varispeed", "crop", "longer", "background", "rooms", "codec",
    "packets", "repeat",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_example_is_changed_by_itself_and_repeatably(folder, name, shape):
    augmentation = cases(folder)[name]
    x = noise(*shape) / 4
    torch.manual_seed(0)
    drawn = augmentation.draw(len(x))
    y = augmentation.run(x, drawn)
    assert torch.equal(augmentation.run(x, drawn), y)
    assert y.shape[:-1] == x.shape[:-1]
    assert y.dtype == x.dtype
    if name not in ("crop", "longer"):
        assert y.shape == x.shape
        assert torch.equal(y[~drawn["applied"]], x[~drawn["applied"]])
    strided = torch.stack([x, x], dim=-1)[..., 0]
    assert torch.allclose(augmentation.run(strided, drawn), y, rtol=0, atol=1e-6)
    wide = augmentation.run(x.double(), drawn)
    assert wide.dtype == torch.float64
    assert torch.allclose(wide.float(), y, rtol=0, atol=1e-5)
    torch.manual_seed(0)
    assert torch.equal(augmentation(x), y)
    twin = pickle.loads(pickle.dumps(augmentation))
    assert torch.equal(twin.run(x, drawn), y)
    assert torch.equal(copy.deepcopy(augmentation).run(x, drawn), y)
    assert augmentation.eval()(x) is x
    augmentation.train()
    empty = augmentation.run(x[:0], augmentation.draw(0))
    assert empty.shape == (0, *y.shape[1:])
    if "seed" not in drawn:  # the packets of an example depend on its place in the batch
        one = {key: value[-1:] for key, value in drawn.items()}
        assert torch.allclose(augmentation.run(x[-1:], one), y[-1:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_they_stand_among_others(folder, name):
    x = noise(6, 2, 2000) / 4
    row = Compose([Random(fx.effect.Gain, gain=uniform(0.5, 1)), cases(folder)[name], fx.effect.Invert()], generator=3)
    drawn = row.draw(6)
    expected = x
    for part, own in zip(row.parts, drawn["parts"], strict=True):
        expected = part.run(expected, own) if hasattr(part, "run") else part(expected)
    assert torch.allclose(row.run(x, drawn), expected, rtol=0, atol=1e-6)
    wave = fx.Wave(x[0], FS) | cases(folder)[name]
    assert wave.fs == FS


@pytest.mark.parametrize("name", ["shift", "crop", "background", "rooms", "codec", "packets"])
def test_they_follow_the_rate_of_a_wave(folder, name):
    """Also those that work at another rate inside, as GSM does, and files of another rate."""
    x = noise(12, 2, 2000) / 8
    given, following = cases(folder)[name], cases(folder)[name]
    following.fs = None
    drawn = given.draw(12)
    with fx.sample_rate(FS):
        assert torch.equal(following.run(x, drawn), given.run(x, drawn))
    with pytest.raises(SampleRateError, match="has no sample rate"):
        following.run(x, drawn)
    with fx.sample_rate(8000), pytest.raises(SampleRateError, match="was built for fs=16000 Hz"):
        given.run(x, drawn)


def test_shift_moves_by_whole_samples():
    x = torch.arange(1.0, 7.0).expand(4, 1, 6)
    moved = Shift(choice([0.0]), fs=1)
    drawn = {"applied": torch.tensor([True, True, True, False]), "time": torch.tensor([2.0, -1.4, 9.0, 1.0])}
    assert moved.run(x, drawn)[:, 0].tolist() == [
        [0, 0, 1, 2, 3, 4],
        [2, 3, 4, 5, 6, 0],
        [0, 0, 0, 0, 0, 0],
        [1, 2, 3, 4, 5, 6],
    ]
    wrapped = Shift(choice([0.0]), wrap=True, fs=1).run(x, drawn)
    assert wrapped[0, 0].tolist() == [5, 6, 1, 2, 3, 4]
    assert wrapped[2, 0].tolist() == [4, 5, 6, 1, 2, 3]


@pytest.mark.parametrize("place", ["random", "start", "centre"])
def test_crop_keeps_a_part_or_all(place):
    x = torch.arange(1.0, 11.0).expand(400, 1, 10)
    shorter, longer = Crop(4, place, fs=1, generator=0)(x)[:, 0], Crop(13, place, fs=1, generator=0)(x)[:, 0]
    firsts, leading = shorter[:, 0].long() - 1, (longer == 0).long().cumprod(-1).sum(-1)
    assert torch.equal(shorter, firsts[:, None] + torch.arange(1.0, 5.0))
    for row, before in zip(longer, leading.tolist(), strict=True):
        assert torch.equal(row, torch.nn.functional.pad(x[0, 0], (before, 3 - before)))
    assert set(firsts.tolist()) == {"random": set(range(7)), "start": {0}, "centre": {3}}[place]
    assert set(leading.tolist()) == {"random": set(range(4)), "start": {0}, "centre": {1}}[place]
    assert torch.equal(Crop(10, place, fs=1)(x), x)


def test_time_mask_silences_one_stretch():
    masked = TimeMask(uniform(0.1, 0.5), generator=0)
    drawn = masked.draw(200)
    y = masked.run(torch.ones(200, 2, 1000), drawn)
    silent = (y == 0).all(1)
    assert torch.equal(silent.sum(-1), (drawn["share"] * 1000).round().long())
    assert (silent.diff(dim=-1) != 0).sum(-1).max() <= 2
    ends = TimeMask(0.9, generator=0)(torch.ones(200, 1, 10))[:, 0, [0, -1]] == 0
    assert (ends.sum(-1) == 1).all()
    assert 60 < int(ends[:, 0].sum()) < 140


def test_speeds_are_those_of_the_effects():
    x = noise(2, 2, 4000)
    drawn = {"applied": torch.tensor([True, True]), "rate": torch.tensor([0.8, 1.25])}
    slow, fast = TimeStretch(1.0, n_fft=256).run(x, drawn)
    assert torch.allclose(slow, fx.effect.TimeStretch(0.8, n_fft=256)(x[0])[..., :4000], atol=1e-5)
    assert torch.allclose(fast[..., :3200], fx.effect.TimeStretch(1.25, n_fft=256)(x[1]), atol=1e-5)
    assert not fast[..., 3200:].any()
    slow, fast = Varispeed(1.0).run(x, drawn)
    assert torch.equal(slow, fx.effect.Varispeed(0.8)(x[0])[..., :4000])
    assert torch.equal(fast[..., :3200], fx.effect.Varispeed(1.25)(x[1]))
    assert not fast[..., 3200:].any()


# --- recordings -------------------------------------------------------------------------------------------------------


def test_background_noise_has_the_ratio_and_comes_from_the_files(folder):
    x = noise(200, 2, 1500)
    noisy = BackgroundNoise(folder / "noises/hiss.wav", uniform(-5, 30), fs=FS, generator=0)
    drawn = noisy.draw(200)
    added = noisy.run(x, drawn) - x
    found = 10 * torch.log10(x.square().mean((1, 2)) / added.square().mean((1, 2)))
    assert torch.allclose(found.double(), drawn["snr_db"], atol=0.01)
    hiss = audio_io.load(folder / "noises/hiss.wav")[0][0]
    for i in (0, 1, 2):
        first = int(drawn["place"][i] * 3501)
        part = hiss[first : first + 1500]
        assert abs(float(torch.corrcoef(torch.stack([added[i, 0], part]))[0, 1]) - 1) < 1e-3
    assert torch.equal(noisy.run(torch.zeros(2, 1, 50), noisy.draw(2)), torch.zeros(2, 1, 50))


def test_a_short_recording_is_repeated_and_resampled(folder):
    noisy = BackgroundNoise([folder / "noises/more"], 0.0, fs=FS)
    drawn = {"applied": torch.tensor([True]), "snr_db": torch.zeros(1), "file": torch.tensor([0])}
    drawn["place"] = torch.zeros(1, dtype=torch.float64)
    x = noise(1, 2, 4000)
    added = noisy.run(x, drawn) - x
    once = (fx.Wave(*audio_io.load(folder / "noises/more/two.flac")) | fx.filter.Resample(FS)).ys
    expected = once.repeat(1, 3)[:, :4000]
    expected = expected * (x.square().sum() / expected.square().sum()).sqrt()
    assert torch.allclose(added[0], expected, atol=1e-5)
    mono = noisy.run(x[:, :1], drawn) - x[:, :1]
    assert abs(float(torch.corrcoef(torch.stack([mono[0, 0], once.mean(0).repeat(3)[:4000]]))[0, 1]) - 1) < 1e-5


def test_rooms_are_convolutions_aligned_with_the_input(folder):
    response = audio_io.load(folder / "responses/room.wav")[0]
    x = noise(2, 2, 3000)
    room = Convolve(folder / "responses/room.wav", keep_level=False, fs=FS)
    expected = np.stack([signal.fftconvolve(each, response.numpy(), axes=-1)[:, 7:3007] for each in x.numpy()])
    assert np.allclose(room(x), expected, rtol=0, atol=1e-4)
    mono = signal.fftconvolve(x[:, :1].numpy(), response[None, :1].numpy(), axes=-1)[..., 7:3007]
    assert np.allclose(room(x[:, :1]), mono, rtol=0, atol=1e-4)
    kept = Convolve(folder / "responses/room.wav", fs=FS)(x)
    assert torch.allclose(kept.square().sum((1, 2)), x.square().sum((1, 2)), rtol=1e-4)
    assert torch.allclose(Convolve(folder / "responses/click.wav", fs=FS)(x), x, atol=1e-5)
    assert not Convolve(folder / "responses", fs=FS)(torch.zeros(4, 1, 100)).any()


def test_files_are_decoded_once_within_the_memory(folder, monkeypatch):
    decoded = []
    load = audio_io.load
    monkeypatch.setattr(audio_io, "load", lambda path: decoded.append(path.name) or load(path))
    x = noise(30, 1, 100)
    noisy = BackgroundNoise(folder / "noises", 0.0, fs=FS, generator=0)
    noisy(x)
    noisy(x)
    assert sorted(decoded) == ["hiss.wav", "two.flac"]
    assert noisy.recordings.size() == 4 * (5000 + 2 * 1800)
    decoded.clear()
    small = BackgroundNoise(folder / "noises", 0.0, fs=FS, memory_mib=0.02, generator=0)
    for _ in range(5):
        small(x)
        assert small.recordings.size() <= 0.02 * 2**20
    assert len(decoded) > 4
    assert not pickle.loads(pickle.dumps(noisy)).recordings.size()


def test_missing_files_are_said(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        ArgumentError, match=r"noises must hold at least one audio file \(.wav, .* got none in '.*empty'"
    ):
        BackgroundNoise(tmp_path / "empty", 0.0)
    with pytest.raises(ArgumentError, match=r"responses must hold at least one audio file .* got none in no paths"):
        Convolve([])
    with pytest.raises(ArgumentError, match=r"noises must name files and folders that exist, got '.*nothing'"):
        BackgroundNoise([tmp_path / "nothing"], 0.0)
    (tmp_path / "broken.wav").write_bytes(b"no audio at all")
    with pytest.raises(AudioFileError, match=r"broken.wav"):
        Convolve(tmp_path / "broken.wav", fs=FS)(noise(1, 1, 50))
    with pytest.raises(SampleRateError, match="BackgroundNoise has no sample rate"):
        BackgroundNoise(folder / "noises", 0.0)(noise(1, 1, 50))


# --- weights ----------------------------------------------------------------------------------------------------------


def test_weights_say_how_often_each_is_picked():
    gains = [Random(fx.effect.Gain, gain=factor) for factor in (2.0, 3.0, 5.0)]
    y = OneOf(gains, weights=[1, 0, 3], generator=0)(torch.ones(4000, 1, 1)).flatten()
    assert set(y.tolist()) == {2.0, 5.0}
    assert abs(float((y == 5).double().mean()) - 0.75) < 0.03
    y = SomeOf(gains, 2, weights=[1, 1, 8], generator=0)(torch.ones(4000, 1, 1)).flatten()
    # Without the heavy one: first a light one (1/10), then the other (1/9), in both orders.
    assert abs(float((y == 6).double().mean()) - 2 * 0.1 / 9) < 0.01
    for weights in ([1, 2], [1, -1, 1], [0, 0, 1]):
        with pytest.raises(ArgumentError, match=r"weights must be 3 numbers >= 0, at least 2 of them > 0"):
            SomeOf(gains, 2, weights=weights)


# --- codecs and packets -----------------------------------------------------------------------------------------------


def speechlike(shape, fs):
    x = noise(*shape, dtype=torch.float64)
    sos = signal.butter(4, [300, 0.35 * fs if fs < 10_000 else 3000], "bandpass", fs=fs, output="sos")
    return (fx.functional.sosfilt(sos, x) * 0.1).float()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("fs", [8000, 22_050, 24_000, 48_000])
@pytest.mark.parametrize("channels", [1, 3])
def test_codecs_are_aligned_to_the_sample(codec, fs, channels):
    for time in (1, 1025, 9001):
        x = speechlike((2, channels, time), fs)
        y = Codec(codec, fs=fs)(x)
        assert y.shape == x.shape
        assert not torch.equal(y, x)
    likeness = np.stack([signal.correlate(b, a) for a, b in zip(x[0].numpy(), y[0].numpy(), strict=True)])
    assert (likeness.argmax(-1) == x.shape[-1] - 1).all()
    gain = likeness.max(-1) / x[0].double().square().sum(-1).numpy()
    assert (gain > 0.5).all()
    assert (gain < 1.2).all()


@pytest.mark.parametrize(
    ("codec", "law"),
    [
        ("mulaw", lambda x: np.log1p(255 * abs(x)) / np.log1p(255)),
        ("alaw", lambda x: np.where(abs(x) < 1 / 87.6, 87.6 * abs(x), 1 + np.log(np.maximum(87.6 * abs(x), 1)))),
    ],
)
def test_g711_rounds_to_steps_that_grow_with_the_level(codec, law):
    x = torch.linspace(-0.98, 0.98, 20_001)[None, None]
    y = Codec(codec, fs=8000)(x)
    assert len(y.unique()) <= 256
    levels = law(x.numpy()), law(y.numpy())
    assert abs(levels[0] - levels[1]).max() / law(np.ones(1)).max() < 1.6 / 127


@pytest.mark.parametrize("codec", ["gsm", "mulaw", "alaw"])
@pytest.mark.parametrize("fs", [16_000, 44_100])
def test_telephone_codecs_leave_nothing_above_4_khz(codec, fs):
    t = torch.arange(fs) / fs
    low, high = (0.3 * torch.sin(2 * torch.pi * hz * t)[None, None] for hz in (1000, 7000))
    assert Codec(codec, fs=fs)(high)[..., 2000:-2000].abs().max() < 0.01
    assert Codec(codec, fs=fs)(low)[..., 2000:-2000].abs().max() > 0.25


def test_the_telephone_of_the_page_has_its_band_for_every_example():
    page = (Path(__file__).parents[1] / "docs" / "augmentation.md").read_text()
    band, codec = re.search(r"(fx\.filter\.Butterworth\(.*\)),\n\.\.\. +(augment\.Codec.*),\n", page).groups()
    names = {"fx": fx, "augment": augment}
    line = augment.Compose([eval(band, names), eval(codec, names)], generator=0)
    x = torch.randn(12, 1, 16_000, generator=torch.Generator().manual_seed(0)) / 8
    with fx.sample_rate(FS):
        y = line(x)
    power = torch.fft.rfft(y[:, 0]).abs().square()[:, : FS // 2].unflatten(-1, (80, -1)).mean(-1)  # bands of 100 Hz
    inside = power[:, 4:32].mean(-1, keepdim=True)
    assert (power[:, 42:] < inside / 10_000).all()
    assert (power[:, :2] < inside / 10).all()  # GSM adds noise


def test_bit_rates_are_drawn_and_matter():
    x = speechlike((4, 1, 16_000), FS)
    codec = Codec("mp3", choice([8000, 128_000]), fs=FS, generator=0)
    drawn = {"applied": torch.ones(4, dtype=torch.bool), "codec": ["mp3"] * 4, "bitrate": [8000, 128_000] * 2}
    errors = (codec.run(x, drawn) - x).square().mean((1, 2))
    assert (errors[1::2] < errors[::2] / 3).all()
    assert set(codec.draw(50)["bitrate"]) == {8000, 128_000}
    with pytest.raises(ArgumentError, match="bitrate must lie in"):
        Codec("opus", 1000, fs=FS)(x)


def test_loud_samples_are_clipped_and_lost_ones_refused():
    loud = 3 * torch.ones(1, 1, 500)
    assert float(Codec("mulaw", fs=8000)(loud).max()) <= 1.0
    loud[0, 0, 3] = torch.nan
    with pytest.raises(ArgumentError, match="x must be finite to be coded"):
        Codec("mulaw", fs=8000)(loud)


def test_lost_packets_are_silent_or_repeated():
    fs, size, count = 1000, 20, 50
    x = noise(300, 2, size * count - 7)
    lossy = PacketLoss(uniform(0.1, 0.7), 20.0, fs=fs, generator=0)
    drawn = lossy.draw(300)
    y = lossy.run(x, drawn)
    repeated = PacketLoss(0.0, 20.0, "repeat", fs=fs).run(x, drawn)
    padded = [torch.nn.functional.pad(each, (0, 7)).unflatten(-1, (count, size)) for each in (x, y, repeated)]
    lost = (padded[1] == 0).all(-1).all(1)
    assert torch.equal(padded[1], padded[0].masked_fill(lost[:, None, :, None], 0.0))
    share = lost.double().mean(-1)
    assert ((share - drawn["rate"]).abs() < 5 * (drawn["rate"] * (1 - drawn["rate"]) / count).sqrt()).all()
    for i in (0, 1, 2):
        last = torch.zeros(2, size)
        for k in range(count):
            last = last if lost[i, k] else padded[0][i, :, k]
            assert torch.equal(
                padded[2][i, :, k][:, : size - 7 * (k == count - 1)], last[:, : size - 7 * (k == count - 1)]
            )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Crop(0), r"duration must lie in \(0, inf\) s, got 0 s"),
        (lambda: Crop(1, "end"), "place must be one of random, start, centre, got 'end'"),
        (lambda: Crop(1)(noise(1, 1, 5)), "Crop has no sample rate"),
        (lambda: Shift("late"), "time must be a number in s, got 'late'"),
        (lambda: TimeMask(1.5), r"share must lie in \[0, 1\], got 1.5"),
        (lambda: TimeStretch(uniform(0.01, 1)), r"rate must lie in \[0.1, 10\], got 0.01"),
        (lambda: TimeStretch(1.0, n_fft=300), "n_fft must be a power of two, got 300"),
        (lambda: Varispeed(20), r"rate must lie in \[0.1, 10\], got 20"),
        (lambda: Codec("flac"), "codec must be one of mp3, opus, vorbis, gsm, mulaw, alaw, got 'flac'"),
        (lambda: Codec(choice(["mp3", "aac"])), "codec must be one of .* got 'aac'"),
        (lambda: Codec("mp3", 0), "bitrate must be a whole number >= 1, got 0"),
        (lambda: PacketLoss(2.0), r"rate must lie in \[0, 1\], got 2"),
        (lambda: PacketLoss(0.1, 0), r"packet_ms must lie in \(0, inf\) ms, got 0 ms"),
        (lambda: PacketLoss(0.1, concealment="guess"), "concealment must be one of zero, repeat, got 'guess'"),
    ],
)
def test_misuse_is_said(build, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        build()
