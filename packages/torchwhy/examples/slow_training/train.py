#!/usr/bin/env python3
"""Train a classifier of four tones in noise, slowly; each --fix removes one reason. See README.md.

python train.py [--fix data] [--fix frames] [--fix double] [--steps 12]
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from scipy import signal
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

RATE = 16_000
FRAME, HOP = 512, 160
CLASSES = 4
FIXES = ("data", "frames", "double")


class Tones(Dataset[tuple[Tensor, int]]):
    """One second of a tone in coloured noise per sample, made again each time."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        rng = np.random.default_rng(index)
        label = index % CLASSES
        time = np.arange(RATE) / RATE
        noise = signal.lfilter(signal.firwin(1025, 4000, fs=RATE), 1, rng.standard_normal(RATE))
        tone = np.sin(2 * np.pi * 300 * (label + 1) * time + rng.uniform(0, 6))
        return torch.from_numpy(tone + 3 * noise), label


class FrameByFrame(nn.Module):
    """Log power spectra, one frame of one clip at a time."""

    def forward(self, clips: Tensor) -> Tensor:
        window = torch.hann_window(FRAME, dtype=clips.dtype)
        spectra = []
        for clip in clips:
            frames = []
            for start in range(0, clip.shape[0] - FRAME + 1, HOP):
                frame = clip[start : start + FRAME] * window
                frames.append(torch.fft.rfft(frame).abs().square())
            spectra.append(torch.stack(frames))
        return torch.stack(spectra).add(1e-6).log().unsqueeze(1)


class AllFrames(nn.Module):
    """The same numbers from one call."""

    def forward(self, clips: Tensor) -> Tensor:
        window = torch.hann_window(FRAME, dtype=clips.dtype)
        spectra = torch.stft(clips, FRAME, HOP, window=window, center=False, return_complex=True)
        return spectra.abs().square().add(1e-6).log().transpose(1, 2).unsqueeze(1)


def network(fixes: set[str]) -> nn.Module:
    """Return spectra, three convolutions, and a linear layer."""
    model = nn.Sequential(
        AllFrames() if "frames" in fixes else FrameByFrame(),
        nn.Conv2d(1, 8, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, CLASSES),
    )
    return model if "double" in fixes else model.double()


def batches(count: int, fixes: set[str]) -> DataLoader[tuple[Tensor, int]]:
    """Return batches of 16 clips: samples made on demand, or once beforehand."""
    data: Dataset = Tones(64)
    if "data" in fixes:
        clips, labels = zip(*(data[i] for i in range(64)), strict=True)
        data = TensorDataset(torch.stack(clips), torch.tensor(labels))
    sampler = torch.utils.data.RandomSampler(data, replacement=True, num_samples=16 * count)
    return DataLoader(data, batch_size=16, sampler=sampler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="append", choices=FIXES, default=[])
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    fixes = set(options.fix)
    torch.manual_seed(0)
    model = network(fixes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss = torch.tensor(0.0)
    for clips, labels in batches(options.steps, fixes):
        if "double" in fixes:
            clips = clips.float()
        loss = nn.functional.cross_entropy(model(clips), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
