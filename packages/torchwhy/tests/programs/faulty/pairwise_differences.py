"""Computes distances by broadcasting: all differences (512 x 512 x 32) are written and read several times."""

import sys

import torch
from torch import nn

EXPECTED = r"cdist|differences|distances"
MENDED = "mended" in sys.argv


def distances(x, y):
    if MENDED:
        return torch.cdist(x, y)
    return (x[:, None] - y[None]).pow(2).sum(-1).sqrt()  # planted


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    encode = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 32)).eval()
    known, labels = encode(torch.randn(512, 128)), torch.randint(0, 10, (512,))
    hits = 0
    for _ in range(16):
        nearest = distances(encode(torch.randn(512, 128)), known).topk(5, largest=False).indices
        hits += (labels[nearest].mode(1).values == 3).sum().item()
    print(f"{hits} are threes")


main()
