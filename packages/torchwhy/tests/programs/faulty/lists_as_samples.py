"""Its samples are lists of 400 numbers: the default collate function makes 400 tensors of them, one for each place."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECTED = r"collate|__getitem__|num_workers|lists?\b"
MENDED = "mended" in sys.argv


class Series(Dataset):
    """Time series of 400 values."""

    def __init__(self, count):
        self.rows = np.random.default_rng(0).standard_normal((count, 400), dtype=np.float32)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        if MENDED:
            return torch.from_numpy(self.rows[index])
        return self.rows[index].tolist()  # planted


def main():
    torch.manual_seed(0)
    loader = DataLoader(Series(3200), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(400, 512), nn.ReLU(), nn.Linear(512, 400))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for batch in loader:  # planted
        x = batch if MENDED else torch.stack(batch, 1).float()  # planted
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
