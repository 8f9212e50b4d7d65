"""Checkpoints each block of a model that is small: backward runs each forward pass again to save memory not needed."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

EXPECTED = r"checkpoint"
MENDED = "mended" in sys.argv


class Blocks(nn.Module):
    """Eight feed-forward blocks."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)) for _ in range(8)
        )

    def forward(self, x):
        for block in self.blocks:
            x = x + (block(x) if MENDED else checkpoint(block, x, use_reentrant=False))  # planted
        return x


def main():
    torch.manual_seed(0)
    model = Blocks()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(25):
        x = torch.randn(256, 128)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
