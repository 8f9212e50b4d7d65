"""Decodes and augments every sample in the training process itself: the loop stands still meanwhile (num_workers=0)."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECTED = r"dataloader-wait: .*num_workers"
MENDED = "mended" in sys.argv


class Recordings(Dataset):
    """Short recordings as 16-bit samples, turned into log spectra when asked for."""

    def __init__(self, count):
        self.samples = np.random.default_rng(0).integers(-(2**15), 2**15, (count, 8000), dtype=np.int16)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        signal = self.samples[index].astype(np.float32) / 2**15
        frames = np.lib.stride_tricks.sliding_window_view(signal, 400)[::80] * np.hanning(400).astype(np.float32)
        spectrum = np.log1p(np.abs(np.fft.rfft(frames, axis=1))).astype(np.float32)
        return torch.from_numpy(spectrum.mean(0)), index % 10


def main():
    torch.manual_seed(0)
    loader = DataLoader(Recordings(1024), batch_size=32, shuffle=True, num_workers=2 * MENDED)  # planted
    model = nn.Sequential(nn.Linear(201, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for spectra, labels in loader:  # planted
            loss = nn.functional.cross_entropy(model(spectra), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
