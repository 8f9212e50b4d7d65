"""A server's loop: a thread hands over batches of requests of several sizes, and each is answered."""

import queue
import threading

import torch
from torch import nn


def ask(requests, count):
    generator = torch.Generator().manual_seed(0)
    for i in range(count):
        requests.put(torch.randn(64 + 32 * (i % 3), 256, generator=generator))
    requests.put(None)


@torch.inference_mode()
def serve(requests):
    model = nn.Sequential(nn.Linear(256, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 16)).eval()
    answered = 0
    while (batch := requests.get()) is not None:
        answered += len(model(batch).softmax(1).tolist())
    return answered


def main():
    torch.manual_seed(0)
    requests = queue.Queue()
    asking = threading.Thread(target=ask, args=(requests, 60))
    asking.start()
    print(f"answered {serve(requests)} requests")
    asking.join()


main()
