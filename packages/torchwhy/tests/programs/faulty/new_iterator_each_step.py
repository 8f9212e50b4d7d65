"""Takes its batches with `next(iter(loader))`: each step shuffles all of the data again and uses one batch of it."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECTED = r"iter\(loader\)|next\(iter|new iterator|iterator.*(each|every) step|outside the loop.*iterator"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(150_000, 16), torch.randint(0, 5, (150_000,)))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    batches = iter(loader)
    model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(100):
        x, y = next(batches) if MENDED else next(iter(loader))  # planted
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
