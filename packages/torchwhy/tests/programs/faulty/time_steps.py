"""Runs a recurrent cell in a Python loop over 150 time steps, some ten tiny operators for each.

nn.GRU computes the same recurrence with one call.
"""

import sys

import torch
from torch import nn

EXPECTED = r"tensor-for-loop: .*(nn\.GRU|torch\.compile|scan)"
MENDED = "mended" in sys.argv


class Recurrent(nn.Module):
    """A gated unit written out."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.gates = nn.Linear(inputs + hidden, 2 * hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)

    def forward(self, x):
        h = x.new_zeros(len(x), self.hidden)
        for t in range(x.shape[1]):  # planted
            both = torch.cat([x[:, t], h], dim=1)
            reset, update = torch.sigmoid(self.gates(both)).chunk(2, dim=1)
            new = torch.tanh(self.candidate(torch.cat([x[:, t], reset * h], dim=1)))
            h = update * h + (1 - update) * new
        return h


class Whole(nn.GRU):
    """The same as one operator."""

    def forward(self, x):
        return super().forward(x.transpose(0, 1))[1][0]


def main():
    torch.manual_seed(0)
    recurrent, head = (Whole if MENDED else Recurrent)(12, 32), nn.Linear(32, 3)
    optimizer = torch.optim.Adam([*recurrent.parameters(), *head.parameters()], lr=1e-3)
    for step in range(40):
        x, y = torch.randn(16, 150, 12), torch.randint(0, 3, (16,))
        loss = nn.functional.cross_entropy(head(recurrent(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


main()
