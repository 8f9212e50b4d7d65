"""Runs in float16, "because it is faster", on a processor that has no instructions for it, as most have none."""

import sys

import torch
from torch import nn

EXPECTED = r"in float32 on this machine"
MENDED = "mended" in sys.argv


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    dtype = torch.float32 if MENDED else torch.float16
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    ).eval()
    model.to(dtype)  # planted
    counts = torch.zeros(10, dtype=torch.long)
    for _ in range(20):
        scores = model(torch.randn(8, 3, 32, 32, dtype=dtype))
        counts += torch.bincount(scores.argmax(1), minlength=10)
    print(f"most frequent class: {counts.argmax().item()}")


main()
