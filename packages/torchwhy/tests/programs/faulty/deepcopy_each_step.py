"""Averages the weights with a deep copy of the model in every step; in-place operators need no copy."""

import copy
import sys

import torch
from torch import nn

EXPECTED = r"deepcopy|lerp_|AveragedModel"
MENDED = "mended" in sys.argv


class Residual(nn.Module):
    """Normalise, project, add."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.project = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.project(self.norm(x)))


@torch.no_grad()
def averaged(average, model):
    if MENDED:
        torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 0.01)
        return average
    new = copy.deepcopy(model)  # planted
    for ours, old in zip(new.parameters(), average.parameters(), strict=True):
        ours.copy_(0.99 * old + 0.01 * ours)
    return new


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*(Residual(128) for _ in range(24)), nn.Linear(128, 1))
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(4096, 128), torch.randn(4096, 1)
    for step in range(50):
        at = step * 16 % len(x)
        loss = nn.functional.mse_loss(model(x[at : at + 16]), y[at : at + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = averaged(average, model)
    print(f"last loss {loss.item():.3f}")


main()
