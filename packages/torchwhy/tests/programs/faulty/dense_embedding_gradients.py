"""Trains a table of 200,000 word vectors with dense gradients: Adam updates all rows, of which a batch uses 2,000."""

import sys

import torch
from torch import nn

EXPECTED = r"sparse=True|sparse gradient|SparseAdam"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    words = nn.Embedding(200_000, 32, sparse=MENDED)  # planted
    head = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
    if MENDED:
        optimizers = [torch.optim.SparseAdam(words.parameters(), lr=1e-3), torch.optim.Adam(head.parameters(), lr=1e-3)]
    else:
        optimizers = [torch.optim.Adam([*words.parameters(), *head.parameters()], lr=1e-3)]
    for _ in range(30):
        texts, labels = torch.randint(0, 200_000, (100, 20)), torch.randint(0, 2, (100,))
        loss = nn.functional.cross_entropy(head(words(texts).mean(1)), labels)  # planted
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()  # planted
    print(f"last loss {loss.item():.3f}")


main()
