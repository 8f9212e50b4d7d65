"""Accumulates gradients over four batches before each step of the optimizer."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    x, y = torch.randn(8192, 256), torch.randint(0, 20, (8192,))
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 20))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(64):
        at = step * 256 % len(x)
        loss = nn.functional.cross_entropy(model(x[at : at + 256]), y[at : at + 256]) / 4
        loss.backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    print(f"last loss {4 * loss.item():.3f}")


main()
