"""Trains in float64 by accident: NumPy's arrays are float64, and the model was made to fit them."""

import sys

import numpy as np
import torch
from torch import nn

EXPECTED = r"fp64: .*float32"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    features = rng.standard_normal((8192, 512))
    targets = np.sin(features[:, :1]) + 0.1 * rng.standard_normal((8192, 1))
    x, y = torch.from_numpy(features), torch.from_numpy(targets)
    if MENDED:
        x, y = x.float(), y.float()
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1))
    model.to(x.dtype)  # planted
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        at = step * 256 % len(x)
        loss = nn.functional.mse_loss(model(x[at : at + 256]), y[at : at + 256])  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


main()
