"""Predicts without `eval()`: dropout draws random numbers for every activation and makes the predictions noisy."""

import sys

import torch
from torch import nn

EXPECTED = r"eval\(\)|[Dd]ropout"
MENDED = "mended" in sys.argv


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.2))]
    model = nn.Sequential(*layers, nn.Linear(256, 10))
    if MENDED:
        model.eval()
    counts = torch.zeros(10, dtype=torch.long)
    for _ in range(30):
        scores = model(torch.randn(1024, 256))  # planted
        counts += torch.bincount(scores.argmax(1), minlength=10)
    print(f"most frequent class: {counts.argmax().item()}")


main()
