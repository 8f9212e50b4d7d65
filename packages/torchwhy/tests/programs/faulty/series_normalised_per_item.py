"""Forecasts a power grid; each item normalises the whole series before it cuts out its window."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECTED = r"dataloader-wait: .*made once"
MENDED = "mended" in sys.argv


class Windows(Dataset):
    def __init__(self, series, length=96, horizon=24):
        self.length, self.horizon = length, horizon
        self.series = (series - series.mean(0)) / series.std(0) if MENDED else series

    def __len__(self):
        return len(self.series) - self.length - self.horizon

    def __getitem__(self, index):
        series = self.series
        if not MENDED:
            series = (self.series - self.series.mean(axis=0)) / self.series.std(axis=0)  # planted
        window = series[index : index + self.length + self.horizon]
        window = torch.as_tensor(window, dtype=torch.float32)
        return window[: self.length], window[self.length :, 0]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 96, batch_first=True)
        self.head = nn.Linear(96, 24)

    def forward(self, x):
        return self.head(self.rnn(x)[1][-1])


def main():
    torch.manual_seed(0)
    hours = np.arange(3 * 8760)
    series = np.sin(hours[:, None] / 24 * np.arange(1, 7)) + np.random.default_rng(0).normal(size=(len(hours), 6))
    loader = DataLoader(Windows(series), batch_size=32, shuffle=True)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.3f}")
        if step == 60:
            break


main()
