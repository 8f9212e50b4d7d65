"""What a call costs beside the arithmetic, in Python calls: they are the same whatever else the machine does."""

import sys

import pytest
import torch

import torchfx as fx
from torchfx._ops import native

pytestmark = pytest.mark.skipif(native.library is None, reason="counts the way to the native library")

FS = 48_000


def python_calls(work):
    """Return the file and name of every Python function that is called."""
    work()  # plans are made
    seen = []

    def listen(frame, event, _):
        if event == "call":
            seen.append((frame.f_code.co_filename, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(listen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return seen


@pytest.fixture
def wave(generator):
    return fx.Wave(torch.randn(2, 64, generator=generator), FS)


def filters(depth):
    return [fx.filter.LoButterworth(1000 + i) for i in range(depth)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: fx.filter.HiButterworth(80, order=4) | fx.filter.LoButterworth(12_000) | fx.effect.Gain(0.5),
        lambda: fx.FilterChain(*filters(60)),
        lambda: fx.filter.LoButterworth(1000),
    ],
)
def test_a_wave_through_a_chain_is_a_dozen_calls_in_eight_files(wave, make):
    chain = make()
    seen = python_calls(lambda: wave | chain)
    own = [call for call in seen if "lambda" not in call[1]]
    assert len(own) <= 14, own
    assert len({file for file, _ in own}) <= 8


def test_a_remembered_plan_costs_the_same_at_any_depth(wave):
    few, many = fx.FilterChain(*filters(3)), fx.FilterChain(*filters(60))
    assert len(python_calls(lambda: wave | few)) == len(python_calls(lambda: wave | many))


def test_a_stream_is_a_handful_of_calls(wave):
    chain = fx.filter.HiButterworth(80, order=4) | fx.effect.Gain(0.5, clamp=True) | fx.filter.LoButterworth(12_000)
    stream = fx.realtime.Stream(chain, FS, 2)
    assert len(python_calls(lambda: stream.process(wave.ys))) <= 12


def test_a_filter_on_a_tensor_is_a_score_of_calls(wave):
    low = fx.filter.LoButterworth(1000, fs=FS)
    assert len(python_calls(lambda: low(wave.ys))) <= 20
