"""Computes positional encodings and the causal mask in every forward pass, row by row; both never change."""

import math
import sys

import torch
from torch import nn

EXPECTED = r"register_buffer|once|whole tensor|loop"
MENDED = "mended" in sys.argv


def positions(length, width):
    table = torch.zeros(length, width)
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    for t in range(length):
        table[t, 0::2] = torch.sin(t * rates)  # planted
        table[t, 1::2] = torch.cos(t * rates)  # planted
    return table


def causal(length):
    mask = torch.zeros(length, length)
    for t in range(length):
        mask[t, t + 1 :] = float("-inf")  # planted
    return mask


class Model(nn.Module):
    """A small language model."""

    def __init__(self, words, width, length):
        super().__init__()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.register_buffer("positions", positions(length, width))
        self.register_buffer("mask", causal(length))

    def forward(self, words):
        if MENDED:
            return self.head(self.encoder(self.embed(words) + self.positions, mask=self.mask))
        x = self.embed(words)
        x = x + positions(x.shape[1], x.shape[2])  # planted
        return self.head(self.encoder(x, mask=causal(x.shape[1])))  # planted


def main():
    torch.manual_seed(0)
    model = Model(200, 32, 256)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    words = torch.randint(0, 200, (64, 257))
    for step in range(24):
        batch = words[step % 16 * 2 :][:2]
        loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
