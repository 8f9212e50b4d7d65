"""A loop over pieces of a signal warns once that the chain forgets between them; nothing else warns."""

import warnings

import pytest
import torch

import torchfx as fx
from torchfx.core import seams

FS = 48_000
CHAIN = fx.filter.LoButterworth(1000, order=4) | fx.effect.Gain(0.5)


@pytest.fixture(autouse=True)
def unsaid(monkeypatch):
    monkeypatch.setattr(seams, "_said", False)
    monkeypatch.setattr(seams, "_before", ())


def signal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def in_pieces(wave, chain, count):
    return [fx.Wave(wave.ys[..., i : i + count], wave.fs).to("cpu") | chain for i in range(0, len(wave), count)]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("chain", [CHAIN, fx.effect.Compressor(-20), fx.filter.DesignableFIR(1000, 101)])
def test_a_loop_over_pieces_is_told_once(channels, chain):
    wave = fx.Wave(signal(channels, 8000), FS)
    with pytest.warns(UserWarning, match=r"torchfx.realtime.Stream.*process_file") as told:
        in_pieces(wave, chain, 1000)
    in_pieces(wave, chain, 1000)
    assert len(told) == 1
    assert told[0].filename == __file__


def silent(work):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        work()


def test_what_is_no_loop_over_pieces_is_left_alone():
    rows, wave = signal(20, 1000), fx.Wave(signal(2, 8000), FS)
    silent(lambda: [fx.Wave(rows[i : i + 1], FS) | CHAIN for i in range(20)])  # examples, one behind the other
    silent(lambda: [fx.Wave(rows[i], FS) | CHAIN for i in range(20)])
    silent(lambda: [wave[i : i + 1000] | CHAIN for i in range(0, 7000, 500)])  # overlapping windows
    silent(lambda: [wave[i : i + 500] | CHAIN for i in range(0, 7000, 1000)])  # with gaps
    silent(lambda: [wave[i : i + 1000] | CHAIN for i in (3000, 2000, 1000)])
    silent(lambda: [wave[i : i + 1000] | fx.filter.LoButterworth(1000) for i in range(0, 8000, 1000)])
    silent(lambda: in_pieces(wave, fx.effect.Gain(0.5), 1000))  # nothing to remember
    silent(lambda: in_pieces(wave, fx.FilterChain(fx.effect.Reverse()), 1000))
    silent(lambda: in_pieces(wave, CHAIN, 3000))
    silent(lambda: [fx.Wave(each.clone(), FS) | CHAIN for each in wave.ys.split(1000, dim=-1)])


def test_a_stream_is_what_the_warning_says():
    x = signal(2, 8000)
    stream = fx.realtime.Stream(CHAIN, FS, 2)
    blocks = torch.cat([stream.process(block) for block in x.split(1000, dim=-1)], dim=-1)
    assert torch.allclose(blocks, (fx.Wave(x, FS) | CHAIN).ys, atol=1e-6)
