"""A small convolutional network, trained with a DataLoader that has worker processes."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(1, 16, 16, generator=generator), index % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--accumulate", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Digits(8 * options.steps), batch_size=8, num_workers=options.workers)
    for number, (images, labels) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        if number % options.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"trained {options.steps} batches")


if __name__ == "__main__":
    main()
