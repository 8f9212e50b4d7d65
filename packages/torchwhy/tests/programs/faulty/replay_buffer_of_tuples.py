"""Keeps a replay buffer of tuples and stacks 256 of them, field by field, in each step; tensors are indexed at once."""

import random
import sys
from collections import deque

import torch
from torch import nn

EXPECTED = r"\bstack\b|index|preallocat|one tensor"
MENDED = "mended" in sys.argv


def draw(buffer, fields):
    if MENDED:
        rows = torch.randint(0, len(fields[0]), (256,))
        return [field[rows] for field in fields]
    chosen = random.sample(buffer, 256)
    return [torch.stack([one[i] for one in chosen]) for i in range(4)]  # planted


def main():
    torch.manual_seed(0)
    random.seed(0)
    fields = torch.randn(5000, 12), torch.randint(0, 4, (5000,)), torch.randn(5000), torch.randn(5000, 12)
    buffer = deque(zip(*fields, strict=True), maxlen=5000)
    policy = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for _ in range(150):
        state, action, reward, following = draw(buffer, fields)
        with torch.no_grad():
            wanted = reward + 0.99 * policy(following).max(1).values
        loss = nn.functional.smooth_l1_loss(policy(state).gather(1, action[:, None])[:, 0], wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.4f}")


main()
