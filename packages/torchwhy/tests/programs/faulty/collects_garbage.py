"""Calls `gc.collect()` in every step, "against leaks": a full collection visits all objects of the program."""

import gc
import sys

import torch
from torch import nn

EXPECTED = r"gc-pause: .*gc\.collect"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    samples = [{"id": i, "tokens": [i % 97, i % 89, i % 83], "label": i % 5} for i in range(60_000)]
    model = nn.Sequential(nn.Embedding(100, 64), nn.Flatten(), nn.Linear(192, 128), nn.ReLU(), nn.Linear(128, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(50):
        chosen = samples[step * 64 : step * 64 + 64]
        tokens = torch.tensor([sample["tokens"] for sample in chosen])
        labels = torch.tensor([sample["label"] for sample in chosen])
        loss = nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not MENDED:
            gc.collect()  # planted
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


main()
