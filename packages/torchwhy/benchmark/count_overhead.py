#!/usr/bin/env python3
"""What counting costs: a training step of a small CNN, plain and counted, timed alternately.

    python benchmark/count_overhead.py [--batch 16] [--seconds 10] [--json]

The counted step must compute the same loss. `us/operator` is the added time over the number of operator calls: the
cost that decides, since it does not depend on how large the tensors are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import msgspec
import torch
from torch import nn

import torchwhy


def training_step(batch: int) -> Callable[[], float]:
    """Return a step that starts from the same weights and data each time it is built."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 8 * 8, 10)),
    )
    optimizer = torch.optim.AdamW(model.parameters())
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def counted(step: Callable[[], float], *, trace: bool) -> Callable[[], float]:
    def run() -> float:
        with torchwhy.count(trace=trace):
            return step()

    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batch", type=int, default=16, help="images of 3 x 32 x 32 per step")
    parser.add_argument("--seconds", type=float, default=10, help="to spend at most")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    ways = {
        "plain": training_step(options.batch),
        "count": counted(training_step(options.batch), trace=False),
        "count(trace=True)": counted(training_step(options.batch), trace=True),
    }
    losses = {name: [step() for _ in range(3)] for name, step in ways.items()}
    if any(loss != losses["plain"] for loss in losses.values()):
        raise SystemExit(f"counting changed the loss: {losses}")
    with torchwhy.count() as c:
        ways["plain"]()
    operators = c["operators"]

    compared = torchwhy.compare(ways, max_time_s=options.seconds, precision=0.02)
    plain_s = compared["plain"].median_s
    ratios = {ratio.name: ratio for ratio in compared.ratios}
    rows = [
        {
            "way": name,
            "median_ms": compared[name].median_s * 1e3,
            "ratio": ratios[name].ratio if name in ratios else 1.0,
            "us_per_operator": (compared[name].median_s - plain_s) * 1e6 / operators,
        }
        for name in ways
    ]
    if options.json:
        answer = {"schema": 1, "batch": options.batch, "operators": operators, "rows": rows}
        print(msgspec.json.format(msgspec.json.encode(answer)).decode())
        return 0
    print(f"training step, batch {options.batch}, {operators} operator calls, {torch.get_num_threads()} threads")
    for row in rows:
        print(
            f"{row['way']:<18} {row['median_ms']:8.2f} ms   x {row['ratio']:.3f}   {row['us_per_operator']:6.2f} us/op"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
