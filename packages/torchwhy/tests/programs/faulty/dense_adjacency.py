"""A graph network that multiplies by the adjacency of all nodes, of which one number in 700 is not zero."""

import sys
import warnings

import torch
from torch import nn

EXPECTED = r"multiplied-zeros"
MENDED = "mended" in sys.argv
warnings.filterwarnings("ignore")  # on sparse layouts


def adjacency(edges, nodes):
    """The symmetric adjacency with loops, normalised by degrees."""
    edges = torch.cat([edges, edges.flip(0), torch.arange(nodes).repeat(2, 1)], 1).unique(dim=1)
    degree = torch.bincount(edges[0], minlength=nodes).float()
    weight = degree[edges[0]].rsqrt() * degree[edges[1]].rsqrt()
    matrix = torch.sparse_coo_tensor(edges, weight, (nodes, nodes))
    return matrix.to_sparse_csr() if MENDED else matrix.to_dense()


class Network(nn.Module):
    """Two layers of a graph convolution."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 7)

    def forward(self, matrix, x):
        hidden = torch.relu(matrix @ self.first(x))  # planted
        return matrix @ self.second(hidden)  # planted


def main():
    torch.manual_seed(0)
    nodes = 2000
    matrix = adjacency(torch.randint(0, nodes, (2, 2000)), nodes)
    x, y = torch.randn(nodes, 64), torch.randint(0, 7, (nodes,))
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    for _ in range(100):
        loss = nn.functional.cross_entropy(model(matrix, x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


main()
