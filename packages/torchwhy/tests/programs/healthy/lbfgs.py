"""Fits a network with L-BFGS, whose closure runs several times in a step."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    x = torch.rand(4096, 2) * 6 - 3
    y = torch.sin(x[:, :1]) * torch.cos(x[:, 1:])
    model = nn.Sequential(nn.Linear(2, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for step in range(16):
        loss = optimizer.step(closure)
        if step % 5 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


main()
