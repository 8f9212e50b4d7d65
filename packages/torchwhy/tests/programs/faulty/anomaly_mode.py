"""Anomaly detection was left on after an error had been found."""

import sys

import torch
from torch import nn

EXPECTED = r"anomaly-mode: .*Take it out"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(not MENDED)  # planted
    model = nn.Sequential(*[nn.Sequential(nn.Linear(128, 128), nn.ReLU()) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(100):
        loss = model(torch.randn(64, 128)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
