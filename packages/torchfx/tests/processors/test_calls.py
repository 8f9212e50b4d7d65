"""What holds for a call of any processor: it is pure, it can be copied, and it checks its signal."""

import copy
import os
import pickle
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

import torchfx as fx
from processors.cases import CASES, FS, OWN, noise, samples
from torchfx.errors import ArgumentError, ArgumentTypeError

NAMES = list(CASES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_call_is_pure(name, seed):
    module, x = CASES[name](seed), noise(2, 500, seed=seed)
    before, kept = x.clone(), {key: value for key, value in vars(module).items() if not key.startswith("_")}
    first = module(x)
    assert torch.equal(x, before)
    assert torch.equal(module(x), first)
    assert {key: value for key, value in vars(module).items() if not key.startswith("_")} == kept
    assert first.shape == (*module.output_shape((2,)), samples(module, 500))
    assert first.dtype == x.dtype


@pytest.mark.parametrize("name", NAMES)
def test_a_wave_gives_what_its_samples_give(name):
    module, x = CASES[name](0), noise(2, 500)
    if isinstance(module, fx.filter.Bank):
        with pytest.raises(ArgumentError, match=r"got \(2, \d+, 500\); call a bank of filters on wave.ys, under"):
            _ = fx.Wave(x, FS) | module
        return
    assert torch.equal((fx.Wave(x, FS) | module).ys, module(x))
    assert torch.equal((fx.Wave(x, FS) | torch.nn.Sequential(module)).ys, module(x))


@pytest.mark.parametrize("name", NAMES)
def test_copies_do_the_same(name):
    module, x = CASES[name](1), noise(2, 500)
    expected = module(x)
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), copy.copy(module)):
        assert torch.equal(twin(x), expected)
        assert repr(twin) == repr(module)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_dict_carries_what_is_learned_or_given(name):
    module = CASES[name](2)
    twin = copy.deepcopy(module)
    for tensor in (*twin.parameters(), *twin.buffers()):
        tensor.data.zero_()
    twin.load_state_dict(module.state_dict())
    x = noise(2, 500)
    assert torch.equal(twin(x), module(x))


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_their_items(name):
    module, x = CASES[name](3), noise(3, 2, 400, seed=3)
    together = module(x)
    for i in range(3):
        assert torch.allclose(together[i], module(x[i]), atol=1e-6)
    assert module(x[:0]).shape == (0, *together.shape[1:])


@pytest.mark.parametrize("name", OWN)
def test_no_channels_give_none_or_are_refused(name):
    module = CASES[name](0)
    try:
        y = module(noise(0, 400))
    except ArgumentError as error:
        assert re.search(r"must have .*channels|\(\.\.\., inputs, time\)", str(error))  # noqa: PT017
    else:
        assert y.shape == (*module.output_shape((0,)), samples(module, 400))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_the_error_for_integers_says_how_a_wave_takes_them(dtype):
    limits = torch.iinfo(dtype)
    x = torch.tensor([limits.min, 0, 7, limits.max], dtype=torch.int64).to(dtype)
    calls = {
        "x": lambda: fx.effect.Gain(0.5)(x),
        "block": lambda: fx.realtime.Stream(fx.effect.Gain(0.5), FS, 1).process(x[None]),
    }
    for name, call in calls.items():
        with pytest.raises(ArgumentTypeError, match=f"{name} must be float32 or float64, got {dtype}") as caught:
            call()
        found = eval(str(caught.value).partition("by hand: ")[2], {name: x})
        assert torch.equal(found, fx.Wave(x, FS).ys[0])


@pytest.mark.parametrize("name", NAMES)
def test_every_signal_is_checked_alike(name):
    module, x = CASES[name](0), noise(2, 100)
    bad = [
        (
            fx.Wave(x, FS),
            ArgumentTypeError,
            r"x must be a tensor .* got Wave; a Wave is piped: wave \| module",
        ),
        (x.numpy(), ArgumentTypeError, r"x must be a tensor \(..., time\), got ndarray"),
        (x.numpy().tolist(), ArgumentTypeError, r"x must be a tensor \(..., time\), got list"),
        ((x * 100).int(), ArgumentTypeError, "x must be float32 or float64, got torch.int32; a Wave maps integers"),
        ((x * 100).long(), ArgumentTypeError, r"x must be float32 or float64, got torch.int64; convert it first"),
        (x.half(), ArgumentTypeError, "x must be float32 or float64, got torch.float16"),
        (torch.complex(x, x), ArgumentTypeError, "x must be real, got torch.complex64"),
        (x.to_sparse(), ArgumentTypeError, "x must be a dense tensor, got the layout torch.sparse_coo"),
        (x[:, :0], ArgumentError, r"x must hold samples, shape \(..., time\), got the empty shape \(2, 0\)"),
        (torch.tensor(1.0), ArgumentError, r"x must hold samples, shape \(..., time\), got the empty shape \(\)"),
    ]
    for value, error, message in bad:
        with pytest.raises(error, match=message):
            module(value)


@pytest.mark.parametrize("name", NAMES)
def test_autocast_computes_in_float32(name):
    module, x = CASES[name](0), noise(2, 100)
    with torch.autocast("cpu", torch.bfloat16):
        y = module(x.bfloat16())
    assert y.dtype in {torch.float32, torch.bfloat16}  # a convolution inside of it goes on in half precision
    assert torch.allclose(y.float(), module(x.bfloat16().float()), atol=0.05)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_modules_of_half_precision_compute_in_float32(name, half):
    if "context" in name or "late" in name:
        pytest.skip("the convolution inside has weights of half precision")
    module, x = CASES[name](0), noise(2, 100).to(half)
    expected = module(x.float())
    y = module.to(half)(x)
    assert y.dtype == half
    assert torch.allclose(y.float(), expected.to(half).float(), rtol=0.02, atol=1e-3)
    assert torch.equal(module.float()(x.float()), expected)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_built_and_runs_on_fake_and_meta_tensors(name):
    with FakeTensorMode():
        module = CASES[name](0)
        assert module(torch.empty(2, 300)).shape == (*module.output_shape((2,)), samples(module, 300))
    with torch.device("meta"):
        module = CASES[name](0)
    y = module(torch.empty(2, 300, device="meta"))
    assert y.shape == (*module.output_shape((2,)), samples(module, 300))


@pytest.mark.parametrize("name", NAMES)
def test_32_threads_share_a_module(name):
    module, signals = CASES[name](1), [noise(2, 300, seed=i) for i in range(32)]
    with torch.no_grad():
        expected = [module(x) for x in signals]
        fresh = copy.deepcopy(module)
        with ThreadPoolExecutor(32) as pool:
            for y, right in zip(pool.map(fresh, signals), expected, strict=True):
                assert torch.equal(y, right)


def ended_well(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_children_go_on():
    """With one thread for PyTorch, as `DataLoader` sets in its workers: its OpenMP and MKL don't survive a fork."""
    modules, x = [CASES[name](0) for name in OWN], noise(2, 300)
    with torch.no_grad():
        expected = [module(x) for module in modules]
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            torch.set_num_threads(1)
            same = all(torch.equal(module(x), right) for module, right in zip(modules, expected, strict=True))
            os._exit(0 if same else 1)
    assert ended_well(child)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_filters_keep_their_threads_in_forked_children():
    module, x = fx.filter.HiButterworth(80, order=8, fs=FS), noise(8, 100_000)
    with torch.no_grad():
        expected = module(x).numpy()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(0 if np.array_equal(module(x).numpy(), expected) else 1)
    assert ended_well(child)


@pytest.mark.parametrize("name", NAMES)
def test_checkpoints_recompute_at_the_same_rate(name):
    module = CASES[name](0)
    for part in module.modules():
        if isinstance(part, fx.Processor) and "fs" in part.declarations:
            part.fs = None
    x = noise(2, 300).requires_grad_()
    with fx.sample_rate(FS):
        expected = torch.autograd.grad(module(x).square().sum(), x)[0]
        results = [checkpoint(module, x, use_reentrant=reentrant) for reentrant in (False, True)]
    for y in results:
        x.grad = None
        y.square().sum().backward()
        # What runs without a gradient may round otherwise than what it is computed from.
        assert torch.allclose(x.grad, expected, rtol=1e-5, atol=1e-6 * float(expected.abs().max()))


def test_checkpoints_of_calls_at_two_rates_refuse_to_guess():
    module, x = fx.filter.LoButterworth(1000), noise(2, 300).requires_grad_()
    results = []
    for fs in (44_100, 48_000):
        with fx.sample_rate(fs):
            results.append(checkpoint(module, x, use_reentrant=False))
    with pytest.raises(fx.errors.SampleRateError, match="was called at 44100 and 48000 Hz before"):
        results[0].sum().backward()


def test_odd_signals_equal_contiguous_ones():
    for name in NAMES:
        module = CASES[name](0)
        for x in (noise(300, 2).T, noise(2, 600)[:, ::2], noise(2, 300).flip(0), noise(2, 301)[:, 1:]):
            with torch.no_grad():
                assert torch.allclose(module(x), module(x.contiguous()), atol=1e-6), name


def test_declared_parameters_are_shown_and_checked():
    low = fx.filter.LoButterworth(1000, fs=FS)
    for value, message in ((50_000, r"\(0, 24000\) Hz, got 50000"), (-1, "got -1"), ("1x", "must be a number in Hz")):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
            low.cutoff = value
    assert low.cutoff == 1000
    low.cutoff = 2000
    assert np.allclose(low.sos, fx.filter.LoButterworth(2000, fs=FS).sos)
    with pytest.raises(ArgumentError, match="cutoff is a parameter of LoButterworth and cannot be deleted"):
        del low.cutoff
