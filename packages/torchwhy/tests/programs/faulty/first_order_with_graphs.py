"""Adapts a network to tasks by first-order steps (FOMAML), and records graphs of the gradients that nothing uses."""

import sys

import torch
from torch import nn
from torch.func import functional_call

EXPECTED = r"graph-of-gradients"
MENDED = "mended" in sys.argv


def adapted(model, weights, x, y, steps=5, rate=0.01):
    for _ in range(steps):
        loss = (functional_call(model, weights, (x,)) - y).square().mean()
        gradients = torch.autograd.grad(loss, tuple(weights.values()), create_graph=not MENDED)  # planted
        weights = {name: old - rate * g.detach() for (name, old), g in zip(weights.items(), gradients, strict=True)}
    return weights


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for _ in range(20):
        total = torch.zeros(())
        for _ in range(4):
            x = 10 * torch.rand(512, 1) - 5
            y = (x + 3 * torch.rand(())).sin()
            fast = adapted(model, dict(model.named_parameters()), x[:256], y[:256])
            total = total + (functional_call(model, fast, (x[256:],)) - y[256:]).square().mean()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    print(f"{total.item():.3f}")


main()
