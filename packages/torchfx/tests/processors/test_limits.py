"""What is learned may lie at the ends of its range, and keeps its value under every conversion of the module."""

import math
from random import Random

import pytest
import torch
from torch import nn

import torchfx as fx
from processors.cases import FS, noise
from torchfx.catalogue import available
from torchfx.errors import ArgumentError


def limits():
    """Yield each end of each learnable number's range, those that do not belong to it from a little inside."""
    for name, entry in available().items():
        for each in entry.declarations:
            number = each.number
            if number is None or not number.learnable:
                continue
            low, high = number.bounds(FS)
            inside = max(abs(low), 1e-3) * 1e-6, -max(abs(high), 1e-3) * 1e-6
            for end, opened, step in ((low, number.open_low, inside[0]), (high, number.open_high, inside[1])):
                if math.isfinite(end):
                    yield name, each.name, end + (step if opened else 0.0)


@pytest.mark.parametrize("name", sorted({name for name, _, _ in limits()}))
def test_gradients_are_finite_at_the_ends_of_every_range(name):
    entry = available()[name]
    for owner, parameter, end in limits():
        if owner != name:
            continue
        random = Random(1)
        values = {each.name: each.draw(random, FS) for each in entry.declarations}
        values |= {"fs": FS} if "fs" in values else {}
        learned = nn.Parameter(torch.tensor(end, dtype=torch.float64))
        try:
            with fx.sample_rate(FS):
                y = entry.load()(**{**values, parameter: learned})(noise(2, 300))
        except ArgumentError:  # what was drawn does not fit it, or a filter there is refused
            continue
        assert torch.isfinite(y).all(), f"{parameter} = {end}"
        if y.requires_grad:
            y.square().mean().backward()
            assert torch.isfinite(learned.grad).all(), f"{parameter} = {end}"


@pytest.mark.parametrize("convert", ["bfloat16", "half", "float", "double"])
def test_a_conversion_moves_nothing_that_is_learned(convert):
    tone = fx.learn(fx.filter.Peaking(1003.0, q=0.7, gain_db=3.3, fs=FS))
    plain = fx.filter.LoButterworth(nn.Parameter(torch.tensor(1003.3)), fs=FS)
    before = [tone.cutoff.item(), tone.q.item(), tone.gain_db.item(), plain.cutoff.item()]
    for module in (tone, plain):
        getattr(module, convert)()
    assert [tone.cutoff.item(), tone.q.item(), tone.gain_db.item(), plain.cutoff.item()] == before
