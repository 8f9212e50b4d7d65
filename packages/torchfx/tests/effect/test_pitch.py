"""Pitch and time: closed forms for tones, and what holds for any signal."""

import math

import pytest
import torch

import torchfx as fx
from torchfx import spec
from torchfx.effect import PitchShift, TimeStretch, Varispeed
from torchfx.effect.pitch import simple_ratio
from torchfx.errors import ArgumentError, StreamError
from torchfx.functional import time_stretch
from torchfx.realtime import Stream

FS = 48_000
CHORD = (110.0, 220.0, 277.18, 329.63, 440.0, 1760.5, 5000.3)
METHODS = ("phase_vocoder", "wsola")


def tones(*frequencies, seconds=1.5):
    t = torch.arange(round(seconds * FS), dtype=torch.float64) / FS
    return sum(torch.sin(2 * math.pi * f * t + 0.3 * i) for i, f in enumerate(frequencies)) / len(frequencies)


def partial(y, near):
    """Return frequency (Hz) and amplitude of the partial near a frequency, away from both ends.

    A parabola through the logarithm of a Gaussian window's transform is exact.
    """
    y = y[len(y) // 5 : -(len(y) // 5)].double()
    window = torch.exp(-0.5 * (torch.linspace(-5, 5, len(y), dtype=torch.float64)) ** 2)
    spectrum = torch.fft.rfft(y * window, 4 * len(y)).abs()
    bin_hz = FS / (4 * len(y))
    low = int(near * 0.98 / bin_hz)
    k = low + int(spectrum[low : int(near * 1.02 / bin_hz) + 2].argmax())
    a, b, c = spectrum[k - 1 : k + 2].log().tolist()
    at = 0.5 * (a - c) / (a - 2 * b + c)
    return (k + at) * bin_hz, 2 * math.exp(b - 0.25 * (a - c) * at) / float(window.sum())


def cents(found, expected):
    return 1200 * math.log2(found / expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rate", [0.5, 0.83, 1.31, 2.0])
def test_a_stretched_tone_keeps_frequency_and_amplitude(rate, method):
    for frequency in (60.0, 997.0):
        x = tones(frequency).float()
        y = time_stretch(x, rate, method)
        assert y.shape[-1] == round(len(x) / rate)
        assert y.dtype == x.dtype
        found, amplitude = partial(y, frequency)
        assert abs(cents(found, frequency)) < 1
        assert amplitude == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("semitones", [-7.3, 4, 12])
def test_a_chord_s_partials_lie_within_a_cent(semitones):
    y = PitchShift(semitones)(tones(*CHORD, seconds=2.5).float())
    factor = 2 ** (semitones / 12)
    for frequency in CHORD:
        found, amplitude = partial(y, frequency * factor)
        assert abs(cents(found, frequency * factor)) < 1
        assert amplitude * len(CHORD) == pytest.approx(1, abs=0.1)


def test_wsola_shifts_a_tone():
    found, amplitude = partial(PitchShift(5, method="wsola")(tones(200.0)), 200 * 2 ** (5 / 12))
    assert abs(cents(found, 200 * 2 ** (5 / 12))) < 1
    assert amplitude == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_at_a_rate_of_1_the_signal_stays(method, generator):
    for shape in ((1,), (2, 1025), (17, 3000), (2, 1, 5000)):
        x = torch.randn(*shape, generator=generator)
        assert float((TimeStretch(1, method)(x) - x).abs().max()) < 1e-6
    assert torch.equal(PitchShift(0)(x), x)
    assert torch.equal(Varispeed(1)(x), x)


@pytest.mark.parametrize("effect", [TimeStretch, Varispeed])
def test_the_length_is_divided_by_the_rate(effect, generator):
    for time in (1, 17, 1025, 4001):
        for rate in (0.1, 0.7, 1, 1.3, 10):
            assert effect(rate)(torch.randn(2, time, generator=generator)).shape == (2, max(1, round(time / rate)))


@pytest.mark.parametrize("method", METHODS)
def test_silence_stays_silence(method):
    x = torch.zeros(2, 5000)
    assert not TimeStretch(0.7, method)(x).any()
    assert not PitchShift(3, method)(x).any()


def test_what_is_not_finite_passes():
    x = torch.zeros(2, 5000)
    x[0, :100] = torch.nan
    y = TimeStretch(0.7, n_fft=256)(x)
    assert y[0].isnan().any()
    assert not y[0, 1000:].any()
    assert not y[1].any()


def test_a_click_stays_where_it_is_and_short():
    """Most of its energy lies within 5 ms of where it belongs, an eighth of a window."""
    x = torch.zeros(20_000)
    x[10_000] = 1
    for semitones in (-5, 4, 9):
        y = PitchShift(semitones, n_fft=2048)(x).square()
        assert float(y[10_000 - 240 : 10_000 + 240].sum()) > 0.6 * float(y.sum())


def test_channels_and_examples_are_worked_on_alone(generator):
    x = torch.randn(3, 2, 3000, generator=generator)
    for effect in (TimeStretch(0.8), TimeStretch(1.25, "wsola"), Varispeed(0.8), PitchShift(-3, "wsola")):
        together = effect(x)
        for i in range(3):
            assert torch.allclose(together[i], effect(x[i]), atol=1e-6)
        odd = x.transpose(0, 1).contiguous().transpose(0, 1)[..., ::2]
        assert torch.allclose(effect(odd), effect(odd.contiguous()), atol=1e-6)


def test_wsola_keeps_channels_together(generator):
    x = torch.randn(3000, generator=generator)
    y = TimeStretch(0.8, "wsola")(torch.stack([x, -0.5 * x]))
    assert torch.allclose(y[1], -0.5 * y[0], atol=1e-6)


def test_varispeed_moves_pitch_and_time():
    found, amplitude = partial(Varispeed(1.5)(tones(997.0)), 997 * 1.5)
    assert abs(cents(found, 997 * 1.5)) < 0.02
    assert amplitude == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_gradients_vmap_and_the_compiler(method, generator):
    x = torch.randn(2, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    effect = TimeStretch(0.8, method, n_fft=256)
    assert torch.autograd.gradcheck(effect, x)
    assert torch.allclose(torch.func.vmap(effect)(x[:, None]), effect(x[:, None]))
    torch._dynamo.reset()
    compiled = torch.compile(effect, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x.detach()), effect(x))


@pytest.mark.many
def test_streams_of_every_pitch_equal_the_whole(generator):
    x = torch.randn(2, 20_000, generator=generator)
    for semitones in (-36, -12, -5.3, 0.02, 4, 12, 36):
        for n_fft in (256, 2048):
            module = PitchShift(semitones, n_fft=n_fft)
            stream = Stream(module, FS, 2)
            parts = [stream.process(block) for block in x.split(777, dim=-1)] + [stream.flush()]
            y, whole = torch.cat(parts, dim=-1)[..., stream.latency_samples :], module(x)
            assert y.shape == whole.shape
            assert float((y - whole).abs().max()) < 1e-6 * float(whole.abs().max())


def test_a_stream_begins_anew_where_the_pitch_changes(generator):
    x, module = torch.randn(1, 3000, generator=generator), PitchShift(3, n_fft=256)
    state = module.init_state((1,), FS)
    _, state = module.step(x, state, FS)
    module.semitones = 3.01
    rest = module.init_state((1,), FS)
    assert torch.equal(module.step(x, state, FS)[0], module.step(x, rest, FS)[0])


def test_ratios_are_close_and_of_small_terms():
    for semitones in (-36, -5.3, -0.01, 0.02, 0.37, 1, 4, 7, 36):
        value = 2 ** (semitones / 12)
        above, below = simple_ratio(value)
        assert abs(cents(above / below, value)) < 0.01
        assert below <= 5000
    assert simple_ratio(1 + 1e-7) == (1, 1)


def test_waves_keep_their_rate_and_text_builds_them():
    wave = fx.Wave(torch.zeros(2, 4800), FS) | TimeStretch(2)
    assert (len(wave), wave.fs) == (2400, FS)
    assert repr(spec.build("pitchshift:3")) == "PitchShift(semitones=3, n_fft=4096)"


def test_misuse_is_named():
    with pytest.raises(ArgumentError, match=r"rate must lie in \[0.1, 10\], got 0"):
        TimeStretch(0)
    with pytest.raises(ArgumentError, match=r"rate must lie in \(0, inf\), got -1"):
        time_stretch(torch.ones(5), -1)
    with pytest.raises(ArgumentError, match="method must be one of phase_vocoder, wsola, got 'psola'"):
        time_stretch(torch.ones(5), 2, "psola")
    with pytest.raises(ArgumentError, match="n_fft must be a power of two, got 1000"):
        TimeStretch(2, n_fft=1000)
    with pytest.raises(ArgumentError, match="n_fft must be a power of two, got 300"):
        time_stretch(torch.ones(5), 2, n_fft=300)
    with pytest.raises(ArgumentError, match=r"semitones must lie in \[-36, 36\], got 40"):
        PitchShift(40)
    with pytest.raises(StreamError, match="needs the whole signal"):
        Stream(TimeStretch(2), FS, 1)
    with pytest.raises(StreamError, match='with method="wsola" needs the whole signal'):
        Stream(PitchShift(2, "wsola"), FS, 1)


def test_no_signals_give_none():
    for stretch in (TimeStretch(2, n_fft=256), TimeStretch(2, method="wsola", n_fft=256), Varispeed(2.0)):
        assert stretch(torch.zeros(0, 2, 600)).shape == (0, 2, 300)
