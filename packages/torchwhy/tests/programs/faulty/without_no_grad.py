"""Scores batches in `eval()` mode but without `no_grad()`: every call records a graph that no backward pass uses."""

import sys
from contextlib import nullcontext

import torch
from torch import nn

EXPECTED = r"missed-no-grad: .*(inference_mode|no_grad)"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv1d(4, 32, 5, padding=2),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Conv1d(32, 32, 5, padding=2),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(32, 6),
    ).eval()
    counts = torch.zeros(6, dtype=torch.long)
    for _ in range(60):
        windows = torch.randn(32, 4, 1000)
        with torch.inference_mode() if MENDED else nullcontext():
            scores = model(windows).softmax(1)  # planted
        counts += torch.bincount(scores.argmax(1), minlength=6)
    print(f"most frequent class: {counts.argmax().item()}")


main()
