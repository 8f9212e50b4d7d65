"""Masks names in notes with one regular expression of 1500 alternatives, tried at each place of each text."""

import random
import re
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

EXPECTED = r"dataloader-wait: .*NAMES\.sub\(.*set or a dict"
MENDED = "mended" in sys.argv
random.seed(0)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def word(n):
    return "".join(random.choices(LETTERS, k=n))


SURNAMES = [word(random.randint(5, 9)) for _ in range(1500)]
NAMES = re.compile(r"\b(" + "|".join(SURNAMES) + r")\b")
KNOWN = set(SURNAMES)
WORD = re.compile(r"\b\w+\b")
COMMON = [word(random.randint(2, 8)) for _ in range(800)]


def mask_names(text):
    if MENDED:
        return WORD.sub(lambda m: "NAME" if m[0] in KNOWN else m[0], text)
    return NAMES.sub("NAME", text)  # planted


def collate(rows):
    bags, offsets, labels = [], [], []
    for text, label in rows:
        offsets.append(len(bags))
        bags.extend(hash(w) % 20000 for w in mask_names(text).split())
        labels.append(label)
    return torch.tensor(bags), torch.tensor(offsets), torch.tensor(labels)


def main():
    torch.manual_seed(0)
    notes = []
    for _ in range(2000):
        words = random.choices(COMMON, k=60) + random.choices(SURNAMES, k=3)
        random.shuffle(words)
        notes.append((" ".join(words), random.randrange(4)))
    loader = DataLoader(notes, batch_size=32, shuffle=True, collate_fn=collate)
    bag = nn.EmbeddingBag(20000, 64)
    head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD([*bag.parameters(), *head.parameters()], 0.1)
    for epoch in range(2):
        for words, offsets, labels in loader:
            loss = nn.functional.cross_entropy(head(bag(words, offsets)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, float(loss))


main()
