"""Looks queries up in a bank of vectors that does not change, and normalises the bank for each query."""

import sys

import torch
from torch import nn

EXPECTED = r"computed-again"
MENDED = "mended" in sys.argv


class Bank(nn.Module):
    """The nearest vectors by cosine."""

    def __init__(self, vectors):
        super().__init__()
        self.register_buffer("vectors", vectors)
        self.register_buffer("directions", nn.functional.normalize(vectors, dim=-1))

    def forward(self, queries):
        bank = (
            self.directions if MENDED else self.vectors / self.vectors.square().sum(-1, keepdim=True).sqrt()
        )  # planted
        return (nn.functional.normalize(queries, dim=-1) @ bank.T).topk(5)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    bank = Bank(torch.randn(20000, 96))
    encode = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 96))
    total = 0.0
    for _ in range(80):
        total += bank(encode(torch.randn(4, 32))).values.mean()
    print(f"mean similarity {total / 80:.3f}")


main()
