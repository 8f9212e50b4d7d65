"""Trains a discriminator on images that weren't detached: its backward pass goes through the generator, for nothing."""

import sys

import torch
from torch import nn

EXPECTED = r"detach|no_grad|never used|requires_grad"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(32, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 256))
    judge = nn.Sequential(nn.Linear(256, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
    makes = torch.optim.SGD(generator.parameters(), lr=0.01)
    judges = torch.optim.SGD(judge.parameters(), lr=0.01)
    bce, ones, zeros = nn.functional.binary_cross_entropy_with_logits, torch.ones(256, 1), torch.zeros(256, 1)
    for _ in range(40):
        fake = generator(torch.randn(256, 32))
        judged = judge(fake.detach() if MENDED else fake)  # planted
        loss = bce(judge(torch.randn(256, 256)), ones) + bce(judged, zeros)
        judges.zero_grad()
        loss.backward()  # planted
        judges.step()
        lost = bce(judge(generator(torch.randn(256, 32))), ones)
        makes.zero_grad()
        lost.backward()
        makes.step()
    print(f"last losses {loss.item():.3f} and {lost.item():.3f}")


main()
