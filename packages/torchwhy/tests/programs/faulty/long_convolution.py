"""Applies a reverb of 4000 samples with conv1d, which multiplies each sample with each; an FFT takes a small part."""

import sys

import torch
from torch import nn

EXPECTED = r"FFT|fft"
MENDED = "mended" in sys.argv


def reverberate(x, response):
    if MENDED:
        n = x.shape[-1] + len(response) - 1
        spectrum = torch.fft.rfft(x, n) * torch.fft.rfft(response, n)
        return torch.fft.irfft(spectrum, n)[..., : x.shape[-1]]
    padded = nn.functional.pad(x[:, None], (len(response) - 1, 0))
    return nn.functional.conv1d(padded, response.flip(0)[None, None])[:, 0]  # planted


def main():
    torch.manual_seed(0)
    response = torch.randn(4000) * torch.exp(-torch.arange(4000) / 1500)
    model = nn.Sequential(nn.Conv1d(1, 16, 64, 8), nn.ReLU(), nn.Conv1d(16, 32, 16, 4), nn.ReLU(), nn.Conv1d(32, 4, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(20):
        wet = reverberate(torch.randn(2, 12_000), response)
        loss = model(wet[:, None]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
