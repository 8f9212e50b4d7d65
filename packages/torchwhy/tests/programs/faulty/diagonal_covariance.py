"""Draws from and weighs by a Gaussian with a diagonal covariance that is written out as a matrix."""

import sys

import torch
from torch import nn
from torch.distributions import Independent, MultivariateNormal, Normal

EXPECTED = r"diagonal-matrix: .*"
MENDED = "mended" in sys.argv


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = nn.Linear(64, 96), nn.Linear(64, 96)

    def forward(self, batch):
        mean, spread = self.mean(batch), self.spread(batch).exp()
        if MENDED:
            return Independent(Normal(mean, spread), 1)
        return MultivariateNormal(mean, torch.diag_embed(spread.square()))  # planted


def main():
    torch.manual_seed(0)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(24):
        batch = torch.randn(64, 64)
        found = model(batch)
        loss = -found.log_prob(torch.randn(64, 96)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
