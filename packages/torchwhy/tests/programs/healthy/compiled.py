"""Trains a compiled model on batches of one shape: it is compiled once, before the steps that count."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    x, y = torch.randn(4096, 256), torch.randn(4096, 8)
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 8))
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in range(30):
        at = step * 512 % len(x)
        loss = nn.functional.mse_loss(compiled(x[at : at + 512]), y[at : at + 512])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
