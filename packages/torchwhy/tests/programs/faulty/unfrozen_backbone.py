"""Trains only the head of a pretrained network but lets backward compute the gradients of all its other weights."""

import sys

import torch
from torch import nn

EXPECTED = r"requires_grad|no_grad|freez|frozen"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    backbone = nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    head = nn.Linear(48, 5)
    if MENDED:
        backbone.requires_grad_(False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    images, labels = torch.randn(512, 3, 48, 48), torch.randint(0, 5, (512,))
    for step in range(40):
        at = step * 32 % len(images)
        loss = nn.functional.cross_entropy(head(backbone(images[at : at + 32])), labels[at : at + 32])
        optimizer.zero_grad()
        loss.backward()  # planted
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
