"""Computes a Jacobian with one backward pass for each of 60 outputs; `torch.func.jacrev` takes them all at once."""

import sys

import torch
from torch import nn

EXPECTED = r"jacrev|jacobian|vmap|is_grads_batched"
MENDED = "mended" in sys.argv


def jacobian(model, x):
    if MENDED:
        return torch.func.jacrev(model)(x)
    x = x.requires_grad_()
    y = model(x)
    rows = [torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(y))]  # planted
    return torch.stack(rows)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 60))
    size = 0.0
    for _ in range(40):
        size += jacobian(model, torch.randn(40)).square().sum().item()
    print(f"mean square {size / 40:.4f}")


main()
