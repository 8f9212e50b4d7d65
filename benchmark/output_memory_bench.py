#!/usr/bin/env python3
"""What fresh outputs cost: the operator, some of whose outputs live and die together, beside its kernel in used memory.

python benchmark/output_memory_bench.py [rounds]
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

import torchfx as fx
from torchfx._ops import native

FS = 44_100
HELD = 4
MEGABYTES = (0.25, 0.5, 1, 2, 4, 8)


def preallocated(x, sos):
    y, after = torch.empty_like(x), torch.empty(len(sos), len(x), 2, dtype=torch.float64)
    arguments = native.pack14(
        0, x.data_ptr(), x.shape[1], 1, y.data_ptr(), x.shape[1], len(x), x.shape[1], sos.data_ptr(), len(sos), 0,
        after.data_ptr(), 1024, torch.get_num_threads(),
    )  # fmt: skip
    keep = x, y, after, sos
    return lambda: (native.library.torchfx_sos_forward_packed(arguments), keep)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    sos = torch.cat([fx.filter.LoButterworth(5000, order=4, fs=FS).sos] * 2)
    print(f"four sections, stereo, float32, {HELD} outputs held; median (quartiles) in ns per sample")
    for megabytes in MEGABYTES:
        x = torch.randn(2, int(megabytes * 2**20) // 8)
        reused = preallocated(x, sos)
        held = []
        runs = {
            "fresh": lambda x=x, held=held: held.append(torch.ops.torchfx_ext.sos_forward(x, sos)[0]),
            "reused": reused,
        }
        times = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                start = time.perf_counter()
                run()
                times[name].append((time.perf_counter() - start) / x.numel() * 1e9)
            if len(held) == HELD:
                held.clear()
        shown = {name: np.quantile(found, [0.5, 0.25, 0.75]) for name, found in times.items()}
        columns = "   ".join(f"{name} {mid:.3f} ({low:.3f} to {high:.3f})" for name, (mid, low, high) in shown.items())
        print(f"{megabytes:>5} MB   {columns}   fresh / reused {shown['fresh'][0] / shown['reused'][0]:.2f}")


if __name__ == "__main__":
    main()
