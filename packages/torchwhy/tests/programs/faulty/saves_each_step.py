"""Writes a checkpoint in every step."""

import tempfile
from pathlib import Path

import torch
from torch import nn

EXPECTED = {"between-steps-gap": "Save every N steps|every N-th step"}


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(60):
            loss = model(torch.randn(32, 512)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, Path(folder) / "last.pt")


main()
