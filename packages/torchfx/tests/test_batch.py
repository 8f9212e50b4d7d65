"""Many signals at once give what each gives alone."""

import pytest
import torch

import torchfx as fx
from processors.cases import noise
from torchfx import batch
from torchfx._ops import native
from torchfx.errors import ArgumentTypeError, SampleRateError

FS = 16_000
LENGTHS = (1, 17, 1023, 1025, 1500, 2047)

EFFECTS = {
    "chain": fx.filter.HiButterworth(20, order=12) | fx.filter.DesignableFIR(3000, 101) | fx.effect.Gain(0.5),
    "causal": fx.effect.Compressor() | fx.effect.Limiter() | torch.nn.Tanh(),
    "measured": fx.effect.Normalize(0.5),
    "whole": fx.filter.LoButterworth(500) | fx.effect.Reverse(),
    "rate": fx.filter.Resample(48_000),
    "channels": fx.effect.Mono(),
}


@pytest.fixture(autouse=True)
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", EFFECTS)
def test_each_gives_what_it_gives_alone(name):
    waves = [fx.Wave(noise(2, n, seed=n), FS, metadata={"n": n}) for n in LENGTHS]
    waves += [fx.Wave(noise(1, 1300), FS), fx.Wave(noise(2, 1300).double(), FS)]
    for wave, y in zip(waves, fx.batch_process(waves, EFFECTS[name]), strict=True):
        alone = wave | EFFECTS[name]
        assert (y.fs, y.metadata, y.ys.dtype) == (alone.fs, wave.metadata, alone.ys.dtype)
        assert torch.allclose(y.ys, alone.ys, rtol=0, atol=2e-7)


CASCADE = fx.filter.HiButterworth(20, order=12) | fx.effect.Gain(0.5) | fx.filter.LoChebyshev1(3000, order=5)


def many_signals():
    lengths = [1, 2, 17, 1023, 1025, *range(1500, 4000, 80)]
    signals = [noise(1 + n % 3, n, seed=n) for n in lengths]
    doubles = [noise(2, n, seed=n).double() for n in (1, 500, 3000)]
    return [*signals, *doubles, noise(3000, 2).T, noise(2, 6000)[:, ::2], noise(1, 2000).expand(4, -1)]


@pytest.mark.parametrize("threads", [1, 3])
def test_many_signals_through_a_cascade_are_one_native_call(threads):
    torch.set_num_threads(threads)
    signals = many_signals()
    waves = [fx.Wave(x, FS, metadata={"n": x.shape[-1]}) for x in signals]
    found = batch._filtered(waves, CASCADE, threads)
    assert (found is None) == (native.library is None)
    for wave, y, same in zip(waves, fx.batch_process(waves, CASCADE), found or waves, strict=True):
        alone = wave | CASCADE
        assert (y.fs, y.metadata, y.ys.dtype) == (FS, wave.metadata, wave.ys.dtype)
        assert torch.allclose(y.ys, alone.ys, rtol=0, atol=2e-7)
        assert found is None or torch.equal(y.ys, same.ys)
    for x, y in zip(signals, _at_rate(lambda: fx.batch_process([x[0] for x in signals], CASCADE)), strict=True):
        assert torch.allclose(y, _at_rate(lambda x=x: CASCADE(x[0])), rtol=0, atol=2e-7)
    torch.set_num_threads(3)


def test_one_native_call_only_where_it_does_what_calls_do():
    signals = many_signals()
    for effect in (EFFECTS["chain"], EFFECTS["causal"], EFFECTS["rate"], torch.nn.Tanh()):
        assert _at_rate(lambda effect=effect: batch._filtered(signals, effect, 3)) is None
    assert _at_rate(lambda: batch._filtered([*signals, noise(2, 100_000)], CASCADE, 3)) is None
    assert _at_rate(lambda: batch._filtered([*signals, noise(2, 0)], CASCADE, 3)) is None
    learned = fx.filter.LoButterworth(torch.nn.Parameter(torch.tensor(500.0)), fs=FS)
    assert batch._filtered(signals, learned, 3) is None
    assert all(y.requires_grad for y in fx.batch_process(signals, learned))
    signals[0].requires_grad_()
    assert _at_rate(lambda: batch._filtered(signals, CASCADE, 3)) is None


def _at_rate(call):
    with fx.sample_rate(FS):
        return call()


def test_tensors_are_processed_at_the_ambient_rate():
    effect, signals = fx.filter.LoButterworth(500), [noise(n) for n in LENGTHS]
    with fx.sample_rate(FS):
        for y, x in zip(fx.batch_process(signals, effect), signals, strict=True):
            assert torch.allclose(y, effect(x), rtol=0, atol=2e-7)
    assert fx.batch_process([], effect) == []


def test_gradients_are_recorded_where_they_are_wanted():
    gain = torch.nn.Parameter(torch.tensor(0.5))
    signals = [noise(n) for n in LENGTHS]
    found = fx.batch_process(signals, fx.effect.Gain(gain))
    grad = torch.autograd.grad(sum(y.sum() for y in found), gain)[0]
    assert torch.allclose(grad, sum(x.sum() for x in signals))
    with torch.no_grad():
        assert not any(y.requires_grad for y in fx.batch_process(signals, fx.effect.Gain(gain)))
    with torch.inference_mode():
        assert all(y.is_inference() for y in fx.batch_process(signals, fx.effect.Gain(0.5)))


class Picky(torch.nn.Module):
    def forward(self, x):
        if x.shape[-1] == 1025:
            raise ArithmeticError("1025 samples")
        return x


def test_an_error_in_another_thread_is_raised_here():
    with pytest.raises(ArithmeticError, match="1025 samples"):
        fx.batch_process([noise(n) for n in LENGTHS], Picky())


def test_misuse_is_said():
    with pytest.raises(ArgumentTypeError, match=r"effect must be an nn.Module, got function"):
        fx.batch_process([noise(2, 5)], lambda x: x)
    with pytest.raises(ArgumentTypeError, match=r"waves must hold waves, or tensors \(..., time\), got Tensor, Wave"):
        fx.batch_process([noise(2, 5), fx.Wave(noise(2, 5), FS)], fx.effect.Gain(1.0))
    with pytest.raises(ArgumentTypeError, match=r"got list"):
        fx.batch_process([[1.0, 2.0]], fx.effect.Gain(1.0))
    with pytest.raises(SampleRateError, match="waves must share one sample rate, got 8000, 16000 Hz"):
        fx.batch_process([fx.Wave(noise(2, 5), FS), fx.Wave(noise(2, 5), 8000)], fx.effect.Gain(1.0))


@pytest.mark.parametrize(("name", "stacks"), [("chain", True), ("causal", False), ("measured", False), ("rate", False)])
def test_signals_of_a_gpu_run_as_one_batch_where_that_changes_nothing(name, stacks):
    """On the CPU: there may be no GPU here."""
    waves = [fx.Wave(noise(2, n, seed=n), FS, metadata={"n": n}) for n in LENGTHS]
    found = batch._stacked(waves, EFFECTS[name])
    assert (found is not None) == stacks
    for wave, y in zip(waves, found or [], strict=stacks):
        assert (y.fs, y.metadata) == (FS, wave.metadata)
        assert torch.allclose(y.ys, (wave | EFFECTS[name]).ys, rtol=0, atol=2e-7)
    assert batch._stacked([*waves, fx.Wave(noise(1, 9), FS)], EFFECTS[name]) is None
