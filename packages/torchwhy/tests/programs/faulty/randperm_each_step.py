"""Shuffles 300,000 indices in every step to draw 256 of them."""

import sys

import torch
from torch import nn

EXPECTED = r"randperm|randint|permut|shuffl"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    states, targets = torch.randn(300_000, 16), torch.randn(300_000, 1)
    model = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(60):
        chosen = torch.randint(0, len(states), (256,)) if MENDED else torch.randperm(len(states))[:256]  # planted
        loss = nn.functional.smooth_l1_loss(model(states[chosen]), targets[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
