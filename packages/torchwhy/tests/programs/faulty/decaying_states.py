"""A bank of leaky units driven by a click, after which their states decay until they are subnormal numbers."""

import sys

import torch
from torch import nn

EXPECTED = r"subnormal-numbers"
MENDED = "mended" in sys.argv


class Reservoir(nn.Module):
    """Leaky units that are read by a linear layer."""

    def __init__(self, units):
        super().__init__()
        self.register_buffer("leak", torch.empty(units).uniform_(0.55, 0.7))
        self.read = nn.Linear(units, 8)

    def forward(self, drive):
        state = torch.zeros(drive.shape[1], len(self.leak))
        outputs = []
        for now in drive:
            state = state * self.leak + now[:, None]  # planted
            outputs.append(self.read(state))
        return torch.stack(outputs)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    if MENDED:
        torch.set_flush_denormal(True)
    model, total = Reservoir(512), 0.0
    for _ in range(60):
        drive = torch.zeros(300, 16)
        drive[0] = torch.rand(16)
        total += model(drive).square().mean()
    print(f"mean output {total / 60:.3e}")


main()
