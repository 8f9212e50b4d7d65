"""Trains a small U-Net: down, up, and a connection between equal sizes."""

import torch
from torch import nn


def block(channels_in, channels_out):
    return nn.Sequential(nn.Conv2d(channels_in, channels_out, 3, padding=1), nn.ReLU(inplace=True))


class Net(nn.Module):
    """Two levels."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = block(1, 16), block(16, 32), block(48, 16)
        self.head = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        fine = self.first(x)
        coarse = self.second(nn.functional.max_pool2d(fine, 2))
        up = nn.functional.interpolate(coarse, scale_factor=2)
        return self.head(self.third(torch.cat([fine, up], 1)))


def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(16):
        images = torch.randn(16, 1, 64, 64)
        masks = (nn.functional.avg_pool2d(images, 5, 1, 2)[:, 0] > 0).long()
        loss = nn.functional.cross_entropy(model(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
