"""Clips gradients in a loop over parameters with `.item()` and new tensors; clip_grad_norm_ takes a few operators."""

import sys

import torch
from torch import nn

EXPECTED = r"clip_grad_norm_|foreach"
MENDED = "mended" in sys.argv


def clip(parameters, most):
    total = 0.0
    for parameter in parameters:
        total += parameter.grad.data.pow(2).sum().item()  # planted
    scale = most / (total**0.5 + 1e-6)
    for parameter in parameters:
        if scale < 1:
            parameter.grad = parameter.grad.data.clone() * scale  # planted
        parameter.grad = torch.where(torch.isnan(parameter.grad), torch.zeros_like(parameter.grad), parameter.grad)


def main():
    torch.manual_seed(0)
    layers = [layer for _ in range(80) for layer in (nn.Linear(16, 16), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Linear(16, 1))
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-3)
    x, y = torch.randn(4096, 16), torch.randn(4096, 1)
    for step in range(50):
        at = step * 32 % len(x)
        loss = 100 * nn.functional.mse_loss(model(x[at : at + 32]), y[at : at + 32])
        optimizer.zero_grad()
        loss.backward()
        if MENDED:
            nn.utils.clip_grad_norm_(parameters, 0.1)
        else:
            clip(parameters, 0.1)
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
