"""Keeps the batch channels-last by hand: every layer transposes it and copies it with `.contiguous()`, twice."""

import sys

import torch
from torch import nn

EXPECTED = r"cpu-copies: .*(layout|contiguous)"
MENDED = "mended" in sys.argv


class ChannelNorm(nn.Module):
    """LayerNorm over channels of a [batch, channels, time] tensor."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        if MENDED:
            centred = x - x.mean(1, keepdim=True)
            centred *= (centred.square().mean(1, keepdim=True) + self.norm.eps).rsqrt()
            return centred.mul_(self.norm.weight[:, None]).add_(self.norm.bias[:, None])
        return self.norm(x.transpose(1, 2).contiguous()).transpose(1, 2).contiguous()  # planted


def main():
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Conv1d(64, 64, 3, padding=1, groups=64), ChannelNorm(64))]
    model = nn.Sequential(*layers).eval()
    with torch.inference_mode():
        for _ in range(30):
            y = model(torch.randn(16, 64, 2000))
    print(f"mean {y.mean().item():.3f}")


main()
