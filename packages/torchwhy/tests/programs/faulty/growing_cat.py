"""Joins each batch's features to all features so far: `torch.cat` copies the whole of the growing tensor every time."""

import sys

import torch
from torch import nn

EXPECTED = r"\bcat\b.*(list|once|append|allocat|beforehand)"
MENDED = "mended" in sys.argv


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128)).eval()
    features, parts = torch.empty(0, 128), []
    for _ in range(150):
        found = model(torch.randn(256, 64))
        if MENDED:
            parts.append(found)
        else:
            features = torch.cat([features, found])  # planted
    features = torch.cat(parts) if MENDED else features
    print(f"{len(features)} features, mean {features.mean().item():.4f}")


main()
