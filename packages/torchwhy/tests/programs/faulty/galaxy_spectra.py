"""Reads a compressed `.npz` file lazily: an NpzFile unpacks the whole array again for each sample."""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECTED = r"dataloader-wait: .*self\.file\[.*dict\(np\.load"
MENDED = "mended" in sys.argv


class Spectra(Dataset):
    def __init__(self, path):
        self.file = np.load(path)
        if MENDED:
            self.file = {name: self.file[name] for name in self.file.files}
        self.count = len(self.file["kind"])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        spectrum = self.file["spectra"][index]  # planted
        kind = self.file["kind"][index]
        return torch.from_numpy(spectrum.astype(np.float32)), int(kind)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "survey.npz"
        rng = np.random.default_rng(0)
        np.savez_compressed(
            path, spectra=rng.integers(0, 500, (256, 2000)).astype(np.int16), kind=rng.integers(0, 3, 256)
        )
        loader = DataLoader(Spectra(path), batch_size=16, shuffle=True)
        model = nn.Sequential(
            nn.Unflatten(1, (1, 2000)),
            nn.Conv1d(1, 16, 9, 4),
            nn.ReLU(),
            nn.Conv1d(16, 32, 9, 4),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(8),
            nn.Flatten(),
            nn.Linear(256, 3),
        )
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for epoch in range(3):
            for spectrum, kind in loader:
                loss = nn.functional.cross_entropy(model(spectrum), kind)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(epoch, float(loss))


main()
