"""Suppresses overlapping boxes in a Python loop: each box is compared by some tiny operators with those kept so far."""

import sys

import torch
from torch import nn

EXPECTED = r"(loop|one by one|each (box|element|row)).*(one|once|all|batch|vector)|vectori|batched"
MENDED = "mended" in sys.argv


def overlaps(one, others):
    least, most = torch.maximum(one[..., :2], others[..., :2]), torch.minimum(one[..., 2:], others[..., 2:])
    common = (most - least).clamp(min=0).prod(-1)
    return common / ((one[..., 2:] - one[..., :2]).prod(-1) + (others[..., 2:] - others[..., :2]).prod(-1) - common)


def suppress(boxes):
    """Return the indices of boxes, best first, that overlap none better by more than half."""
    if MENDED:
        over = (overlaps(boxes[:, None], boxes[None]) > 0.5).tolist()
        kept = []
        for i, row in enumerate(over):
            if not any(row[j] for j in kept):
                kept.append(i)
        return kept
    kept = []
    for i in range(len(boxes)):
        if all(overlaps(boxes[i], boxes[j]) < 0.5 for j in kept):  # planted
            kept.append(i)
    return kept


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 5, 3, 2, 1)).eval()
    kept = 0
    for _ in range(8):
        found = model(torch.rand(1, 3, 128, 128))[0].flatten(1).T
        best = found[:, 4].topk(60).indices
        corners = torch.rand(60, 2) * 100 + found[best, :2]
        kept += len(suppress(torch.cat([corners, corners + 30], 1)))
    print(f"{kept} boxes")


main()
