"""Looks up word vectors by a product with one-hot rows: 3072 columns, of which one counts."""

import sys

import torch
from torch import nn

EXPECTED = r"one.?hot|[Ee]mbedding"
MENDED = "mended" in sys.argv


class Words(nn.Module):
    """Vectors of words."""

    def __init__(self, count, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, width))

    def forward(self, words):
        if MENDED:
            return nn.functional.embedding(words, self.weight)
        return nn.functional.one_hot(words, len(self.weight)).float() @ self.weight  # planted


def main():
    torch.manual_seed(0)
    model = nn.Sequential(Words(3072, 64), nn.Flatten(), nn.Linear(64 * 32, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(20):
        words, labels = torch.randint(0, 3072, (32, 32)), torch.randint(0, 10, (32,))
        loss = nn.functional.cross_entropy(model(words), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
