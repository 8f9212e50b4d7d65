"""Applies a linear layer to the rows of 40,000 edges, gathered from 2,000 nodes: each node is multiplied 20 times."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

EXPECTED = r"Multiply first, then gather"
MENDED = "mended" in sys.argv
NODES, EDGES = 2000, 40_000


class Layer(nn.Module):
    """Each node takes the sum of what its neighbours send."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.send, self.keep = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)

    def forward(self, nodes, source, target):
        sent = self.send(nodes)[source] if MENDED else self.send(nodes[source])  # planted
        received = torch.zeros(len(nodes), sent.shape[1]).index_add(0, target, sent)
        return self.keep(nodes) + received / 20


def main():
    torch.manual_seed(0)
    first, second = Layer(128, 64), Layer(64, 8)
    source, target = torch.randint(0, NODES, (2, EDGES))
    nodes, kinds = torch.randn(NODES, 128), torch.randint(0, 8, (NODES,))
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
    for _ in range(40):
        scores = second(F.relu(first(nodes, source, target)), source, target)
        loss = F.cross_entropy(scores, kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


main()
