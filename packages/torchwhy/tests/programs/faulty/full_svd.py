"""Decomposes tall matrices with all of their left singular vectors, of which few belong to singular values."""

import sys

import torch

EXPECTED = r"full_matrices"
MENDED = "mended" in sys.argv


def components(x, count):
    x = x - x.mean(0)
    _, s, v = torch.linalg.svd(x, full_matrices=not MENDED)  # planted
    return v[:count], s[:count]


def main():
    torch.manual_seed(0)
    total = 0.0
    for _ in range(12):
        recording = torch.randn(2000, 40) @ torch.randn(40, 40)
        axes, scale = components(recording, 8)
        total += (recording @ axes.T / scale).square().mean().item()
    print(f"{total:.4f}")


main()
