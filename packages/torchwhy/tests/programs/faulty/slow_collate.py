"""Pads the texts of each batch word by word in its collate function; `pad_sequence` does it in one call."""

import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

EXPECTED = r"collate|pad_sequence"
MENDED = "mended" in sys.argv


def collate(batch):
    if MENDED:
        texts = nn.utils.rnn.pad_sequence([text for text, _ in batch], batch_first=True)
        return texts, torch.tensor([label for _, label in batch])
    longest = max(len(text) for text, _ in batch)
    rows = []
    for text, _ in batch:
        rows.append([int(text[i]) if i < len(text) else 0 for i in range(longest)])  # planted
    return torch.tensor(rows), torch.tensor([label for _, label in batch])


def main():
    torch.manual_seed(0)
    random.seed(0)
    data = [(torch.randint(1, 5000, (random.randint(10, 120),)), i % 4) for i in range(1600)]
    loader = DataLoader(data, batch_size=32, shuffle=True, collate_fn=collate)
    words, head = nn.Embedding(5000, 64), nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))
    optimizer = torch.optim.SGD([*words.parameters(), *head.parameters()], lr=0.1)
    for epoch in range(2):
        for texts, labels in loader:
            loss = nn.functional.cross_entropy(head(words(texts).mean(1)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
