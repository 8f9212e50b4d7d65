"""Trains a perceptron of few inputs whose batch is as large as its layers: activations have the shape of weights."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    x = torch.randn(8192, 8)
    y = (x.square() @ torch.randn(8, 4)).sin()
    model = nn.Sequential(nn.Linear(8, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    losses = []
    for step in range(60):
        at = step * 512 % len(x)
        loss = nn.functional.mse_loss(model(x[at : at + 512]), y[at : at + 512])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    print(f"mean loss {torch.stack(losses).mean().item():.3f}")


main()
