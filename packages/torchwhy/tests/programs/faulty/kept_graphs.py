"""Carries a hidden state from chunk to chunk without `detach()`: each backward pass goes through all chunks before it.

`retain_graph=True` silences the error that would have told.
"""

import sys

import torch
from torch import nn

EXPECTED = r"growing-graph: .*detach"
MENDED = "mended" in sys.argv


class Predictor(nn.Module):
    """Predicts a signal's next value from those before it."""

    def __init__(self, channels, hidden):
        super().__init__()
        self.cell, self.head = nn.GRUCell(channels, hidden), nn.Linear(hidden, channels)

    def forward(self, chunk, state):
        predicted = []
        for t in range(chunk.shape[1] - 1):
            state = self.cell(chunk[:, t], state)
            predicted.append(self.head(state))
        return torch.stack(predicted, 1), state


def main():
    """Estimate the Fisher information of each parameter over a long signal."""
    torch.manual_seed(0)
    model = Predictor(4, 48)
    signal = torch.randn(8, 600, 4)
    information = [torch.zeros_like(parameter) for parameter in model.parameters()]
    state = torch.zeros(8, 48)
    for chunk in signal.split(10, dim=1):
        predicted, state = model(chunk, state.detach() if MENDED else state)  # planted
        loss = nn.functional.mse_loss(predicted, chunk[:, 1:])
        model.zero_grad()
        loss.backward(retain_graph=not MENDED)  # planted
        for total, parameter in zip(information, model.parameters(), strict=True):
            total += parameter.grad.square()
    print(f"largest information {max(total.max().item() for total in information):.2e}")


main()
