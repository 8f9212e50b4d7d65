"""Starts new DataLoader workers for every short epoch, because `persistent_workers` is not set.

The processes of an epoch live for a few batches; starting and ending them takes longer than the training.
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECTED = r"dataloader-wait: .*persistent_workers"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(128, 128), torch.randint(0, 4, (128,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, persistent_workers=MENDED)  # planted
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(16):
        total = 0.0
        for x, y in loader:  # planted
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 4 == 3:
            print(f"epoch {epoch}: loss {total / len(loader):.3f}")


if __name__ == "__main__":
    main()
