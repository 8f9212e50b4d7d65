"""Any split of a signal into blocks gives what the whole gives."""

import io

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torchfx as fx
from processors.cases import CASES, COMPOSED, FS, OWN, STREAMING, as_type, noise, rate_behind
from torchfx.errors import StreamError
from torchfx.plan import plan_of
from torchfx.realtime import Stream
from torchfx.realtime.engine import LiveProgram

BOUNDS = {torch.float32: 1e-6, torch.float64: 1e-12}


def silence(stream):
    """Return how many samples a stream gives before its input begins: none where the sample rate changes."""
    return stream.latency_samples if rate_behind(stream.processor) == FS else 0


def streamed(stream, x, sizes):
    """Return what a stream makes of a signal cut into blocks of these sizes, without the samples of its latency."""
    late, parts, start = silence(stream), [], 0
    for size in (*sizes, x.shape[-1]):
        parts.append(stream.process(x[..., start : start + size]))
        start += size
    parts.append(stream.flush())
    return torch.cat(parts, dim=-1)[..., late:]


def far_apart(y, whole):
    """Return the deviation over the peak; results below the rounding of what was filtered out don't count."""
    return float((y - whole).abs().max() / whole.abs().max().clamp(min=1e-3))


def same(name, y, again):
    """Say whether results are the same bits, as far as the arithmetic is this library's."""
    return torch.equal(y, again) if name in OWN else far_apart(y, again) < 1e-6


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", STREAMING)
@settings(max_examples=min(settings().max_examples, 25))  # of each processor and type
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(0, 700), max_size=8))
def test_blocks_equal_the_whole(name, dtype, seed, sizes):
    module = as_type(CASES[name](seed), dtype)
    x = noise(2, 1500, seed=seed, dtype=dtype)
    with torch.no_grad():
        whole = module(x)
    y = streamed(Stream(module, FS, 2), x, sizes)
    assert y.shape == whole.shape
    assert far_apart(y, whole) < BOUNDS[dtype]


@pytest.mark.parametrize("name", STREAMING)
def test_single_samples_and_empty_blocks_equal_the_whole(name):
    module, x = CASES[name](1), noise(2, 40)
    with torch.no_grad():
        whole = module(x)
    assert far_apart(streamed(Stream(module, FS, 2), x, [1, 0] * 40), whole) < 1e-6


@pytest.mark.parametrize("name", STREAMING)
def test_a_state_saved_and_restored_goes_on_as_if_uninterrupted(name):
    module, x = CASES[name](2), noise(2, 900, seed=2)
    first, second = Stream(module, FS, 2), Stream(module, FS, 2)
    first.process(x[:, :317])
    buffer = io.BytesIO()
    torch.save(first.state, buffer)
    buffer.seek(0)
    second.state = torch.load(buffer)
    assert same(name, second.process(x[:, 317:]), first.process(x[:, 317:]))


@pytest.mark.parametrize("name", STREAMING)
def test_a_state_set_between_blocks_takes_the_stream_back(name):
    module, x = CASES[name](3), noise(2, 600, seed=3)
    stream = Stream(module, FS, 2)
    stream.process(x[:, :200])
    before = stream.state
    once = stream.process(x[:, 200:])
    stream.state = before
    assert same(name, stream.process(x[:, 200:]), once)


@pytest.mark.parametrize("name", STREAMING)
def test_reset_begins_anew(name):
    module, x = CASES[name](4), noise(2, 300, seed=4)
    stream = Stream(module, FS, 2)
    once = stream.process(x)
    stream.reset()
    assert torch.equal(stream.process(x), once)


@pytest.mark.parametrize("name", STREAMING)
def test_steps_by_hand_equal_a_stream(name):
    """The differentiable form: (x, state) -> (y, state)."""
    module, x = CASES[name](5), noise(2, 800, seed=5)
    state = module.init_state((2,), FS, x.dtype, x.device)
    parts, start = [], 0
    with torch.no_grad():
        for size in (0, 1, 99, 700):
            y, state = module.step(x[:, start : start + size], state, FS)
            parts.append(y)
            start += size
    late = module.latency_samples(FS)  # before its input begins, a stream is silent
    stream = Stream(module, FS, 2)
    assert far_apart(torch.cat(parts, dim=-1)[..., late:], stream.process(x)[..., silence(stream) :]) < 1e-6
    assert isinstance(state, tuple)
    assert all(isinstance(value, torch.Tensor) for value in state)


def test_what_needs_the_whole_signal_says_so():
    with pytest.raises(
        StreamError, match=r"Normalize \(1st of 1\) needs the whole signal before it can begin: .*process_file"
    ):
        Stream(CASES["normalize"](0), FS, 2)
    with pytest.raises(StreamError, match=r"Normalize \(2nd of 3\) needs the whole signal"):
        Stream(fx.filter.LoButterworth(1000) | CASES["normalize"](0) | CASES["gain"](0), FS, 2)


@pytest.mark.parametrize("name", [name for name in STREAMING if name not in COMPOSED])
def test_live_audio_needs_no_python(name):
    """Only where channels, bands or the sample rate come out different, for random numbers, and for pitch."""
    processor = CASES[name](0)
    plan = plan_of(processor, FS)
    same_shape = plan.keeps_rate and plan.leading((2,)) == (2,)
    in_python = isinstance(processor, fx.effect.Dither | fx.effect.PitchShift)
    assert LiveProgram.supports(plan.frozen(), 2) == (same_shape and not in_python)
