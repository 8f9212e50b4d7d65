"""Starts a program in each step to log the machine's load; a file of the system, or every hundredth step, would do."""

import os
import subprocess
import sys

import torch
from torch import nn

EXPECTED = r"subprocess|process.*(start|each step)|starts? .*(process|program)"
MENDED = "mended" in sys.argv


def load():
    if MENDED:
        return os.getloadavg()[0]
    out = subprocess.run(["sh", "-c", "uptime; df -h; ps aux"], capture_output=True, text=True, check=False)  # planted
    return out.stdout.splitlines()[:1]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log = []
    for _ in range(60):
        x, y = torch.randn(256, 64), torch.randint(0, 10, (256,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append(load())
    print(f"last loss {loss.item():.3f}, {len(log)} lines")


main()
