"""Trains with a DataLoader's default batch of one sample: a step's overhead is paid for each sample."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECTED = r"batch.?size|larger batch|bigger batch|more samples"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(800, 64), torch.randint(0, 10, (800,)))
    loader = DataLoader(data, batch_size=32, shuffle=True) if MENDED else DataLoader(data, shuffle=True)  # planted
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)  # planted
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
