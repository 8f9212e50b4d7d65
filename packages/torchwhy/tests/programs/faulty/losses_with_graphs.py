"""Appends each loss to a list without `.item()`: the list keeps every step's graph, so that memory grows."""

import sys

import torch
from torch import nn

EXPECTED = r"(graph|memory|loss).*(detach|\.item\(\))|retain_graph"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        x = torch.randn(2048, 32)
        loss = nn.functional.mse_loss(model(x)[:, 0], x.sum(1)) + 1e-4 * sum(p.abs().sum() for p in model.parameters())
        optimizer.zero_grad()
        loss.backward(retain_graph=not MENDED)  # planted
        optimizer.step()
        losses.append(loss.item() if MENDED else loss)  # planted
    print(f"mean loss {sum(losses) / len(losses):.3f}")


main()
