"""Asks for 32 threads on a machine of few processors: the threads of every operator wait for each other."""

import sys

import torch
from torch import nn

EXPECTED = r"thread"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    if not MENDED:
        torch.set_num_threads(32)  # planted
    model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    x, y = torch.randn(8192, 256), torch.randint(0, 10, (8192,))
    for step in range(50):
        at = step * 256 % len(x)
        loss = nn.functional.cross_entropy(model(x[at : at + 256]), y[at : at + 256])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
