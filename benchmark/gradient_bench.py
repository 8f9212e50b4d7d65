#!/usr/bin/env python3
"""What gradients cost: forward plus backward as a multiple of forward, interleaved, for signal, sections and both.

python benchmark/gradient_bench.py [rounds]
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

import torchfx as fx
from torchfx import _ops

FS = 44_100
SHAPES = ((1, 10 * FS), (2, 10 * FS), (8, 10 * FS), (16, FS), (64, 16_000))
CHAIN = fx.FilterChain(
    fx.filter.HiButterworth(1000, fs=FS),
    fx.filter.LoButterworth(5000, fs=FS),
    fx.filter.HiChebyshev1(1500, fs=FS),
    fx.filter.LoChebyshev1(1800, fs=FS),
)


def backward(x, sos, grad, need_x, need_sos):
    x, sos = x.clone().requires_grad_(need_x), sos.clone().requires_grad_(need_sos)

    def run():
        _ops.parallel_iir_forward(x, sos)[0].backward(grad)
        x.grad = sos.grad = None

    return run


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    sos = torch.cat([module.sos for module in CHAIN])
    print("four sections, float32; median (lower quartile) of forward + backward over forward")
    for channels, samples in SHAPES:
        x, grad = torch.randn(channels, samples), torch.randn(channels, samples)
        runs = {
            "forward": lambda x=x: _ops.parallel_iir_forward(x, sos),
            "signal": backward(x, sos, grad, True, False),
            "sections": backward(x, sos, grad, False, True),
            "both": backward(x, sos, grad, True, True),
        }
        times = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
        forward = np.quantile(times.pop("forward"), [0.5, 0.25])
        ratios = {name: np.quantile(found, [0.5, 0.25]) / forward for name, found in times.items()}
        shown = "   ".join(f"{name} {median:.2f} ({low:.2f})" for name, (median, low) in ratios.items())
        print(f"{channels:>3} x {samples:<7} {shown}   forward {forward[0] / x.numel() * 1e9:.3f} ns/sample")


if __name__ == "__main__":
    main()
