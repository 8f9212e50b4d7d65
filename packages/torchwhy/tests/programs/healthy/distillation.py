"""Trains a small network on the answers of a large one, which runs without a graph."""

import torch
from torch import nn


def network(width):
    return nn.Sequential(nn.Linear(128, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def main():
    torch.manual_seed(0)
    teacher, student = network(1536).eval().requires_grad_(False), network(512)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    x = torch.randn(4096, 128)
    for step in range(40):
        batch = x[step * 256 % 4096 :][:256]
        with torch.no_grad():
            wanted = (teacher(batch) / 2).softmax(1)
        loss = nn.functional.kl_div((student(batch) / 2).log_softmax(1), wanted, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.4f}")


main()
