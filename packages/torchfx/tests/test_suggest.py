"""`suggest_device`: figures are measured, remembered, and decide."""

import json
import re

import pytest
import torch

import torchfx as fx
from command import run_here
from torchfx import suggest
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.suggest import decide, suggest_device

CHAIN = fx.filter.HiButterworth(80, order=4) | fx.effect.Gain(0.5)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def times(monkeypatch):
    """Replace the clock: one second for every 100 000 samples; the list says what was measured."""
    measured = []

    def median_time(work):
        size = work().numel()
        measured.append(size)
        return size / 1e5

    monkeypatch.setattr(suggest, "_median_time", median_time)
    monkeypatch.setattr(suggest, "_costs", {})
    return measured


def test_without_a_gpu_it_says_so(no_gpu, times):
    suggestion = suggest_device(CHAIN, channels=2, samples=50_000, fs=50_000)
    assert suggestion == suggest.Suggestion("cpu", suggestion.reason, 1.0, None, None)
    assert str(suggestion) == "cpu: there is no GPU that PyTorch can use; the CPU takes 1 s for 1 s of audio"


def test_a_cost_is_measured_once(no_gpu, times):
    for _ in range(3):
        suggest_device(CHAIN, channels=2, samples=1000, fs=48_000)
    suggest_device(fx.filter.LoButterworth(80), channels=2, samples=1000, fs=48_000)
    assert times == [2000, 2000]


def test_modules_that_differ_inside_are_measured_apart(no_gpu, times):
    class Voice(torch.nn.Module):
        def __init__(self, layers):
            super().__init__()
            self.layers = torch.nn.Sequential(*(torch.nn.Tanh() for _ in range(layers)))

        def forward(self, x):
            return self.layers(x)

    for layers in (1, 30):
        suggest_device(Voice(layers), channels=2, samples=1000, fs=48_000)
    assert times == [2000, 2000]


def test_long_signals_are_extrapolated(no_gpu, times):
    hour = suggest_device(CHAIN, channels=2, samples=48_000 * 3600, fs=48_000)
    assert hour.cpu_s == pytest.approx(2 * 48_000 * 3600 / 1e5)
    assert max(times) <= suggest.MEASURED


def test_a_gpu_must_pay_for_its_copies():
    assert decide(cpu_s=1.0, signal_s=60, gpu_s=0.1, transfer_s=0.5).device == "cuda"
    assert decide(cpu_s=0.5, signal_s=60, gpu_s=0.1, transfer_s=0.5).device == "cpu"


def test_the_chain_stays_as_it_was(no_gpu):
    chain = fx.filter.LoButterworth(1000) | torch.nn.Conv1d(2, 2, 1)
    before = [parameter.clone() for parameter in chain.parameters()]
    assert suggest_device(chain, channels=2, samples=500, fs=48_000).cpu_s > 0
    assert all(torch.equal(a, b) for a, b in zip(before, chain.parameters(), strict=True))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((CHAIN, 0, 100, 48_000), ArgumentError),
        ((CHAIN, 2, 0, 48_000), ArgumentError),
        ((CHAIN, 2, 100, 0), ArgumentError),
        (("lowpass", 2, 100, 48_000), ArgumentTypeError),
        ((CHAIN, 2.5, 100, 48_000), ArgumentTypeError),
    ],
)
def test_bad_arguments(arguments, error):
    with pytest.raises(error):
        suggest_device(*arguments)


def test_the_command_says_which_device(tmp_path):
    words = ["suggest", "-e", "lobutterworth:1kHz,8", "--length", "100ms", "--channels", "1"]
    ran = run_here(*words, folder=tmp_path)
    assert ran.returncode == 0
    assert re.match(r"(cpu|cuda): .* s", ran.stdout)
    found = json.loads(run_here(*words, "--format", "json", folder=tmp_path).stdout)["suggestion"]
    assert 0 < found["cpu_s"] < 1
    wrong = run_here("suggest", "-e", "lobutterworth:30kHz", folder=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "cutoff must lie in (0, fs/2) = (0, 24000) Hz" in wrong.stderr
