"""Looks each word up in a list, which is searched from its first item on, while the loop waits."""

import random
import sys

import torch
from torch import nn

EXPECTED = r"between-steps-gap: .*make a dict"
MENDED = "mended" in sys.argv
WORDS = [f"word{i}" for i in range(4000)]
PLACES = {word: i for i, word in enumerate(WORDS)}


def encode(words):
    if MENDED:
        return [PLACES[word] for word in words]
    return [WORDS.index(word) for word in words]  # planted


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    texts = [rng.choices(WORDS, k=32) for _ in range(1024)]
    model = nn.Sequential(nn.EmbeddingBag(len(WORDS), 64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    labels = torch.randint(0, 2, (1024,))
    for step in range(64):
        at = step * 16 % len(texts)
        ids = torch.tensor([encode(text) for text in texts[at : at + 16]])
        loss = nn.functional.cross_entropy(model(ids), labels[at : at + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


main()
