"""Computes the validation loss over all validation data after every step; once per epoch would do."""

import sys

import torch
from torch import nn

EXPECTED = r"[Vv]alidat|evaluat|every N|less often"
MENDED = "mended" in sys.argv


@torch.no_grad()
def validate(model, x, y):
    model.eval()
    losses = [nn.functional.cross_entropy(model(a), b) for a, b in zip(x.split(512), y.split(512), strict=True)]
    model.train()
    return torch.stack(losses).mean().item()


def main():
    torch.manual_seed(0)
    x, y = torch.randn(4096, 128), torch.randint(0, 10, (4096,))
    model = nn.Sequential(nn.Linear(128, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    best = float("inf")
    for step in range(80):
        at = step * 256 % 2048
        loss = nn.functional.cross_entropy(model(x[at : at + 256]), y[at : at + 256])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not MENDED or step % 40 == 39:
            best = min(best, validate(model, x[2048:], y[2048:]))  # planted
    print(f"best validation loss {best:.3f}")


main()
