"""Trains on with parameters that are NaN from the first step: the logarithm of an error that can be 0."""

import sys

import torch
from torch import nn

EXPECTED = r"not-a-number"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(120):
        x = torch.randn(256, 64)
        made = model(x).relu()  # planted
        target = torch.rand(256, 8).round()
        error = (made - target).square() * target
        loss = (error + (1e-6 if MENDED else 0.0)).sqrt().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if MENDED and not loss.isfinite():
            raise SystemExit("not finite")
    print(f"loss {loss.item():.3f}")


main()
