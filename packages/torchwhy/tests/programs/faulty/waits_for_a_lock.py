"""A thread writes statistics while it holds the lock that the training loop needs in each step."""

import sys
import threading
import time

import torch
from torch import nn

EXPECTED = r"\block\b"
MENDED = "mended" in sys.argv


def write(statistics, lock, ended):
    """Send the statistics to a slow server, again and again."""
    while not ended.is_set():
        with lock:
            last = list(statistics)
            if not MENDED:
                time.sleep(0.03)
        if MENDED:
            time.sleep(0.03)
        time.sleep(0.001)
        del last


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    statistics, lock, ended = [], threading.Lock(), threading.Event()
    writer = threading.Thread(target=write, args=(statistics, lock, ended))
    writer.start()
    for _ in range(60):
        x, y = torch.randn(512, 64), torch.randint(0, 10, (512,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with lock:  # planted
            statistics.append(loss.item())
    ended.set()
    writer.join()
    print(f"last loss {statistics[-1]:.3f}")


main()
