"""What a call allocates, and what it takes beyond its input and output."""

import json
import subprocess
import sys

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import torchfx as fx
from many_cases import spread_out
from torchfx._ops import native

pytestmark = pytest.mark.skipif(native.library is None, reason="the reference in plain PyTorch makes temporaries")


def allocations(run, folder):
    """Sizes in bytes of everything PyTorch allocates during a call."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as captured:
        kept = run()
    captured.export_chrome_trace(str(folder / "trace.json"))
    del kept
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    sizes = [event["args"]["Bytes"] for event in events if event.get("name") == "[memory]"]
    return [size for size in sizes if size > 0]


@pytest.mark.parametrize(
    ("modules", "state_bytes"),
    [
        (
            [fx.filter.HiButterworth(80, order=4), fx.filter.LoChebyshev1(9000, order=3), fx.effect.Gain(0.5)],
            4 * 2 * 2 * 8,
        ),
        ([fx.filter.DesignableFIR(1000, 101), fx.filter.DesignableFIR(2000, 101)], 2 * 200 * 8),
    ],
)
def test_a_call_allocates_output_and_state_only(tmp_path, generator, modules, state_bytes):
    wave = fx.Wave(torch.randn(2, 5000, generator=generator), 48000)
    chain = fx.FilterChain(*modules)
    _ = wave | chain
    assert sorted(allocations(lambda: wave | chain, tmp_path)) == sorted([wave.ys.nbytes, state_bytes])


def most_at_once(run, folder):
    """Return the most bytes that PyTorch holds during a call beyond those before it, and the call's result."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as captured:
        kept = run()
    captured.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    held = [event["args"] for event in events if event.get("name") == "[memory]"]
    return max(each["Total Allocated"] for each in held) - (held[0]["Total Allocated"] - held[0]["Bytes"]), kept


@pytest.mark.parametrize(
    ("module", "rows"),
    [
        (fx.spectral.LogMel("whisper"), 80),
        (fx.spectral.LogMel("librosa", fs=16_000), 128),
        (fx.spectral.LogMel("kaldi", fs=16_000), 23),
        (fx.spectral.MelSpectrogram(n_mels=40, fs=16_000), 40),
        (fx.spectral.MFCC(n_mfcc=13, n_mels=40, fs=16_000), 40 + 13),
        (fx.spectral.LFCC(n_lfcc=13, n_filter=40, log_lf=True, fs=16_000), 40 + 13),
    ],
    ids=str,
)
def test_features_take_their_bands_and_results_alone_and_their_gradient_that_of_the_samples(tmp_path, module, rows):
    x = torch.rand(1, 20 * 16_000) - 0.5
    y = module(x)
    largest = rows * y.shape[-1] * y.element_size()
    most, _ = most_at_once(lambda: module(x), tmp_path)
    assert largest <= most < 1.1 * largest

    def trained():
        leaf = x.detach().requires_grad_()
        module(leaf).sum().backward()
        return leaf.grad

    most, grad = most_at_once(trained, tmp_path)
    assert grad.shape == x.shape
    assert most < 2 * (largest + x.nbytes)


@pytest.mark.parametrize("make", [fx.losses.STFTLoss, fx.losses.MultiResolutionSTFTLoss])
def test_a_loss_and_its_gradient_take_less_than_three_spectra(tmp_path, make):
    loss, x, y = make(), torch.rand(8, 1, 60_000) - 0.5, torch.rand(8, 1, 60_000) - 0.5
    parts = loss.losses if hasattr(loss, "losses") else [loss]
    spectrum = max(part.spectrum(x).nbytes for part in parts)

    def trained():
        leaf = x.detach().requires_grad_()
        loss(leaf, y).backward()
        return leaf.grad

    most, _ = most_at_once(trained, tmp_path)
    assert 2 * spectrum < most < 3 * spectrum


PEAK = """
import resource, torch, torchfx as fx
chain = {chain}
warm = fx.Wave(torch.zeros(12, 50_000), 44100) | chain
wave = fx.Wave(torch.full((12, 44100 * 120), 0.5), 44100)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = wave | chain
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak * 1024 - before * 1024 - result.ys.nbytes)
"""
IIR = "fx.filter.HiButterworth(80, order=4) | fx.filter.LoChebyshev1(9000, order=6)"
FIR = "fx.FilterChain(*(fx.filter.DesignableFIR(1000 + i, 101 + i) for i in range(5)))"


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
@pytest.mark.parametrize("chain", spread_out([f"{IIR} | {FIR}", IIR, FIR]))
def test_no_temporary_grows_with_the_signal(chain):
    ran = subprocess.run([sys.executable, "-c", PEAK.format(chain=chain)], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 64e6
