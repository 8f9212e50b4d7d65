"""Computes attention step by step: each layer writes and reads its matrix of weights (8 x 512 x 512) three times."""

import math
import sys

import torch
from torch import nn

EXPECTED = r"unfused-attention: .*scaled_dot_product_attention"
MENDED = "mended" in sys.argv


class Attention(nn.Module):
    """Multi-head self-attention as the textbook writes it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if MENDED:
            y = nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            weights = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)  # planted
            y = torch.softmax(weights, dim=-1) @ v  # planted
        return self.out(y.transpose(1, 2).reshape(n, t, width))


class Block(nn.Module):
    """Attention and a feed-forward layer, with residual connections."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.first, self.second = Attention(width, heads), nn.LayerNorm(width), nn.LayerNorm(width)
        self.forward_layer = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.forward_layer(self.second(x))


def main():
    torch.manual_seed(0)
    model = nn.Sequential(Block(128, 8), Block(128, 8)).eval()
    total = 0.0
    with torch.no_grad():
        for _ in range(20):
            total += model(torch.randn(4, 512, 128)).square().mean().item()
    print(f"mean square {total / 20:.3f}")


main()
