"""Counts all live tensors after each step, with a function from a forum that walks all objects of the program."""

import gc
import sys

import torch
from torch import nn

EXPECTED = r"between-steps-gap: .*torch\.is_tensor\(thing\).*run it less often"
EVERY = 50 if "mended" in sys.argv else 1


def live_tensors():
    count = size = 0
    for thing in gc.get_objects():  # planted
        if torch.is_tensor(thing):  # planted
            count += 1
            size += thing.numel() * thing.element_size()
    return count, size


class LanguageModel(nn.Module):
    def __init__(self, vocabulary=2000, width=128):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def main():
    torch.manual_seed(0)
    text = torch.randint(0, 2000, (100_000,))
    model = LanguageModel()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(60):
        start = torch.randint(0, len(text) - 33, (16,))
        window = text[start[:, None] + torch.arange(33)]
        logits = model(window[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % EVERY == 0:
            count, size = live_tensors()  # planted
            print(f"step {step}: {count} tensors, {size / 1e6:.1f} MB")


main()
