"""Feeds a table through a DataLoader: 1024 rows are taken one by one and stacked, where one index takes them all."""

import sys

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

EXPECTED = r"__getitems__|BatchSampler|collate|one by one|index.*batch|batch.*index|num_workers"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(20_000, 30), torch.randn(20_000))
    if MENDED:
        batches = BatchSampler(RandomSampler(data), 1024, drop_last=False)
        loader = DataLoader(data, sampler=batches, batch_size=None)
    else:
        loader = DataLoader(data, batch_size=1024, shuffle=True)  # planted
    model = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for x, y in loader:  # planted
            loss = nn.functional.mse_loss(model(x)[:, 0], y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
