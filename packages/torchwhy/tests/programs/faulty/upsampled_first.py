"""Upsamples 96 channels to the size of the image and then makes 8 scores of them; the scores are upsampled as well."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

EXPECTED = r"1 x 1 convolution first"
MENDED = "mended" in sys.argv


class Segmenter(nn.Module):
    """Scores each pixel."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, 96, 3, stride=2, padding=1), nn.ReLU()
        )
        self.scores = nn.Conv2d(96, 8, 1)

    def forward(self, images):
        features, size = self.features(images), images.shape[-2:]
        if MENDED:
            return F.interpolate(self.scores(features), size=size, mode="bilinear")
        return self.scores(F.interpolate(features, size=size, mode="bilinear"))  # planted


def main():
    torch.manual_seed(0)
    images, masks = torch.randn(16, 3, 96, 96), torch.randint(0, 8, (16, 96, 96))
    model = Segmenter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(20):
        chosen = torch.randint(0, 16, (4,))
        loss = F.cross_entropy(model(images[chosen]), masks[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


main()
