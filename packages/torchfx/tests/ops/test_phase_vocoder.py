"""The phase vocoder: native and reference against each other and closed forms."""

import pytest
import torch
from torch.autograd import gradcheck

from operators import backend, forms
from torchfx import _ops
from torchfx._ops import native
from torchfx._ops.phase_vocoder.composite import nearest_peaks
from torchfx.errors import ArgumentError, ArgumentTypeError

BOUNDS = {torch.float32: 2e-7, torch.float64: 1e-12}


def hann(n):
    return torch.hann_window(n, dtype=torch.float64)


def deviation(y, expected):
    return float((y - expected).abs().max() / expected.abs().max().clamp(min=1e-9))


@pytest.mark.skipif(native.library is None, reason="needs the native library")
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("n", [256, 2048])
def test_native_equals_the_reference(n, dtype, generator):
    own, reference = backend("phase_vocoder_forward", "cpu"), backend("phase_vocoder_forward", "composite")
    for channels, time, rate, hop, first, origin, count in (
        (1, 1, 1.0, n // 4, 0, 0, 3),
        (2, 3000, 0.7, n // 4, 0, 0, 9),
        (17, 1025, 1.9, n // 8, 3, -200, 6),
        (1, 4 * n, 1.3, n // 2, -1, 50, 1),
    ):
        x = torch.randn(channels, time, generator=generator).to(dtype)
        state = torch.randn(channels, n // 2 + 1, 2, dtype=torch.float64, generator=generator)
        for signal in (x, x.T.contiguous().T, torch.cat([x, x], -1)[:, ::2]):
            for before in (None, state):
                arguments = (signal, hann(n), before, rate, hop, first, origin, count)
                for mine, right in zip(own(*arguments), reference(*arguments), strict=True):
                    assert deviation(mine, right) < BOUNDS[dtype]


@pytest.mark.parametrize("run", forms("phase_vocoder_forward"))
def test_what_repeats_is_read_anywhere_and_stays(run):
    """Cosines of whole periods in `hop` samples, at any rate; windows a quarter apart add up to 1.5 in square."""
    x = torch.cos(2 * torch.pi * 5 / 64 * torch.arange(-4000, 8000, dtype=torch.float64))
    for rate in (0.3, 1.0, 2.1):
        y = run(x, hann(256), None, rate, 64, 0, 4000, 30)[0]
        middle = 1.5 * torch.cos(2 * torch.pi * 5 / 64 * torch.arange(len(y), dtype=torch.float64))
        assert float((y - middle)[256:-256].abs().max()) < 1e-6


@pytest.mark.parametrize("run", forms("phase_vocoder_forward"))
def test_a_state_goes_on_where_the_call_before_stopped(run, generator):
    x = torch.randn(2, 3000, dtype=torch.float64, generator=generator)
    whole, after = run(x, hann(256), None, 0.8, 64, 0, 0, 20)
    first, state = run(x, hann(256), None, 0.8, 64, 0, 0, 7)
    second, end = run(x, hann(256), state, 0.8, 64, 7, 0, 13)
    first, second = (torch.nn.functional.pad(y, room) for y, room in ((first, (0, 13 * 64)), (second, (7 * 64, 0))))
    assert deviation(first + second, whole) < 1e-13
    assert deviation(end, after) < 1e-12


def test_threads_change_nothing(generator, one_thread):
    for channels in (1, 3):
        x = torch.randn(channels, 9000, generator=generator)
        state = torch.randn(channels, 129, 2, dtype=torch.float64, generator=generator)
        results = []
        for threads in (1, 2, 3, 4):
            torch.set_num_threads(threads)
            results.append(_ops.phase_vocoder_forward(x, hann(256), state, 1.1, 64, 0, 0, 77))
        for y, after in results:
            assert torch.equal(y, results[0][0])
            assert torch.equal(after, results[0][1])


def test_peaks_are_above_two_neighbours_on_each_side():
    power = torch.tensor([[5.0, 1, 2, 1, 3, 1, 1, 4, 2, 0, 0], [0.0] * 11, [1.0] * 11, [torch.nan] * 11])
    assert nearest_peaks(power).tolist() == [[0, 0, 0, 4, 4, 4, 7, 7, 7, 7, 7], *[[-1] * 11] * 3]


def test_gradients(generator):
    x = torch.randn(2, 10, dtype=torch.float64, generator=generator, requires_grad=True)
    assert gradcheck(lambda x: _ops.phase_vocoder_forward(x, hann(256), None, 0.8, 64, 0, 4, 3)[0][:, 100:200:9], x)


def test_misuse_is_named():
    x = torch.ones(10)
    with pytest.raises(
        ArgumentError, match=r"window must have the shape \(n,\), n a power of two >= 256, got \(300,\)"
    ):
        _ops.phase_vocoder_forward(x, hann(300), None, 1.0, 64, 0, 0, 3)
    with pytest.raises(ArgumentError, match="hop must divide the window's 256 samples, got 100"):
        _ops.phase_vocoder_forward(x, hann(256), None, 1.0, 100, 0, 0, 3)
    with pytest.raises(ArgumentError, match=r"rate must be > 0, got 0\.0"):
        _ops.phase_vocoder_forward(x, hann(256), None, 0.0, 64, 0, 0, 3)
    with pytest.raises(ArgumentError, match="count must be >= 0, got -1"):
        _ops.phase_vocoder_forward(x, hann(256), None, 1.0, 64, 0, 0, -1)
    with pytest.raises(ArgumentTypeError, match=r"window must be float64, got torch\.float32"):
        _ops.phase_vocoder_forward(x, hann(256).float(), None, 1.0, 64, 0, 0, 3)
