"""Augments images one by one: `for image in batch` pays some operators for each of 256 small images.

The whole batch could be normalised, flipped and scaled with five operators.
"""

import sys

import torch
from torch import nn

EXPECTED = r"tensor-for-loop: .*(whole tensor|batch)"
MENDED = "mended" in sys.argv


def augment(batch, generator):
    if MENDED:
        batch = (batch - batch.mean((1, 2, 3), True)) / (batch.std((1, 2, 3), keepdim=True) + 1e-5)
        flipped, scale = torch.rand(2, len(batch), 1, 1, 1, generator=generator)
        return (torch.where(flipped < 0.5, batch.flip(-1), batch) * (0.9 + 0.2 * scale)).clamp(-3, 3)
    images = []
    for image in batch:  # planted
        image = (image - image.mean()) / (image.std() + 1e-5)
        if torch.rand((), generator=generator) < 0.5:
            image = image.flip(-1)
        image = image * (0.9 + 0.2 * torch.rand((), generator=generator))
        images.append(image.clamp(-3, 3))
    return torch.stack(images)


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.rand(2048, 1, 28, 28), torch.randint(0, 10, (2048,))
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(5):
        for start in range(0, len(images), 256):
            batch, wanted = images[start : start + 256], labels[start : start + 256]
            loss = nn.functional.cross_entropy(model(augment(batch, generator)), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
