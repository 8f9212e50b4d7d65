"""Predicts clicks; each of 40 categorical columns has a small embedding, called in a loop."""

import sys

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

EXPECTED = r"tables-one-by-one"
MENDED = "mended" in sys.argv
COLUMNS, VALUES, WIDTH = 40, 100, 8


class Clicks(nn.Module):
    def __init__(self):
        super().__init__()
        if MENDED:
            self.table = nn.Embedding(COLUMNS * VALUES, WIDTH)
            self.register_buffer("offsets", torch.arange(COLUMNS) * VALUES)
        else:
            self.tables = nn.ModuleList(nn.Embedding(VALUES, WIDTH) for _ in range(COLUMNS))
        self.layers = nn.Sequential(nn.Linear(COLUMNS * WIDTH, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, codes):
        if MENDED:
            x = self.table(codes + self.offsets).flatten(1)
        else:
            x = torch.cat([table(codes[:, i]) for i, table in enumerate(self.tables)], 1)  # planted
        return self.layers(x).squeeze(1)


def main():
    torch.manual_seed(0)
    rows = TensorDataset(torch.randint(0, VALUES, (25600, COLUMNS)), (torch.rand(25600) < 0.2).float())
    sampler = BatchSampler(RandomSampler(rows), 256, drop_last=True)
    loader = DataLoader(rows, sampler=sampler, batch_size=None)
    model = Clicks()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        losses = []
        for codes, clicked in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(codes), clicked)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        print(f"epoch {epoch}: {torch.stack(losses).mean():.4f}")


main()
