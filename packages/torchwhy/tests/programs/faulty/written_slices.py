"""Writes each state of a rollout into a tensor made before: under autograd each write copies all of its gradient."""

import sys

import torch
from torch import nn

EXPECTED = r"whole gradient|torch\.stack"
MENDED = "mended" in sys.argv
STEPS = 150


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 16))

    def rollout(self, x, dt=0.02):
        if MENDED:
            states = [x]
            for _ in range(STEPS):
                states.append(states[-1] + dt * self.net(states[-1]))
            return torch.stack(states)
        states = torch.zeros(STEPS + 1, *x.shape)
        states[0] = x
        for t in range(STEPS):
            x = x + dt * self.net(x)
            states[t + 1] = x  # planted
        return states


def main():
    torch.manual_seed(0)
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-3)
    x, goal = torch.randn(128, 16), torch.randn(STEPS + 1, 128, 16)
    for _ in range(12):
        loss = (field.rollout(x) - goal).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.5f}")


main()
