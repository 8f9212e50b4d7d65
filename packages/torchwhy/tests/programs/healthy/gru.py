"""Trains a two-layer nn.GRU on sequences; the loop over time is PyTorch's own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    """The last state of a GRU decides."""

    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(32, 256, num_layers=2, batch_first=True), nn.Linear(256, 6)

    def forward(self, x):
        _, state = self.gru(x)
        return self.head(state[-1])


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(640, 40, 32), torch.randint(0, 6, (640,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
