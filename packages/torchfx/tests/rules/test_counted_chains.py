"""Counts that torchwhy takes of chains and gradients are those that it reads off a recording."""

import pytest
import torch

import torchfx
from tests.counters.test_from_trace import check_counts


def chain():
    chain = torchfx.filter.LoButterworth(1000, order=4) | torchfx.effect.Gain(0.5)
    wave = torchfx.Wave(torch.randn(2, 4000), 48000)
    return lambda: wave | chain


def unfused_chain():
    low, high = torchfx.filter.LoButterworth(1000), torchfx.filter.HiButterworth(80)
    wave = torchfx.Wave(torch.randn(2, 4000), 48000)
    return lambda: wave | low | high


def gradient_of_a_filter():
    x = torch.randn(2, 400, requires_grad=True)
    lowpass = torchfx.filter.LoButterworth(1000, order=4, fs=48000)
    return lambda: torch.autograd.grad(lowpass(x).sum(), x)


@pytest.mark.parametrize("program", [chain, unfused_chain, gradient_of_a_filter])
@pytest.mark.parametrize("settings", [{}, {"with_stack": True, "profile_memory": True}], ids=["plain", "stacks"])
def test_a_recording_counts_what_count_counts(program, settings):
    check_counts(program, settings)
