"""Scores all words at all positions, and keeps those of the last one: 16 times the work that is needed."""

import sys

import torch
from torch import nn

EXPECTED = r"last position|before the (head|projection|linear)|slice|select.*before|not used|unused|discard"
MENDED = "mended" in sys.argv


class Model(nn.Module):
    """Predicts the next word."""

    def __init__(self, words, width):
        super().__init__()
        self.embed, self.gru, self.head = nn.Embedding(words, width), nn.GRU(width, width), nn.Linear(width, words)

    def forward(self, words):
        states, _ = self.gru(self.embed(words))
        if MENDED:
            return self.head(states[-1])
        return self.head(states)[-1]  # planted


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = Model(10_000, 128).eval()
    counts = torch.zeros(10_000)
    for _ in range(30):
        scores = model(torch.randint(0, 10_000, (32, 16)))
        counts[scores.argmax(1)] += 1
    print(f"most frequent: {counts.argmax().item()}")


main()
