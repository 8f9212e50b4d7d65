"""Leaves the hooks of an old search for bad values on: they check each layer's output for NaN and note its mean."""

import sys

import torch
from torch import nn

EXPECTED = r"\bhooks?\b"
MENDED = "mended" in sys.argv
seen = {}


def watch(module, _, output):
    """Note an output's mean and spread, and refuse what isn't finite."""
    if torch.isnan(output).any().item() or torch.isinf(output).any().item():  # planted
        raise ValueError(f"{module} gives values that are not finite")
    seen[id(module)] = output.mean().item(), output.std().item()  # planted


def main():
    torch.manual_seed(0)
    layers = [layer for _ in range(16) for layer in (nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(64, 4))
    if not MENDED:
        for module in model.modules():
            if not isinstance(module, nn.Sequential):
                module.register_forward_hook(watch)  # planted
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(60):
        x, y = torch.randn(512, 64), torch.randint(0, 4, (512,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
