"""Writes cross entropy as one-hot labels times the logarithm of softmax, over 8,000 words; one operator does it."""

import sys

import torch
from torch import nn

EXPECTED = r"cross_entropy|log_softmax"
MENDED = "mended" in sys.argv


def entropy(scores, words):
    if MENDED:
        return nn.functional.cross_entropy(scores, words)
    wanted = nn.functional.one_hot(words, scores.shape[-1]).float()  # planted
    return -(wanted * torch.log(torch.softmax(scores, -1) + 1e-9)).sum(-1).mean()  # planted


def main():
    torch.manual_seed(0)
    words, layer, head = nn.Embedding(8000, 64), nn.Linear(64, 64), nn.Linear(64, 8000)
    optimizer = torch.optim.SGD([*words.parameters(), *layer.parameters(), *head.parameters()], lr=0.1)
    for _ in range(20):
        text = torch.randint(0, 8000, (8, 65))
        found = head(torch.relu(layer(words(text[:, :-1]))))
        loss = entropy(found.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
