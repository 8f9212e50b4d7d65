"""Trains a convolutional network to take noise out of audio."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    enter, leave = nn.Conv1d(1, 32, 32, 8, padding=12), nn.ConvTranspose1d(32, 1, 32, 8, padding=12)
    middle = nn.Sequential(nn.Conv1d(32, 32, 5, padding=2), nn.PReLU(), nn.Conv1d(32, 32, 5, padding=2), nn.PReLU())
    model = nn.Sequential(enter, middle, leave)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    times = torch.arange(16_000) / 16_000
    for step in range(20):
        pitches = 100 + 300 * torch.rand(16, 1, 1)
        clean = torch.sin(2 * torch.pi * pitches * times)
        loss = nn.functional.l1_loss(model(clean + 0.3 * torch.randn_like(clean)), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


main()
