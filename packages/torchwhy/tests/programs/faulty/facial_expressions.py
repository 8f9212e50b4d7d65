"""Reads faces from a text column of a table, as FER2013 has them: each sample parses 2304 numbers again."""

import io
import sys

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECTED = r"dataloader-wait: .*text\.split.*Read the numbers once"
MENDED = "mended" in sys.argv


class Faces(Dataset):
    def __init__(self, csv):
        self.table = pd.read_csv(csv)
        if MENDED:
            self.pixels = np.stack([np.array(t.split(), dtype=np.uint8) for t in self.table["pixels"]])

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        emotion = int(self.table["emotion"].iloc[index])
        if MENDED:
            pixels = self.pixels[index]
        else:
            text = self.table["pixels"].iloc[index]
            pixels = np.array([int(p) for p in text.split(" ")], dtype=np.uint8)  # planted
        face = torch.from_numpy(pixels.reshape(1, 48, 48)).float() / 255
        return face, emotion


def write_csv(rows=600):
    rng = np.random.default_rng(0)
    faces = (f"{rng.integers(7)},{' '.join(map(str, rng.integers(0, 256, 2304)))}" for _ in range(rows))
    return io.StringIO("\n".join(["emotion,pixels", *faces]))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Faces(write_csv()), batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(2304, 7)
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for epoch in range(6):
        model.train()
        for faces, emotions in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(faces), emotions)
            loss.backward()
            optimizer.step()
        print(epoch, float(loss))


main()
