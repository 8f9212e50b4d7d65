"""Makes the optimizer inside the loop: each step builds it and its state again, and Adam forgets its moments."""

import sys

import torch
from torch import nn

EXPECTED = r"optimizer.*(__init__|before the loop|outside|once|again|each step|every step)"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    layers = [layer for _ in range(80) for layer in (nn.Linear(24, 24), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Linear(24, 1))
    x, y = torch.randn(4096, 24), torch.randn(4096, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(40):
        if not MENDED:
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # planted
        at = step * 32 % len(x)
        loss = nn.functional.mse_loss(model(x[at : at + 32]), y[at : at + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
