"""Multiplies queries and keys of a linear attention first: the cost grows with the square of the length."""

import sys

import torch
from torch import nn
from torch.nn import functional

EXPECTED = r"product-order"
MENDED = "mended" in sys.argv


class LinearAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.joint(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        y = q @ (k.mT @ v) if MENDED else (q @ k.mT) @ v  # planted
        y = y / (q @ k.sum(2)[..., None])
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


def main():
    torch.manual_seed(0)
    x, y = torch.randn(24, 1024, 64), torch.randn(24, 1024, 64)
    model = nn.Sequential(LinearAttention(64, 4), nn.LayerNorm(64), LinearAttention(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for step in range(12):
        at = 2 * step
        loss = functional.mse_loss(model(x[at : at + 2]), y[at : at + 2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f}")


main()
