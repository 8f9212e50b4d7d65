"""Trains a graph network; messages of 20,000 edges are summed with one operator."""

import torch
from torch import nn


class Layer(nn.Module):
    """Each node takes the sum of what its neighbours send."""

    def __init__(self, inputs, width):
        super().__init__()
        self.send, self.keep = nn.Linear(inputs, width), nn.Linear(inputs, width)

    def forward(self, nodes, source, target):
        sent = self.send(nodes).index_select(0, source)
        received = torch.zeros(len(nodes), sent.shape[1]).index_add(0, target, sent)
        return torch.relu(self.keep(nodes) + received)


def main():
    torch.manual_seed(0)
    nodes, labels = torch.randn(4000, 64), torch.randint(0, 7, (4000,))
    source, target = torch.randint(0, 4000, (2, 20_000))
    layers, head = nn.ModuleList([Layer(64, 128), Layer(128, 128)]), nn.Linear(128, 7)
    optimizer = torch.optim.AdamW([*layers.parameters(), *head.parameters()], lr=1e-3)
    for epoch in range(24):
        x = nodes
        for layer in layers:
            x = layer(x, source, target)
        loss = nn.functional.cross_entropy(head(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 8 == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}")


main()
