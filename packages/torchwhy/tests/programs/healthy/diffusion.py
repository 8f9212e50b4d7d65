"""Samples images from a small denoising diffusion model: 40 steps, the whole batch at once."""

import torch
from torch import nn


class Denoiser(nn.Module):
    """Predicts the noise in images, given the time."""

    def __init__(self, channels):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, channels), nn.SiLU(), nn.Linear(channels, channels))
        self.enter, self.leave = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 3, 3, padding=1)
        self.middle = nn.Sequential(nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x, time):
        y = self.enter(x) + self.time(time)[:, :, None, None]
        return self.leave(nn.functional.silu(y + self.middle(y)))


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = Denoiser(48).eval()
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.05, 41), 0)
    x = torch.randn(16, 3, 32, 32)
    for t in range(40, 0, -1):
        noise = model(x, torch.full((len(x), 1), t / 40))
        clean = (x - (1 - kept[t]).sqrt() * noise) / kept[t].sqrt()
        x = kept[t - 1].sqrt() * clean + (1 - kept[t - 1]).sqrt() * noise
    print(f"standard deviation {x.std().item():.3f}")


main()
