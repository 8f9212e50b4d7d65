"""Splits the same texts into tokens again in every epoch, in the collate function of the training process."""

import random
import re
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

EXPECTED = r"collate|token|num_workers|once"
MENDED = "mended" in sys.argv
WORDS = re.compile(r"[a-z]+|[0-9]|[^\sa-z0-9]")
VOCABULARY = {
    f"{a}{b}{c}": i for i, (a, b, c) in enumerate((a, b, c) for a in "bdfgk" for b in "aeiou" for c in "lmnrst")
}


def tokens(text):
    ids = []
    for word in WORDS.findall(text.lower()):
        while word:
            ids.append(VOCABULARY.get(word[:3], 0))
            word = word[3:]
    return torch.tensor(ids[:200])


def collate(texts):
    return nn.utils.rnn.pad_sequence([tokens(text) for text in texts], batch_first=True)  # planted


def pad(rows):
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def main():
    torch.manual_seed(0)
    rng, names = random.Random(0), list(VOCABULARY)
    texts = [" ".join("".join(rng.choices(names, k=2)) for _ in range(120)) + "." for _ in range(640)]
    if MENDED:
        loader = DataLoader([tokens(text) for text in texts], batch_size=64, shuffle=True, collate_fn=pad)
    else:
        loader = DataLoader(texts, batch_size=64, shuffle=True, collate_fn=collate)
    model = nn.Sequential(nn.EmbeddingBag(len(VOCABULARY), 256), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(8):
        for batch in loader:
            loss = model(batch).logsumexp(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
