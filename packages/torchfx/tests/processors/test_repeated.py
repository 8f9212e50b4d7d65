"""Calls and blocks like the last one go past most of what the first one did: what they must not miss."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.nn.modules import module as torch_modules

import torchfx as fx
from processors.cases import CASES, FS, OWN, STREAMING, drawn, noise
from torchfx._ops import native
from torchfx.catalogue import available
from torchfx.effect.delay_network import DelayNetwork
from torchfx.errors import ArgumentError

NETWORKS = [name for name, entry in available().items() if issubclass(entry.load(), DelayNetwork)]


class Marked(torch.Tensor):
    """A subclass, whose operators say so."""


UNLIKE = {
    "strides": lambda x: x.T.contiguous().T,
    "every second sample": lambda x: torch.cat([x, x], -1)[:, ::2],
    "a view with the other sign": torch._neg_view,
    "float64": lambda x: x.double(),
    "float16": lambda x: x.half(),
    "integers": lambda x: x.int(),
    "another length": lambda x: torch.cat([x, x], -1),
    "examples": lambda x: torch.stack([x, x]),
    "a gradient": lambda x: x.clone().requires_grad_(),
    "a subclass": lambda x: x.as_subclass(Marked),
    "sparse": lambda x: x.to_sparse(),
    "another layout": lambda x: x.to_mkldnn() if torch.backends.mkldnn.is_available() else x,
    "an array": lambda x: x.numpy(),
    "nothing": lambda _: None,
}


def outcome(call, x):
    """Return what a call gives, or its error."""
    try:
        y = call(x)
    except Exception as error:  # noqa: BLE001 - any, to be compared
        return type(error), str(error)
    return type(y), y.dtype, y.requires_grad, y.detach().clone()


def same(a, b):
    return all(
        torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
        for one, other in zip(a, b, strict=True)
    )


def repeated(name):
    """Return a processor that was called twice on like signals, and the signal."""
    module, x = CASES[name](0), noise(2, 64)
    module(x)
    module(x)
    return module, x


@pytest.mark.parametrize("name", OWN)
def test_an_unlike_signal_is_what_it_is_to_a_new_processor(name):
    for why, change in UNLIKE.items():
        module, x = repeated(name)
        other = change(x)
        assert same(outcome(module, other), outcome(copy.deepcopy(module), other)), why


@pytest.mark.parametrize("name", OWN)
def test_hooks_hear_repeated_calls(name):
    module, x = repeated(name)
    heard = []
    for registered in (torch_modules.register_module_forward_hook, module.register_forward_hook):
        handle = registered(lambda called, *_: heard.append(called))
        module(x)
        handle.remove()
        assert any(each is module for each in heard), registered
        heard.clear()
        module(x)
        assert not heard
    module.register_forward_pre_hook(lambda _, given: (2 * given[0],))
    assert torch.equal(module(x), copy.deepcopy(module).forward(2 * x))


@pytest.mark.parametrize("name", OWN)
def test_transforms_and_modes_see_repeated_calls(name):
    module, x = repeated(name)
    new = copy.deepcopy(module)
    batch = torch.stack([x, -x])
    assert same(outcome(torch.vmap(module), batch), outcome(torch.vmap(new), batch))
    with torch.inference_mode():
        assert same(outcome(module, x), outcome(copy.deepcopy(module), x))


@pytest.mark.parametrize("name", STREAMING)
def test_an_unlike_block_is_what_it_is_to_another_stream(name):
    for why in ("strides", "a view with the other sign", "another length", "a gradient", "a subclass", "sparse"):
        module, x = CASES[name](0), noise(2, 64)
        streams = [fx.realtime.Stream(module, FS, 2) for _ in range(2)]
        for _ in range(3):
            streams[0].process(x)
            streams[1].process(x.T.contiguous().T)  # never repeats
        other = UNLIKE[why](x)
        found, expected = (outcome(stream.process, other) for stream in streams)
        assert found[0] is expected[0], why
        if isinstance(found[-1], torch.Tensor):
            assert torch.allclose(found[-1], expected[-1], atol=1e-6, equal_nan=True), why


def test_another_rate_around_a_repeated_call_is_heard():
    lowpass, x = fx.filter.LoButterworth(1000), noise(2, 64)
    found = []
    for rate in (FS, FS, FS / 2, FS / 2, FS):
        with fx.sample_rate(rate):
            found.append(lowpass(x))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[4])
    assert torch.equal(found[2], found[3])
    assert not torch.equal(found[0], found[2])
    built = fx.filter.LoButterworth(1000, fs=FS)
    built(x)
    with fx.sample_rate(FS / 2), pytest.raises(ArgumentError, match="was built for fs=48000 Hz but the signal has"):
        built(x)


def test_parameters_assigned_or_changed_in_place_are_heard():
    x = noise(2, 64)
    compressor = fx.effect.Compressor(-20.0, fs=FS)
    compressor(x)
    compressor.threshold_db = -40.0
    assert torch.equal(compressor(x), fx.effect.Compressor(-40.0, fs=FS)(x))
    gain = fx.effect.Gain(torch.tensor([[0.5], [0.25]], dtype=torch.float64).squeeze(-1))
    gain(x)
    gain(x)
    gain.gain.mul_(2)
    assert torch.allclose(gain(x), x * torch.tensor([[1.0], [0.5]]))


def test_what_is_written_on_top_of_a_call_runs_each_time():
    class Twice(fx.effect.Gain):
        def forward(self, x):
            return 2 * super().forward(x)

    x, twice, gain = noise(2, 64), Twice(0.5), fx.effect.Gain(0.5)
    for _ in range(3):
        assert torch.equal(twice(x), x)
        assert torch.equal(gain(x=x), x / 2)
    gain(x)
    gain.forward = lambda x: 3 * x
    assert torch.equal(gain(x), 3 * x)


@pytest.mark.skipif(native.library is None, reason="programs are the native library's")
@pytest.mark.parametrize("name", NETWORKS)
def test_a_delay_network_has_room_for_what_it_keeps(name):
    module = drawn(available()[name], 0)
    channels = 1 if module.channels_apart else 2
    stream = fx.realtime.Stream(module, FS, channels)
    stream.process(noise(channels, 64))
    steps = [values for running in stream._runner._running.values() for values in running.program._kept]
    for head in (values["kept"].view(torch.int64) for values in steps if values.get("kept") is not None):
        taken, lacks_room, address = head[:3].tolist()  # csrc/delay_network/interface.cpp
        assert not taken
        assert not lacks_room
        assert address


def test_a_network_in_many_threads_gives_what_it_gives_in_one():
    reverb, x = fx.effect.Reverb(fs=FS), noise(2, 3000)
    expected = reverb(x)
    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(lambda _: torch.equal(reverb(x), expected), range(100)))


@pytest.mark.skipif(native.library is None, reason="programs are the native library's")
def test_a_profiler_sees_repeated_calls_by_the_kinds_of_their_steps():
    compressor, x = fx.effect.Compressor(fs=FS), noise(2, 64)
    compressor(x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        compressor(x)
    assert any("dynamics" in event.key for event in profile.key_averages())
