"""Keeps each of 16 attention heads as a module and calls them one by one; one product serves all heads."""

import sys

import torch
from torch import nn

EXPECTED = r"heads?\b.*(loop|one by one|once)|one (matmul|product|linear)|batch.*heads?\b"
MENDED = "mended" in sys.argv


class Head(nn.Module):
    """One head of self-attention."""

    def __init__(self, width, size):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(width, size, bias=False) for _ in range(3))

    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=True)


class OneByOne(nn.Module):
    """Heads side by side."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = nn.ModuleList(Head(width, width // heads) for _ in range(heads))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        return self.out(torch.cat([head(x) for head in self.heads], dim=-1))  # planted


class Together(nn.Module):
    """The same heads from one product."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(n, t, width))


def main():
    torch.manual_seed(0)
    kind = Together if MENDED else OneByOne
    layers = [layer for _ in range(2) for layer in (kind(128, 16), nn.LayerNorm(128))]
    model = nn.Sequential(nn.Embedding(100, 128), *layers, nn.Linear(128, 100))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    words = torch.randint(0, 100, (8, 33))
    for _ in range(24):
        loss = nn.functional.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
