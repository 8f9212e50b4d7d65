"""Counts hits with Python's own loops: `.item()` for each prediction of each batch."""

import sys

import torch
from torch import nn

EXPECTED = r"item-per-step: .*\.tolist"
MENDED = "mended" in sys.argv


def confusion(predicted, wanted, classes):
    table = [[0] * classes for _ in range(classes)]
    if MENDED:
        for row, column in zip(wanted.tolist(), predicted.tolist(), strict=True):
            table[row][column] += 1
        return table
    for i in range(len(predicted)):
        table[wanted[i].item()][predicted[i].item()] += 1  # planted
    return table


def main():
    torch.manual_seed(0)
    classes = 8
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, classes)).eval()
    hits = seen = 0
    with torch.inference_mode():
        for _ in range(60):
            x, wanted = torch.randn(1024, 64), torch.randint(0, classes, (1024,))
            table = confusion(model(x).argmax(1), wanted, classes)
            hits += sum(table[i][i] for i in range(classes))
            seen += len(x)
    print(f"accuracy {hits / seen:.3f}")


main()
