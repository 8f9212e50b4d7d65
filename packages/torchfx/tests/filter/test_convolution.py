"""Impulse responses: whole and in blocks, for one channel, each channel, and from each input to each output."""

import itertools

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from oracle import deviation
from torchfx import audio_io, spec
from torchfx.errors import ArgumentError, AudioFileError, SampleRateError
from torchfx.filter import Convolution
from torchfx.realtime import Stream

FS = 48_000


def blocks(module, x, size):
    stream = Stream(module, FS, x.shape[-2])
    return torch.cat([stream.process(block) for block in x.split(size, -1)], -1)


def expected(x, ir, mix):
    """The definition, ir being (outputs, inputs, n), or (channels, n)."""
    wet = [
        sum(signal.fftconvolve(x[i], response) for i, response in enumerate(each)) if each.ndim == 2
        else signal.fftconvolve(x[o], each)
        for o, each in enumerate(ir)
    ]  # fmt: skip
    return np.stack(wet)[:, : x.shape[-1]] * mix + x * (1 - mix)


@pytest.mark.parametrize("mix", [1.0, 0.3])
@pytest.mark.parametrize("shape", [(1,), (3000,), (2, 700), (2, 2, 900)])
def test_it_is_the_convolution_whole_and_in_blocks(rng, shape, mix):
    ir, x = rng.standard_normal(shape), rng.standard_normal((2, 5000))
    right = expected(x, np.broadcast_to(ir, (2, *shape[-1:])) if len(shape) == 1 else ir, mix)
    module = Convolution(ir, mix=mix)
    assert deviation(module(torch.from_numpy(x)), right) < 1e-12
    assert deviation(module(torch.from_numpy(x).float()), right) < 4e-7
    for size in (512, 977):
        assert deviation(blocks(module, torch.from_numpy(x), size), right) < 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "channels", "sizes"),
    [
        ((1024,), 1, (1, 63, 512, 4500)),  # the last at once
        ((9000,), 2, (512,)),
        ((2000,), 17, (300, 1, 5000)),
        ((2, 6000), 2, (511, 4096, 1)),
        ((2, 2, 1500), 2, (512, 1, 777)),
        ((75_000,), 1, (8192, 5)),  # partitions of three lengths
    ],
)
def test_blocks_of_any_size_equal_the_whole_with_the_state_carried_over(rng, shape, channels, sizes, dtype):
    ir = rng.standard_normal(shape)
    x = torch.from_numpy(rng.standard_normal((channels, max(2 * shape[-1] + 1500, 12_000)))).to(dtype)
    rows = np.broadcast_to(ir, (channels, *shape)) if len(shape) == 1 else ir
    module, moments = Convolution(ir), itertools.cycle([False] * 40 + [True])
    stream, start, parts = Stream(module, FS, channels), 0, []
    for size, moved in zip(itertools.cycle(sizes), moments, strict=False):
        if moved:
            state, stream = stream.state, Stream(module, FS, channels)
            stream.state = state
        parts.append(stream.process(x[:, start : start + size]))
        start += size
        if start >= x.shape[-1]:
            break
    bound = 1e-12 if dtype is torch.float64 else 2e-7
    assert deviation(torch.cat(parts, -1), expected(x.double().numpy(), rows, 1.0)) < bound


@pytest.mark.parametrize("shape", [(1500,), (2, 2, 1500)])
def test_what_is_not_finite_reaches_the_outputs_that_it_reaches_in_the_whole(rng, shape):
    ir, x = rng.standard_normal(shape), torch.from_numpy(rng.standard_normal((2, 6000)))
    x[0, 700], x[0, 2600], x[1, 2601] = torch.inf, -torch.inf, torch.nan
    module = Convolution(ir)
    for size in (512, 100, 6000):
        found, right = blocks(module, x, size), module(x)
        finite = torch.isfinite(right)
        torch.testing.assert_close(found[~finite], right[~finite], equal_nan=True)
        assert float((found - right)[finite].abs().max()) < 1e-10


def test_a_file_is_resampled_to_the_signal_and_keeps_its_gain(tmp_path, rng):
    x = torch.from_numpy(rng.standard_normal((2, 4000)))
    for channels in (1, 2, 4):
        ir = torch.from_numpy(rng.standard_normal((channels, 400)) * np.hanning(400)).float()
        audio_io.save(tmp_path / "ir.wav", ir, FS, encoding="FLOAT")
        shaped = ir[0] if channels == 1 else ir if channels == 2 else ir.reshape(2, 2, -1)
        module = Convolution(tmp_path / "ir.wav")
        assert torch.allclose((fx.Wave(x, FS) | module).ys, Convolution(shaped)(x), atol=1e-12)
    audio_io.save(tmp_path / "one.wav", torch.hann_window(2000)[None], 2 * FS, encoding="FLOAT")
    piped = fx.Wave(x, FS) | Convolution(tmp_path / "one.wav")  # reads the file, at this wave's rate
    at_half_the_rate = Convolution(tmp_path / "one.wav").taps_at(FS)
    assert torch.allclose(piped.ys, Convolution(at_half_the_rate)(x), atol=1e-12)
    assert float(at_half_the_rate.sum()) == pytest.approx(1000, rel=1e-4)  # the gain at 0 Hz
    assert at_half_the_rate.shape == (1000,)
    assert repr(spec.build(f"convolution:{tmp_path / 'one.wav'},mix=0.25")).endswith("one.wav', mix=0.25)")


def test_responses_and_mix_are_learned(rng):
    x = torch.from_numpy(rng.standard_normal((2, 30)))
    for shape in ((4,), (2, 2, 4)):
        ir = torch.from_numpy(rng.standard_normal(shape)).requires_grad_()
        mix = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda ir, mix: Convolution(ir, mix)(x), (ir, mix))


def test_misuse(tmp_path):
    with pytest.raises(ArgumentError, match=r"shape \(n,\), \(channels, n\) or \(2, 2, n\), got \(2, 3, 4\)"):
        Convolution(np.ones((2, 3, 4)))
    with pytest.raises(ArgumentError, match=r"mix must lie in \[0, 1\], got 2"):
        Convolution([1.0], mix=2.0)
    with pytest.raises(AudioFileError, match=r"missing\.wav"):
        Convolution(tmp_path / "missing.wav")
    with pytest.raises(ArgumentError, match=r"two channels, shape \(..., 2, time\), .* got \(3, 5\)"):
        Convolution(np.ones((2, 2, 4)))(torch.zeros(3, 5))
    audio_io.save(tmp_path / "ir.wav", torch.ones(1, 4), FS)
    with pytest.raises(SampleRateError, match=r"ir\.wav must be resampled to it"):
        Convolution(tmp_path / "ir.wav")(torch.zeros(1, 5))
