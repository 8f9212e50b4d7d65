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
        return self.norm(x.transpose(1, 2).contiguous()).transpose(1, 2).contiguous()  # planted


class LastNorm(ChannelNorm):
    """The same for a [batch, channels, 1, time] tensor that lies channels-last in memory: the views cost nothing."""

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def main():
    torch.manual_seed(0)
    if MENDED:
        layers = [
            layer for _ in range(4) for layer in (nn.Conv2d(64, 64, (1, 3), padding=(0, 1), groups=64), LastNorm(64))
        ]
    else:
        layers = [layer for _ in range(4) for layer in (nn.Conv1d(64, 64, 3, padding=1, groups=64), ChannelNorm(64))]
    model = nn.Sequential(*layers).eval()
    with torch.inference_mode():
        for _ in range(30):
            x = torch.randn(16, 64, 2000)
            if MENDED:
                x = x[:, :, None].to(memory_format=torch.channels_last)
            y = model(x)
    print(f"mean {y.mean().item():.3f}")


main()
