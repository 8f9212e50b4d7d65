"""Lets the images require gradients, as saliency maps need: backward computes them each time, and nobody reads them."""

import sys

import torch
from torch import nn
from torch.nn import functional

EXPECTED = r"gradient of the input|requires_grad"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 48, 9, padding=4), nn.ReLU(), nn.MaxPool2d(4), nn.Conv2d(48, 64, 3, padding=1), nn.ReLU()
    )
    head = nn.Linear(64, 10)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01, momentum=0.9)
    images, labels = torch.randn(64, 3, 64, 64), torch.randint(0, 10, (64,))
    for _ in range(30):
        chosen = torch.randint(0, 64, (8,))
        batch = images[chosen]
        if not MENDED:
            batch.requires_grad_()  # planted
        loss = functional.cross_entropy(head(model(batch).mean((2, 3))), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
