"""Scores all pairs of 400 nodes by joining their rows; the scores are sums of one number for each node."""

import sys

import torch
from torch import nn
from torch.nn import functional

EXPECTED = r"pairs?\b.*(joined|product)|joined|before it is repeated"
MENDED = "mended" in sys.argv


class GraphAttention(nn.Module):
    """Attention over a graph's neighbours, with additive scores."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Linear(inputs, outputs, bias=False)
        self.score = nn.Parameter(torch.randn(2 * outputs, 1) / outputs**0.5)

    def forward(self, x, edges):
        h = self.weight(x)
        n, width = h.shape
        if MENDED:
            scores = h @ self.score[:width] + (h @ self.score[width:]).T
        else:
            pairs = torch.cat([h.repeat_interleave(n, dim=0), h.repeat(n, 1)], dim=1)  # planted
            scores = (pairs @ self.score).view(n, n)
        weights = functional.leaky_relu(scores, 0.2).masked_fill(~edges, -1e9).softmax(1)
        return functional.elu(weights @ h)


def main():
    torch.manual_seed(0)
    x, labels = torch.randn(400, 100), torch.randint(0, 5, (400,))
    edges = (torch.rand(400, 400) < 0.02) | torch.eye(400, dtype=torch.bool)
    heads = nn.ModuleList(GraphAttention(100, 16) for _ in range(4))
    out = nn.Linear(64, 5)
    optimizer = torch.optim.Adam([*heads.parameters(), *out.parameters()], lr=5e-3)
    for _ in range(40):
        loss = functional.cross_entropy(out(torch.cat([head(x, edges) for head in heads], dim=1)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
