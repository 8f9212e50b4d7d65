"""Fits house prices; two worker processes take a TensorDataset in memory apart, row by row."""

import sys

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

EXPECTED = r"dataloader-wait: .*BatchSampler"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    features, prices = torch.randn(20000, 24), torch.randn(20000, 1)
    data = TensorDataset(features, prices)
    if MENDED:
        sampler = BatchSampler(RandomSampler(data), 64, drop_last=False)
        loader = DataLoader(data, sampler=sampler, batch_size=None)
    else:
        loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)  # planted
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, float(loss))


if __name__ == "__main__":
    main()
