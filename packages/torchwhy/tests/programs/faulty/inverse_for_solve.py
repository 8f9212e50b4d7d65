"""Computes the inverse of a kernel matrix to multiply it with one vector; a Cholesky solve takes a fraction."""

import sys

import torch
from torch import nn

EXPECTED = r"linalg\.solve|cholesky_solve|solve\b.*inverse|inverse.*solve"
MENDED = "mended" in sys.argv


class Features(nn.Module):
    """A small network before the kernel."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 8))

    def forward(self, x):
        return self.layers(x)


def weighted(kernel, y):
    if MENDED:
        return torch.cholesky_solve(y, torch.linalg.cholesky(kernel))
    return torch.linalg.inv(kernel) @ y  # planted


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    features = Features().eval()
    total = 0.0
    for _ in range(8):
        x = features(torch.randn(700, 8))
        y = x.sum(1, keepdim=True)
        kernel = torch.exp(-(torch.cdist(x, x) ** 2)) + 0.1 * torch.eye(700)
        weights = weighted(kernel, y)
        total += (kernel @ weights - y).pow(2).mean().item()
    print(f"residual {total:.4f}")


main()
