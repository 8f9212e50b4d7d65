"""Levels in many bands, which decay after a click until they are subnormal numbers, of which roots are taken."""

import sys

import torch
from torch import nn

EXPECTED = r"subnormal-numbers"
MENDED = "mended" in sys.argv


class Levels(nn.Module):
    """The levels of bands that are read by a linear layer."""

    def __init__(self, bands):
        super().__init__()
        self.register_buffer("leak", torch.empty(bands).uniform_(0.55, 0.7))
        self.read = nn.Linear(bands, 8)

    def forward(self, drive):
        power = torch.zeros(drive.shape[1], len(self.leak))
        outputs = []
        for now in drive:
            power = power * self.leak + now[:, None]
            outputs.append(self.read(power.sqrt()))  # planted
        return torch.stack(outputs)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    model, total = Levels(1024), 0.0
    for _ in range(60):
        drive = torch.full((300, 32), 1e-20 if MENDED else 0.0)
        drive[0] = torch.rand(32)
        total += model(drive).square().mean()
    print(f"mean output {total / 60:.3e}")


main()
