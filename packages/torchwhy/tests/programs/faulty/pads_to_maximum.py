"""Pads every text to 256 words, the longest allowed; the batch's longest has 40, so most work is padding."""

import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

EXPECTED = r"\bpad"
MENDED = "mended" in sys.argv


def collate(batch):
    longest = max(map(len, batch)) if MENDED else 256
    return torch.stack([nn.functional.pad(text, (0, longest - len(text))) for text in batch])  # planted


def main():
    torch.manual_seed(0)
    random.seed(0)
    data = [torch.randint(1, 1000, (random.randint(10, 40),)) for _ in range(320)]
    words = nn.Embedding(1000, 64)
    layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True)
    head = nn.Linear(64, 2)
    optimizer = torch.optim.SGD([*words.parameters(), *layer.parameters(), *head.parameters()], lr=0.01)
    for epoch in range(2):
        for texts in DataLoader(data, batch_size=16, collate_fn=collate):
            found = head(layer(words(texts), src_key_padding_mask=texts == 0)[:, 0])
            loss = nn.functional.cross_entropy(found, texts[:, 0] % 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
