"""Draws from a replay memory with `choice(..., p=...)`, which goes through all priorities in each step."""

import sys
from itertools import pairwise

import numpy as np
import torch
from torch import nn

EXPECTED = r"between-steps-gap: .*self\.rng\.choice.*sum tree"
MENDED = "mended" in sys.argv
SIZE = 1 << 19


class Memory:
    def __init__(self, rng):
        self.rng = rng
        self.states = rng.standard_normal((SIZE, 8)).astype(np.float32)
        self.actions = rng.integers(0, 4, SIZE)
        self.rewards = rng.standard_normal(SIZE).astype(np.float32)
        self.priorities = rng.random(SIZE) + 0.01
        if MENDED:
            self.tree = [self.priorities]
            while len(self.tree[-1]) > 1:
                self.tree.append(self.tree[-1].reshape(-1, 2).sum(1))

    def sample(self, count):
        if MENDED:
            at = np.zeros(count, dtype=np.int64)
            left = self.rng.random(count) * self.tree[-1][0]
            for level in reversed(self.tree[:-1]):
                at *= 2
                right = left >= level[at]
                left -= np.where(right, level[at], 0)
                at += right
            index = at
        else:
            chances = self.priorities / self.priorities.sum()  # planted
            index = self.rng.choice(SIZE, count, p=chances)  # planted
        batch = self.states[index], self.actions[index], self.rewards[index], self.states[(index + 1) % SIZE]
        return index, [torch.from_numpy(part) for part in batch]

    def update(self, index, errors):
        self.priorities[index] = np.abs(errors) + 0.01
        if MENDED:
            for below, level in pairwise(self.tree):
                index = index // 2
                level[index] = below[2 * index] + below[2 * index + 1]


def q_network():
    return nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4))


def main():
    torch.manual_seed(0)
    memory = Memory(np.random.default_rng(0))
    online, target = q_network(), q_network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), 1e-3)
    for step in range(300):
        index, (state, action, reward, after) = memory.sample(64)
        with torch.no_grad():
            goal = reward + 0.99 * target(after).max(1).values
        value = online(state).gather(1, action[:, None]).squeeze(1)
        error = goal - value
        loss = nn.functional.smooth_l1_loss(value, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        memory.update(index, error.detach().numpy())
        if step % 100 == 0:
            target.load_state_dict(online.state_dict())
    print(float(loss))


main()
