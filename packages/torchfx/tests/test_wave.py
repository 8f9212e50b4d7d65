"""Wave: samples with their rate."""

import io
import math

import numpy as np
import pytest
import scipy.signal
import torch

import torchfx as fx
from torchfx import audio_io
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError


@pytest.mark.parametrize(
    ("ys", "dtype", "shape"),
    [
        (torch.zeros(3, 10), torch.float32, (3, 10)),
        (torch.zeros(10, dtype=torch.float64), torch.float64, (1, 10)),
        (np.zeros((2, 5), np.float32), torch.float32, (2, 5)),
        (np.zeros((5, 2), order="F").T[:, ::-1], torch.float64, (2, 5)),
        (np.zeros(4, ">f4"), torch.float32, (1, 4)),
        ([[0.0, 1.0]], torch.float64, (1, 2)),
        ([0, 1], torch.float32, (1, 2)),
    ],
)
def test_samples_come_in_many_forms(ys, dtype, shape):
    wave = fx.Wave(ys, 44100)
    assert wave.ys.dtype == dtype
    assert wave.ys.shape == shape


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("i2", -32768, 32767), ("i4", -(2**31), 2**31 - 1), ("u1", 0, 255), ("i1", -128, 127)]
)
def test_integers_are_scaled_to_full_scale(dtype, low, high):
    ys = fx.Wave(np.array([low, high], dtype), 44100).ys
    assert ys.dtype == torch.float32
    assert float(ys[0, 0]) == -1.0
    assert 0.99 <= float(ys[0, 1]) <= 1.0


@pytest.mark.parametrize(
    ("ys", "fs", "error", "message"),
    [
        (torch.zeros(2, 0), 44100, ArgumentError, r"hold samples, got \(2, 0\)"),
        (torch.zeros(1, 2, 3), 44100, ArgumentError, r"got \(1, 2, 3\)"),
        (torch.zeros(2, 5).half(), 44100, ArgumentTypeError, "got torch.float16"),
        (np.zeros(5, np.float16), 44100, ArgumentTypeError, "got float16"),
        (np.zeros(5, complex), 44100, ArgumentTypeError, "got complex128"),
        (["a"], 44100, ArgumentTypeError, "real numbers"),
        ([[1.0], [1.0, 2.0]], 44100, ArgumentError, r"ys must have the shape \(channels, time\)"),
        (torch.ones(5, dtype=torch.bool), 44100, ArgumentTypeError, "got torch.bool"),
        (torch.zeros(5), 0, SampleRateError, r"\(0, inf\) Hz, got 0"),
        (torch.zeros(5), float("nan"), SampleRateError, "got nan"),
        (torch.zeros(5), 10**400, SampleRateError, "got 1000"),
        (torch.zeros(5), "44100 baud", ArgumentError, "fs must be a number in Hz or kHz, got '44100 baud'"),
        (torch.zeros(5), None, ArgumentTypeError, "fs must be a sample rate in Hz, got None"),
    ],
)
def test_bad_arguments_raise(ys, fs, error, message):
    with pytest.raises(error, match=message):
        fx.Wave(ys, fs)


def test_a_list_of_whole_numbers_keeps_its_values():
    assert fx.Wave([[0, 1, -3, 40_000]], 44100).ys.tolist() == [[0, 1, -3, 40_000]]
    assert fx.Wave((2, 3), 44100).ys.tolist() == [[2, 3]]


@pytest.mark.parametrize(
    ("dtype", "full_scale", "middle"),
    [("i1", 2**7, 0), ("i2", 2**15, 0), ("i4", 2**31, 0), ("u1", 2**7, 2**7), ("u2", 2**15, 2**15), (">i2", 2**15, 0)],
)
def test_integers_are_scaled_by_their_types_range(dtype, full_scale, middle):
    values = np.array([middle, middle + full_scale // 2, middle - full_scale, middle + full_scale // 4], dtype)
    assert fx.Wave(values, 44100).ys.tolist() == [[0, 0.5, -1, 0.25]]
    assert fx.Wave(values, 44100).ys.dtype == torch.float32


@pytest.mark.parametrize("ys", [np.zeros(5, np.int64), np.zeros(5, np.uint64), torch.zeros(5, dtype=torch.int64)])
def test_integers_of_64_bits_have_no_full_scale(ys):
    with pytest.raises(
        ArgumentTypeError, match=r"integers of 8, 16 or 32 bits, got torch\..*64: .* no agreed full scale"
    ):
        fx.Wave(ys, 44100)


@pytest.mark.parametrize("shape", [(48_000, 2), (1100, 1), (2_000_000, 64)])
def test_frames_first_are_refused_with_the_remedy(shape):
    frames = torch.zeros(1, 1).expand(shape)
    with pytest.raises(ArgumentError, match=rf"got {shape[0]} channels of {shape[1]} samples: .* pass ys\.T"):
        fx.Wave(frames, 44100)
    assert fx.Wave(frames.T, 44100).channels() == shape[1]


@pytest.mark.parametrize("shape", [(128, 1), (64, 3), (256, 256), (1024, 200)])
def test_many_channels_of_few_samples_are_no_frames(shape):
    assert fx.Wave(torch.zeros(shape), 44100).channels() == shape[0]


def test_facts():
    wave = fx.Wave(torch.zeros(2, 22050), 44100, metadata={"title": "silence"})
    assert len(wave) == 22050
    assert wave.channels() == 2
    assert wave.duration() == wave.duration("sec") == 0.5
    assert wave.duration("ms") == 500
    assert wave.device == torch.device("cpu")
    assert repr(wave) == "Wave(2 channels, 0.500 s, 44100 Hz, torch.float32, cpu)"
    assert (wave | fx.effect.Gain(1.0)).metadata == {"title": "silence"}
    with pytest.raises(ArgumentError, match="unit must be"):
        wave.duration("min")


def test_pipe_runs_now_and_returns_a_new_wave(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    before, ran = wave.ys.clone(), []

    class Spy(torch.nn.Module):
        def forward(self, x):
            ran.append(x.shape)
            return x * 2

    result = wave | Spy()
    assert ran == [(2, 100)]
    assert torch.equal(wave.ys, before)
    assert torch.equal(result.ys, before * 2)
    assert result.fs == wave.fs


def test_pipe_into_what_is_no_module_raises():
    wave = fx.Wave(torch.zeros(5), 44100)
    with pytest.raises(TypeError):
        wave | 3

    class Pair(torch.nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(ArgumentTypeError, match=r"Pair must return a tensor \(..., time\), got tuple"):
        wave | Pair()
    with pytest.raises(ArgumentTypeError, match=r"got the class: write Gain\(\.\.\.\)"):
        wave | fx.effect.Gain  # not built
    with pytest.raises(ArgumentTypeError, match=r"forget must return a tensor \(..., time\), got NoneType"):
        wave.transform(forget)


def forget(ys):
    """A function without a result."""


def test_pipe_calls_a_function_on_the_samples(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    assert torch.equal((wave | torch.tanh).ys, torch.tanh(wave.ys))
    assert torch.equal((wave | (lambda ys: ys.numpy()[:, ::-1])).ys, wave.ys.flip(1))
    lowpass = fx.filter.LoButterworth(1000)
    assert torch.equal((wave | (lambda ys: lowpass(ys))).ys, (wave | lowpass).ys)  # it knows the rate
    with pytest.raises(ArgumentError, match=r"hold samples, got \(\)"):
        wave | torch.mean


def test_the_rate_ends_with_the_pipe():
    wave, module = fx.Wave(torch.zeros(5), 44100), fx.filter.LoButterworth(1000)
    _ = wave | module
    with pytest.raises(SampleRateError):
        module(wave.ys)

    class Fails(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        wave | Fails()
    with pytest.raises(SampleRateError):
        module(wave.ys)


def test_to_moves_in_place():
    wave = fx.Wave(torch.zeros(5), 44100)
    assert wave.to("meta") is wave
    assert wave.device == torch.device("meta")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without it")
def test_a_device_that_is_not_there_raises():
    wave = fx.Wave(torch.zeros(5), 44100)
    for move in (lambda: wave.to("cuda"), lambda: fx.Wave(torch.zeros(5), 44100, device="cuda")):
        with pytest.raises(ArgumentError, match="device must be one that PyTorch has here, got 'cuda': "):
            move()
    assert wave.device == torch.device("cpu")
    with pytest.raises(ArgumentError, match="device must be one that PyTorch has here, got 'gpu': "):
        wave.to("gpu")


def test_slices_and_channels_share_the_samples(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    assert torch.equal(wave[10:20].ys, wave.ys[:, 10:20])
    assert torch.equal(wave.get_channel(1).ys, wave.ys[1:])
    assert wave[10:].ys.data_ptr() == wave.ys[:, 10:].data_ptr()
    with pytest.raises(ArgumentError, match=r"i must lie in \[0, 2\), got 2"):
        wave.get_channel(2)
    with pytest.raises(ArgumentTypeError, match=r"i must be a whole number >= -2, got 0.5"):
        wave.get_channel(0.5)
    with pytest.raises(ArgumentError, match="the slice's step must be a whole number >= 1, got -1"):
        wave[::-1]


def test_channels_and_seconds_are_indices(rng):
    wave = fx.Wave(rng.standard_normal((3, 1000)), 1000)
    assert torch.equal(wave[-1].ys, wave.ys[2:])
    assert torch.equal(wave[[2, 0]].ys, wave.ys[[2, 0]])
    assert [each.ys.tolist() for each in wave] == [wave.ys[i : i + 1].tolist() for i in range(3)]
    for index, samples in [
        (slice(0.1, 0.25), slice(100, 250)), (slice(-0.1, None), slice(900, None)), (slice(0, 0.5), slice(0, 500)),
        (slice("100ms", "-50 samples"), slice(100, 950)), (slice(0.5, 9.0), slice(500, None)),
        (slice(-9.0, 0.1, 2), slice(0, 100, 2)), (slice(np.float32(0.5), None), slice(500, None)),
    ]:  # fmt: skip
        assert torch.equal(wave[index].ys, wave.ys[:, samples])
        assert torch.equal(wave[1, index].ys, wave.ys[1:2, samples])
        assert torch.equal(wave[1:, index].ys, wave.ys[1:, samples])


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (3, ArgumentError, r"i must lie in \[0, 3\), got 3"),
        ([0, 5], ArgumentError, r"i must lie in \[0, 3\), got 5"),
        ("left", ArgumentTypeError, "i must be a whole number >= -3, got 'left'"),
        (slice(1, 2.5), ArgumentTypeError, "both be samples .* or both seconds, got 1 and 2.5"),
        (slice(math.nan, None), ArgumentError, "start must be finite, got nan s"),
        (slice("soon", None), ArgumentError, "start must be seconds >= 0, or a text such as"),
        (slice(0.2, 0.1), ArgumentError, "hold samples"),
    ],
)
def test_bad_indices_raise(index, error, message):
    with pytest.raises(error, match=message):
        fx.Wave(torch.zeros(3, 1000), 1000)[index]


def test_arithmetic_is_that_of_the_samples(rng):
    a, b = (fx.Wave(rng.standard_normal((2, 50)), 1000, metadata={"take": 1}) for _ in range(2))
    assert torch.equal((a - b).ys, a.ys - b.ys)
    assert torch.equal((-a).ys, -a.ys)
    assert torch.equal((a / 3).ys, a.ys / 3)
    assert torch.equal((a / torch.tensor([[2.0], [4.0]])).ys, a.ys / torch.tensor([[2.0], [4.0]]))
    assert torch.equal((a[:20] - b).ys[:, 20:], -b.ys[:, 20:])
    total = a
    total -= b
    total /= 2
    assert torch.equal(total.ys, (a.ys - b.ys) / 2)
    assert total.metadata == {"take": 1}
    assert total is not a
    for refused in (lambda: a - 1, lambda: 2 / a, lambda: a / b):
        with pytest.raises(TypeError, match="unsupported operand"):
            refused()
    with pytest.raises(ArgumentError, match="other than 0, got 0"):
        a / 0
    with pytest.raises(SampleRateError):
        a - fx.Wave(b.ys, 2000)


def test_waves_are_equal_by_rate_and_samples(rng):
    ys = torch.from_numpy(rng.standard_normal((2, 50))).float()
    wave = fx.Wave(ys, 1000)
    assert wave == fx.Wave(ys.double(), 1000, metadata={"title": "same"})
    assert wave != fx.Wave(ys, 2000)
    assert wave != wave[:49]
    assert wave != wave[0]
    assert wave != wave * 2
    assert wave != 3
    for call in (hash, reversed):
        with pytest.raises(TypeError):
            call(wave)


def test_other_names(tmp_path):
    wave = fx.Wave(torch.full((2, 50), 0.5), 1000)
    assert wave.samples is wave.ys
    assert (wave.sample_rate, wave.shape) == (1000, (2, 50))
    wave.save(tmp_path / "a.wav")
    assert fx.load(tmp_path / "a.wav") == fx.Wave.load(tmp_path / "a.wav") == wave
    assert (fx.Stream, fx.process_file) == (fx.realtime.Stream, fx.realtime.process_file)
    stream = fx.Stream(fx.effect.Limiter(-1, lookahead_ms=5), 48_000, 2)
    assert repr(stream).startswith("Stream(Limiter(threshold_db=-1")
    assert repr(stream).endswith(", 48000 Hz, 2 channels, latency 240 samples)")


def test_transform_knows_the_rate(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    assert torch.equal(wave.transform(torch.mul, 3).ys, wave.ys * 3)
    lowpass = fx.filter.LoButterworth(1000)
    assert torch.equal(wave.transform(lambda ys: lowpass(ys)).ys, (wave | lowpass).ys)


def test_merge_adds_or_keeps_apart():
    a, b = fx.Wave(torch.ones(2, 3), 44100), fx.Wave(torch.full((2, 5), 2.0), 44100)
    assert fx.Wave.merge([a, b]).ys.tolist() == [[3, 3, 3, 2, 2]] * 2
    apart = fx.Wave.merge([a, b], split_channels=True)
    assert apart.ys.tolist() == [[1, 1, 1, 0, 0]] * 2 + [[2] * 5] * 2
    assert a.ys.shape == (2, 3)
    with pytest.raises(SampleRateError, match="got 44100, 48000 Hz"):
        fx.Wave.merge([a, fx.Wave(torch.ones(2, 3), 48000)])
    with pytest.raises(ArgumentError, match="same number of channels to be added up, got 2, 1"):
        fx.Wave.merge([a, fx.Wave(torch.ones(3), 44100)])
    with pytest.raises(ArgumentError, match="at least one wave"):
        fx.Wave.merge([])
    with pytest.raises(ArgumentTypeError, match="waves must hold waves only, got Tensor"):
        fx.Wave.merge([a, b.ys])


def test_plus_mixes_and_fills_the_shorter_one():
    a, b = fx.Wave(torch.ones(2, 3), 44100), fx.Wave(torch.full((2, 5), 2.0, dtype=torch.float64), 44100)
    for mixed in (a + b, b + a):
        assert mixed.ys.tolist() == [[3, 3, 3, 2, 2]] * 2
        assert mixed.ys.dtype == torch.float64
    assert a.ys.tolist() == [[1, 1, 1]] * 2
    with pytest.raises(SampleRateError, match="waves must share one sample rate, got 44100, 48000 Hz"):
        a + fx.Wave(torch.ones(2, 3), 48000)
    with pytest.raises(ArgumentError, match="same number of channels to be added up, got 2, 1"):
        a + fx.Wave(torch.ones(3), 44100)
    with pytest.raises(TypeError, match="unsupported operand"):
        a + 1


@pytest.mark.parametrize("factor", [0.5, 2, np.float32(0.25), np.float64(3.0), np.int64(2), torch.tensor(0.5)])
def test_times_scales_from_both_sides(rng, factor):
    wave = fx.Wave(rng.standard_normal((2, 100)).astype(np.float32), 44100, metadata={"title": "noise"})
    for scaled in (wave * factor, factor * wave):
        assert isinstance(scaled, fx.Wave)
        assert scaled.ys.dtype == torch.float32
        assert torch.equal(scaled.ys, wave.ys * float(factor))
        assert scaled.metadata == {"title": "noise"}


def test_times_takes_a_factor_for_each_channel_or_sample():
    wave = fx.Wave(torch.ones(2, 3), 44100)
    assert (wave * torch.tensor([[1.0], [2.0]])).ys.tolist() == [[1, 1, 1], [2, 2, 2]]
    assert (wave * torch.tensor([1.0, 2.0, 3.0])).ys.tolist() == [[1, 2, 3]] * 2
    for other in ("2", wave, None):
        with pytest.raises(TypeError):
            wave * other


# --- resampling -------------------------------------------------------------------------------------------------------

RATES = [(48000, 44100), (44100, 48000), (48000, 16000), (8000, 48000)]


@pytest.mark.parametrize(("fs", "rate"), RATES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_resampled_sine_is_the_sine_at_the_other_rate(fs, rate, dtype):
    """Closed form within 2e-6 away from the ends; SciPy's polyphase filter ripples by up to 2e-3 in its passband."""
    sine = [torch.sin(2 * torch.pi * 440 * torch.arange(each // 2, dtype=torch.float64) / each) for each in (fs, rate)]
    wave = fx.Wave(torch.stack([sine[0], -sine[0]]).to(dtype), fs, metadata={"title": "sine"}).resample(rate)
    assert (wave.fs, len(wave), wave.channels(), wave.ys.dtype) == (rate, rate // 2, 2, dtype)
    assert wave.metadata == {"title": "sine"}
    middle = slice(rate // 10, -rate // 10)
    assert float((wave.ys[0] - sine[1])[middle].abs().max()) < 2e-6
    assert torch.equal(wave.ys[1], -wave.ys[0])
    common = np.gcd(fs, rate)
    reference = scipy.signal.resample_poly(sine[0].numpy(), rate // common, fs // common)
    assert np.abs(wave.ys[0].numpy() - reference)[middle].max() < 2e-3


def test_what_lies_beyond_half_the_new_rate_is_removed():
    tone = torch.sin(2 * torch.pi * 10_000 * torch.arange(24_000, dtype=torch.float64) / 48_000)
    assert float(fx.Wave(tone, 48_000).resample(16_000).ys[0, 1000:-1000].abs().max()) < 1e-5


def test_rates_are_read_from_texts():
    wave = fx.Wave(torch.ones(1, 480), "48 kHz")
    assert (wave.fs, wave.resample("44.1kHz").fs, len(wave.resample("24kHz"))) == (48_000, 44_100, 240)
    with fx.sample_rate("8kHz"):
        assert fx.filter.LoButterworth(1000)(torch.ones(1, 64)).shape == (1, 64)
    assert fx.Stream(fx.effect.Gain(0.5), "22.05kHz", channels=1).fs == 22_050


@pytest.mark.parametrize("frames", [2, 7, 100, 1001])
@pytest.mark.parametrize("rate", [44_100, 96_000, 47_999, 22_050.5])
def test_a_resampled_wave_lasts_as_long(frames, rate):
    assert len(fx.Wave(torch.ones(frames), 48_000).resample(rate)) == math.ceil(frames * rate / 48_000)


def test_resampling_to_the_same_rate_changes_nothing(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    assert torch.equal(wave.resample(44100).ys, wave.ys)


@pytest.mark.parametrize("rate", [0, -8000, float("nan")])
def test_resampling_to_no_rate_raises(rate):
    with pytest.raises(SampleRateError, match=r"fs must lie in \(0, inf\) Hz, got"):
        fx.Wave(torch.zeros(5), 44100).resample(rate)


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_leaves_what_it_says_in_the_metadata(tmp_path, rng):
    ys = torch.from_numpy(rng.uniform(-0.5, 0.5, (2, 100)))
    audio_io.save(tmp_path / "a.flac", ys, 44100, bits_per_sample=16, tags={"title": "A title"})
    wave = fx.Wave.from_file(tmp_path / "a.flac")
    assert wave.metadata == {
        "path": str(tmp_path / "a.flac"), "format": "FLAC", "encoding": "PCM_16", "bits": 16,
        "tags": {"title": "A title"},
    }  # fmt: skip
    audio_io.save(tmp_path / "a.ogg", ys, 44100)
    assert fx.Wave.from_file(str(tmp_path / "a.ogg")).metadata == {
        "path": str(tmp_path / "a.ogg"), "format": "OGG", "encoding": "VORBIS", "bits": None,
    }  # fmt: skip


OPERATIONS = {
    "module": lambda wave: wave | fx.effect.Gain(0.5),
    "filter": lambda wave: wave | fx.filter.LoButterworth(1000),
    "function": lambda wave: wave | torch.tanh,
    "transform": lambda wave: wave.transform(torch.abs),
    "slice": lambda wave: wave[10:20],
    "channel": lambda wave: wave.get_channel(0),
    "resample": lambda wave: wave.resample(22050),
    "times": lambda wave: wave * 2,
    "plus": lambda wave: wave + fx.Wave(torch.zeros(1, 5), 44100),
    "plus, from the right": lambda wave: fx.Wave(torch.zeros(1, 5), 44100) + wave,
    "merge": lambda wave: fx.Wave.merge([wave, wave], split_channels=True),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_passes_a_copy_of_the_metadata_on(name):
    wave = fx.Wave(torch.ones(1, 100), 44100, metadata={"tags": {"title": "A title"}, "mine": 3})
    result = OPERATIONS[name](wave)
    assert result.metadata == wave.metadata
    result.metadata["mine"] = 4
    assert wave.metadata["mine"] == 3


def test_the_first_waves_metadata_count_before_the_others():
    a = fx.Wave(torch.zeros(5), 44100, metadata={"title": "a", "artist": "A"})
    b = fx.Wave(torch.zeros(5), 44100, metadata={"title": "b", "album": "B"})
    assert (a + b).metadata == {"title": "a", "artist": "A", "album": "B"}
    assert fx.Wave.merge([b, a]).metadata == {"title": "b", "artist": "A", "album": "B"}


def test_tags_are_saved_again_as_far_as_the_format_has_a_place(tmp_path):
    tags = {"title": "A title", "software": "editor", "artist": "Somebody"}
    audio_io.save(tmp_path / "a.flac", torch.zeros(1, 100), 44100, tags=tags)
    wave = fx.Wave.from_file(tmp_path / "a.flac") | fx.effect.Gain(0.5)
    wave.save(tmp_path / "b.flac")
    assert audio_io.info(tmp_path / "b.flac").tags == wave.metadata["tags"]
    wave.save(tmp_path / "b.mp3")
    assert audio_io.info(tmp_path / "b.mp3").tags == {"title": "A title", "artist": "Somebody"}
    wave.save(tmp_path / "c.wav", tags={"title": "Another"})
    assert audio_io.info(tmp_path / "c.wav").tags == {"title": "Another"}
    wave.save(tmp_path / "d.wav", tags={})
    assert audio_io.info(tmp_path / "d.wav").tags == {}
    wave.metadata["tags"] = "no mapping"
    wave.save(tmp_path / "e.wav")
    assert audio_io.info(tmp_path / "e.wav").tags == {}


def test_a_wave_goes_through_a_file_in_memory(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)).astype(np.float32), 44100)
    file = io.BytesIO()
    wave.save(file, format="wav")
    file.seek(0)
    back = fx.Wave.from_file(file, frame_offset=10, num_frames=20)
    assert torch.equal(back.ys, wave.ys[:, 10:30])
    assert back.fs == 44100
    assert back.metadata == {"format": "WAV", "encoding": "FLOAT", "bits": 32}


def test_a_wave_of_doubles_is_saved_as_doubles(tmp_path, rng):
    wave = fx.Wave(rng.standard_normal(100), 44100)
    wave.save(tmp_path / "a.wav")
    assert torch.equal(fx.Wave.from_file(tmp_path / "a.wav").ys, wave.ys)


def test_a_rate_that_is_no_whole_number_cannot_be_saved(tmp_path):
    with pytest.raises(ArgumentError, match=r"fs must be a whole number of Hz in an audio file, got 44100\.5"):
        fx.Wave(torch.zeros(5), 44100.5).save(tmp_path / "a.wav")


def test_numpy_reads_a_wave(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    assert np.array_equal(np.asarray(wave), wave.ys.numpy())
    assert np.asarray(wave, dtype=np.float32).dtype == np.float32


def test_notebooks_get_a_player():
    html = fx.Wave(torch.zeros(1, 100), 44100)._repr_html_()
    assert "<audio controls" in html
    assert "data:audio/wav;base64," in html


@pytest.mark.parametrize("device", [None, 3.5, torch.float64])
def test_what_is_no_device_is_refused(device):
    wave = fx.Wave(torch.zeros(1, 10), 48_000)
    with pytest.raises(ArgumentTypeError, match=r"device must be a .* or a name"):
        wave.to(device)


def test_a_class_in_the_place_of_a_module_is_told():
    gain = fx.effect.Gain(0.5)
    with pytest.raises(
        ArgumentTypeError, match=r"a wave is piped into a module, got the class: write Normalize\(\.\.\.\)"
    ):
        fx.Wave(torch.ones(10), 8000) | fx.effect.Normalize
    for join in (lambda a, b: a | b, lambda a, b: a + b, lambda a, b: b | a, lambda a, b: b + a):
        with pytest.raises(ArgumentTypeError, match=r"modules are joined, got the class: write Reverb\(\.\.\.\)"):
            join(gain, fx.effect.Reverb)


def test_a_wave_moves_as_a_tensor_does():
    wave = fx.Wave(torch.zeros(1, 10), 8000)
    assert wave.cpu() is wave
    with pytest.raises(ArgumentError, match="index must be a whole number >= 0, got -1"):
        wave.cuda(-1)
    if torch.cuda.is_available():
        assert wave.cuda(0).device == torch.device("cuda:0")
        assert wave.cpu().device == torch.device("cpu")
