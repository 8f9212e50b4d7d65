"""Polls a queue and sleeps 20 ms whenever it is empty; a blocking `get` returns as soon as there is something."""

import queue
import sys
import threading
import time

import torch
from torch import nn

EXPECTED = r"\bsleep"
MENDED = "mended" in sys.argv


def produce(batches, wanted):
    while wanted.get():
        batches.put(torch.randn(256, 64))


def take(batches):
    if MENDED:
        return batches.get()
    while batches.empty():
        time.sleep(0.02)  # planted
    return batches.get()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches, wanted = queue.Queue(), queue.Queue()
    producer = threading.Thread(target=produce, args=(batches, wanted))
    producer.start()
    for _ in range(80):
        wanted.put(True)
        x = take(batches)
        loss = nn.functional.mse_loss(model(x)[:, 0], x.mean(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    wanted.put(False)
    producer.join()
    print(f"last loss {loss.item():.4f}")


main()
