"""Scores 1,500 pairs with a product of all by all, of which it takes the diagonal: one in 1,500 is used."""

import sys

import torch
from torch import nn

EXPECTED = r"diagonal"
MENDED = "mended" in sys.argv


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    query = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 128)).eval()
    answer = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 128)).eval()
    total = 0.0
    for _ in range(60):
        ours, theirs = query(torch.randn(1500, 64)), answer(torch.randn(1500, 64))
        scores = (ours * theirs).sum(1) if MENDED else (ours @ theirs.T).diagonal()  # planted
        total += scores.mean().item()
    print(f"mean score {total / 60:.4f}")


main()
