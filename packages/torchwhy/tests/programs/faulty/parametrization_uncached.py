"""Uses an orthogonal weight in each of 20 time steps; the parametrization computes it again at every access."""

import sys
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

EXPECTED = r"parametri[sz]"
MENDED = "mended" in sys.argv


class Recurrent(nn.Module):
    """A recurrent layer whose transition is a rotation."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.enter = nn.Linear(inputs, hidden)
        self.turn = parametrizations.orthogonal(nn.Linear(hidden, hidden, bias=False))

    def forward(self, x):
        state = 0
        entering = self.enter(x)
        with parametrize.cached() if MENDED else nullcontext():
            for t in range(x.shape[1]):
                state = torch.tanh(entering[:, t] + self.turn(state if t else entering[:, 0]))  # planted
        return state


def main():
    torch.manual_seed(0)
    model = nn.Sequential(Recurrent(16, 64), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(25):
        loss = nn.functional.cross_entropy(model(torch.randn(32, 20, 16)), torch.randint(0, 4, (32,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
