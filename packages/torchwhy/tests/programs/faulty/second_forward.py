"""Calls the model a second time in each step, with a graph, for an accuracy that the training pass could tell."""

import sys

import torch
from torch import nn

EXPECTED = r"second-forward-pass: .*outputs"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    images, labels = torch.randn(40, 256, 512), torch.randint(0, 10, (40, 256))
    right = torch.zeros(())
    for batch, label in zip(images, labels, strict=True):
        scores = model(batch)
        loss = nn.functional.cross_entropy(scores, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not MENDED:
            scores = model(batch)  # planted
        right += (scores.argmax(1) == label).float().mean()
    print(f"accuracy {right.item() / len(images):.3f}")


if __name__ == "__main__":
    main()
