"""Computes the area under the curve of all predictions so far after each batch; once at the end gives the same."""

import sys

import torch
from torch import nn

EXPECTED = r"(all|every).*so far|grow|longer (than|from)|each step.*more"
MENDED = "mended" in sys.argv


def area(scores, labels):
    """Return the area under the ROC curve."""
    order = torch.cat(scores).argsort(descending=True)  # planted
    hits = torch.cat(labels)[order].float()  # planted
    found = hits.cumsum(0)
    return (found * (1 - hits)).sum() / (hits.sum() * (1 - hits).sum())


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).eval()
    scores, labels = [], []
    for _ in range(100):
        x = torch.randn(4096, 32)
        scores.append(model(x)[:, 0])
        labels.append(x.sum(1) > 0)
        if not MENDED:
            current = area(scores, labels)  # planted
    current = area(scores, labels) if MENDED else current
    print(f"area {current.item():.4f}")


main()
