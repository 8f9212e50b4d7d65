"""Keeps its data in lists of numbers and makes a tensor of them in every step."""

import sys

import numpy as np
import torch
from torch import nn

EXPECTED = r"between-steps-gap: .*(NumPy|record Python stacks)"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    rows = np.random.default_rng(0).standard_normal((2000, 500), dtype=np.float32).tolist()
    rows = torch.tensor(rows) if MENDED else rows
    model = nn.Sequential(nn.Linear(500, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for start in range(0, len(rows), 50):
            batch = rows[start : start + 50] if MENDED else torch.tensor(rows[start : start + 50])  # planted
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
