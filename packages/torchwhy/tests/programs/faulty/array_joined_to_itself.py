"""A replay buffer is a NumPy array that is joined with each transition: all states are copied for one more."""

import sys

import numpy as np
import torch
from torch import nn

EXPECTED = r"between-steps-gap: .*copies all that was joined"
MENDED = "mended" in sys.argv
ROWS = 20_000


class Buffer:
    def __init__(self):
        self.states = np.random.default_rng(0).standard_normal((ROWS, 64), dtype=np.float32)
        self.count = 0

    def add(self, state):
        if MENDED:
            self.states[self.count % ROWS] = state
        else:
            self.states = np.concatenate([self.states, state[None]])  # planted
        self.count += 1


def main():
    torch.manual_seed(0)
    rng, buffer = np.random.default_rng(1), Buffer()
    critic = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.SGD(critic.parameters(), lr=1e-3)
    for _ in range(120):
        for _ in range(4):
            buffer.add(rng.standard_normal(64, dtype=np.float32))
        states = torch.from_numpy(buffer.states[rng.integers(ROWS, size=128)])
        loss = (critic(states)[:, 0] - states.mean(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


main()
