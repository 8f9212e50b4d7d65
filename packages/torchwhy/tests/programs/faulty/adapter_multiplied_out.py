"""Adds an adapter of rank 8 to the whole weight in every forward pass; two thin products with the input do the same."""

import sys

import torch
from torch import nn
from torch.nn import functional

EXPECTED = r"low rank|multiplied out|thin (matrices|products)|one factor after the other"
MENDED = "mended" in sys.argv


class Adapted(nn.Module):
    """A frozen linear layer with a trained change of low rank."""

    def __init__(self, inputs, outputs, rank=8):
        super().__init__()
        self.base = nn.Linear(inputs, outputs).requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, inputs) / inputs**0.5)
        self.B = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x):
        if MENDED:
            return self.base(x) + 2 * functional.linear(functional.linear(x, self.A), self.B)
        return functional.linear(x, self.base.weight + 2 * (self.B @ self.A), self.base.bias)  # planted


def main():
    torch.manual_seed(0)
    layers = [
        layer for _ in range(3) for layer in (Adapted(512, 2048), nn.GELU(), Adapted(2048, 512), nn.LayerNorm(512))
    ]
    model = nn.Sequential(nn.Embedding(1000, 512).requires_grad_(False), *layers)
    head = nn.Linear(512, 2)
    trained = [p for p in (*model.parameters(), *head.parameters()) if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    words = torch.randint(0, 1000, (200, 16))
    labels = words.sum(1) % 2
    for _ in range(40):
        chosen = torch.randint(0, 200, (4,))
        loss = functional.cross_entropy(head(model(words[chosen]).mean(1)), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
