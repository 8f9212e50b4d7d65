"""Trains a small network with autograd's anomaly detection, which somebody left on: `torchwhy try` takes it out."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    layers = [layer for _ in range(40) for layer in (nn.Linear(64, 64), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(16, 64)
    for _ in range(60):
        loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.4f}")


main()
