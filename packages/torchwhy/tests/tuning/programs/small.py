"""Trains a small network on images from a loader; the end of the program says that it was reached in order."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.set_num_threads(2)
    torch.autograd.set_detect_anomaly(True)
    data = TensorDataset(torch.randn(96, 3, 8, 8), torch.randint(0, 4, (96,)))
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    try:
        for images, labels in DataLoader(data, batch_size=8, shuffle=True):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if "fails" in sys.argv:
                raise RuntimeError("no such device")
        print(f"last loss {loss.item():.3f}")
    finally:
        print("closed")


main()
