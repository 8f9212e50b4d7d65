"""Processors of the whole signal read long ones in pieces, and give what they give of the whole."""

import sys

import pytest
import torch

import torchfx as fx
from processors.cases import FS, drawn, noise
from torchfx.catalogue import available
from torchfx.pieces import Pieces

WHOLE = {name: entry for name, entry in available().items() if entry.load().kind == "whole"}


def in_small_pieces(monkeypatch, size):
    """Let modules that have taken over the size of a piece take this one."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torchfx.") and hasattr(module, "PIECE"):
            monkeypatch.setattr(module, "PIECE", size)


@pytest.mark.parametrize("name", WHOLE)
def test_a_processor_of_the_whole_signal_reads_pieces(name):
    assert WHOLE[name].load().in_pieces is not None


@pytest.mark.parametrize("size", [257, 1024])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", WHOLE)
def test_pieces_equal_the_whole(monkeypatch, name, seed, size):
    in_small_pieces(monkeypatch, size)
    module = drawn(WHOLE[name], seed)
    for time, dtype in ((1, torch.float32), (700, torch.float64), (5003, torch.float32)):
        x = noise(2, time, seed=seed, dtype=dtype) * torch.linspace(0.01, 1.0, time, dtype=dtype)
        with fx.sample_rate(FS):
            whole = module(x)
            y = torch.cat(list(module.in_pieces(Pieces.of(x))), dim=-1)
        assert y.dtype == whole.dtype
        assert y.shape == whole.shape
        assert float((y - whole).abs().max()) < 1e-6


def test_no_more_than_some_pieces_are_read_at_a_time(monkeypatch):
    in_small_pieces(monkeypatch, 1000)
    x = noise(2, 200_000)
    most = {}
    for name, entry in WHOLE.items():

        def fetch(start, stop, name=name):
            most[name] = max(most.get(name, 0), stop - start)
            return x[..., start:stop]

        short = {"n_fft": 256, "smooth_ms": 10.0}
        module = drawn(entry, 0, **{key: short[key] for key in entry.load().declarations if key in short})
        with fx.sample_rate(FS):
            longest = max(y.shape[-1] for y in module.in_pieces(Pieces(tuple(x.shape), fetch)))
        assert longest <= 20_000
    assert set(most) == set(WHOLE)
    assert max(most.values()) <= 20_000


def test_a_forward_of_its_own_does_not_inherit_pieces():
    class Louder(fx.effect.Reverse):
        def forward(self, x):
            return 2 * super().forward(x)

    assert Louder.in_pieces is None
