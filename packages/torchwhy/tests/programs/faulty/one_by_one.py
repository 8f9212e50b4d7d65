"""Calls the model for each example of a batch, so often that the passes could be taken for steps."""

import sys

import torch
from torch import nn

EXPECTED = r"tensor-for-loop: .*whole tensor"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        batch = torch.randn(128, 64)
        outputs = model(batch) if MENDED else torch.stack([model(batch[i]) for i in range(len(batch))])  # planted
        loss = outputs.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
