"""Distils a teacher with two losses, on logits and on their ranks, and runs the teacher for each of them."""

import sys

import torch
from torch import nn

EXPECTED = r"computed-again"
MENDED = "mended" in sys.argv


def network(width):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 50))


def losses(student, teacher, x):
    logits = student(x)
    with torch.no_grad():
        wanted = teacher(x)
    soft = nn.functional.kl_div(logits.log_softmax(-1), wanted.softmax(-1), reduction="batchmean")
    with torch.no_grad():
        best = wanted.argmax(-1) if MENDED else teacher(x).argmax(-1)  # planted
    return soft + nn.functional.cross_entropy(logits, best)


def main():
    torch.manual_seed(0)
    teacher, student = network(512).eval(), network(64)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(80):
        loss = losses(student, teacher, torch.randn(512, 64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
