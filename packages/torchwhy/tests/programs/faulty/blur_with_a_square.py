"""Blurs images with a square Gaussian kernel, in a loss of structure."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

EXPECTED = r"separable-convolution: .*"
MENDED = "mended" in sys.argv


def blur(images):
    x = torch.arange(11.0) - 5
    line = torch.exp(-x.square() / 4.5)
    line = line / line.sum()
    if MENDED:
        rows = F.conv2d(images, line.expand(3, 1, 1, 11), padding=(0, 5), groups=3)
        return F.conv2d(rows, line[:, None].expand(3, 1, 11, 1), padding=(5, 0), groups=3)
    square = (line[:, None] * line).expand(3, 1, 11, 11)
    return F.conv2d(images, square, padding=5, groups=3)  # planted


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(14):
        images = torch.rand(4, 3, 128, 128)
        made = model(images)
        a, b = blur(made), blur(images)
        spread = blur(made * images) - a * b
        loss = (a - b).square().mean() - spread.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
