"""Native steps, which whole signals run in where no gradient is wanted, and the PyTorch forms that gradients need."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

import torchfx as fx
from processors.cases import CASES, FS, OWN, QUANTISERS, noise
from torchfx._ops import native
from torchfx.errors import ArgumentError
from torchfx.realtime import Stream

pytestmark = pytest.mark.skipif(native.library is None, reason="compares the native library with PyTorch")

BOUNDS = {torch.float32: 2e-7, torch.float64: 1e-12}
"""Over the peak: of float32's rounding, the rule for all of this library's results."""

NAMES = [name for name in OWN if name != "chain"]


class InPyTorch(TorchDispatchMode):
    """A mode that only watches; under it all steps are PyTorch's operators and this library's."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def both(module, x):
    """Return what a module makes of a signal natively, and in PyTorch."""
    with torch.no_grad():
        y = module(x)
        with InPyTorch():
            return y, module(x)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("shape", [(2, 1025), (17, 63), (3, 2, 257), (1, 1), (100,)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_both_forms_lie_within_rounding_of_the_exact_result(name, shape, dtype):
    module = CASES[name](0)
    x = noise(*shape, dtype=dtype)
    try:
        y, in_pytorch = both(module, x)
    except ArgumentError:  # of another number of channels
        return
    exact = in_pytorch if type(module).__name__.lower() in {each.lower() for each in QUANTISERS} else None
    exact = both(module, x.double())[1] if exact is None else exact
    peak = float(exact.abs().max())
    for found in (y, in_pytorch):
        assert found.dtype == dtype
        assert float((found - exact).abs().max()) <= BOUNDS[dtype] * peak


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_take_odd_signals(name):
    module = CASES[name](1)
    for x in (noise(300, 2).T, noise(2, 600)[:, ::2], noise(2, 301)[:, 1:], noise(1, 300).expand(2, 300)):
        y, in_pytorch = both(module, x)
        torch.testing.assert_close(y, in_pytorch, rtol=0, atol=4e-7 * float(in_pytorch.abs().max()))


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_have_a_nan_in_the_same_places(name):
    module, x = CASES[name](0), noise(2, 400)
    x[0, 150] = torch.nan
    try:
        y, in_pytorch = both(module, x)
    except ArgumentError as error:  # of a level that cannot be measured
        assert "finite" in str(error)  # noqa: PT017
        return
    assert y.isnan().any()
    assert torch.equal(y.isnan(), in_pytorch.isnan())


@pytest.mark.parametrize("oversample", [1, 2])
@pytest.mark.parametrize("drive_db", [-300.0, 200.0, 760.0, 780.0, 6159.0])
def test_no_drive_is_too_large_for_a_curve(drive_db, oversample):
    """Above 770 dB it is beyond float32."""
    x = noise(2, 300)
    x[:, 7] = 0
    curves = [fx.effect.SoftClip(shape, drive_db, oversample) for shape in ("tanh", "cubic", "arctan")]
    for module in (*curves, fx.effect.Overdrive(drive_db, oversample), fx.effect.Distortion(drive_db, oversample)):
        exact = both(module, x.double())[0]
        for y in both(module, x):
            assert float((y - exact).abs().max()) <= 2e-7 * float(exact.abs().max())


def test_gradients_are_those_of_the_result():
    """The forward pass of a gradient runs in PyTorch; its result lies as close to the exact one."""
    module, x = fx.effect.TransientShaper(fs=FS) | fx.effect.SoftClip(oversample=2), noise(2, 2000)
    followed = module(x.clone().requires_grad_()).detach()
    assert float((module(x) - followed).abs().max()) <= 4e-7 * float(followed.abs().max())


# --- profilers ----------------------------------------------------------------------------------------------


def recorded(run):
    """Return this library's operators in a call, with the shapes of the signals they get."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        run()
    return [(event.name, event.input_shapes[0]) for event in seen.events() if event.name.startswith("torchfx_ext")]


def test_a_profiler_shows_the_native_steps_of_a_whole_signal():
    chain = fx.filter.HiButterworth(80) | fx.effect.TransientShaper() | fx.effect.SoftClip()
    wave = fx.Wave(noise(2, 500), FS)
    expected = [
        ("torchfx_ext::sos_forward", [2, 500]),
        ("torchfx_ext::maximum+transient", [2, 500]),
        ("torchfx_ext::curve", [2, 500]),
    ]
    with torch.no_grad():
        assert recorded(lambda: wave | chain) == expected


def test_a_profiler_shows_a_stream_as_it_runs():
    chain = fx.filter.HiButterworth(80) | fx.effect.MultibandCompressor() | fx.effect.Gain(0.5, clamp=True)
    stream, watched = Stream(chain, FS, 2), Stream(chain, FS, 2)
    blocks, parts = noise(2, 640).split(64, dim=-1), []
    for each in (stream, watched):
        each.process(blocks[0])  # the plan is made
    found = recorded(lambda: parts.extend(map(watched.process, blocks)))
    assert found == [("torchfx_ext::sos+widen+dynamics+add+narrow+gain+clamp", [2, 64])] * 10
    assert torch.equal(torch.cat(parts, dim=-1), torch.cat(list(map(stream.process, blocks)), dim=-1))


def test_a_profiled_call_gives_the_same_bits():
    for name in NAMES:
        module, x = CASES[name](2), noise(2, 700)
        with torch.no_grad():
            expected = module(x)
            with profile(activities=[ProfilerActivity.CPU]):
                assert torch.equal(module(x), expected), name
