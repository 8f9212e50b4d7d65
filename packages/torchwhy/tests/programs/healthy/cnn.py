"""Trains a small convolutional network on batches from memory."""

import torch
from torch import nn


def block(channels_in, channels_out):
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


def main():
    torch.manual_seed(0)
    images, labels = torch.randn(2048, 3, 32, 32), torch.randint(0, 10, (2048,))
    model = nn.Sequential(block(3, 32), block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        at = step * 64 % len(images)
        loss = nn.functional.cross_entropy(model(images[at : at + 64]), labels[at : at + 64])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


main()
