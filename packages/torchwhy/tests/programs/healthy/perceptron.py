"""Trains a wide multi-layer perceptron; nearly all of the time goes to matrix products."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    x, y = torch.randn(8192, 512), torch.randn(8192, 8)
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for step in range(30):
        at = step * 512 % len(x)
        loss = nn.functional.mse_loss(model(x[at : at + 512]), y[at : at + 512])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    print(f"mean loss {torch.stack(losses).mean().item():.3f}")


main()
