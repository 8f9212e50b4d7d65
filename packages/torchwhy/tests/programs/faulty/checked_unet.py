"""Trains a small U-Net; assertions from debugging search each activation for NaN and infinite values."""

import sys

import torch
from torch import nn

EXPECTED = r"value-checks"
MENDED = "mended" in sys.argv


def checked(x, name):
    if not MENDED:
        assert not torch.isnan(x).any(), f"NaN in {name}"  # planted
        assert not torch.isinf(x).any(), f"inf in {name}"  # planted
    return x


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.down, self.middle = block(1, 8), block(8, 16), block(16, 16)
        self.up, self.last = block(24, 8), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        x = checked(x, "input")
        a = checked(self.first(x), "first")
        b = checked(self.down(nn.functional.max_pool2d(a, 2)), "down")
        c = checked(self.middle(b), "middle")
        d = checked(nn.functional.interpolate(c, scale_factor=2), "upsampled")
        e = checked(self.up(torch.cat([a, d], 1)), "up")
        return checked(self.last(e), "last")


def main():
    torch.manual_seed(0)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    scans = torch.randn(4, 4, 1, 160, 160)
    masks = torch.randint(0, 2, (4, 4, 160, 160))
    for step in range(60):
        logits = model(scans[step % 4])
        loss = nn.functional.cross_entropy(logits, masks[step % 4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(float(loss))


if __name__ == "__main__":
    main()
