"""Writes a checkpoint in every step."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

EXPECTED = r"between-steps-gap: .*(Save every N steps|every N-th step)"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(60):
            loss = model(torch.randn(32, 512)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if not MENDED or step % 30 == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(state, Path(folder) / "last.pt")  # planted


main()
