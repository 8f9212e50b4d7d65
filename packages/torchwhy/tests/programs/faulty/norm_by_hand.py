"""Normalises with mean, variance and root in operators of its own; `layer_norm` reads and writes once."""

import sys

import torch
from torch import nn

EXPECTED = r"layer_norm|LayerNorm|rms_norm|RMSNorm"
MENDED = "mended" in sys.argv


class Norm(nn.Module):
    """Layer normalisation."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        if MENDED:
            return nn.functional.layer_norm(x, self.weight.shape, self.weight, self.bias)
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)  # planted
        return (x - mean) / torch.sqrt(variance + 1e-5) * self.weight + self.bias  # planted


def main():
    torch.manual_seed(0)
    blocks = [layer for _ in range(6) for layer in (nn.Linear(96, 96), Norm(96), nn.ReLU())]
    model = nn.Sequential(*blocks, nn.Linear(96, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(20):
        x, y = torch.randn(8192, 96), torch.randint(0, 10, (8192,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
