"""Reads the whole file of a shard for each sample that it takes from it; a memory map reads only the sample."""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECTED = r"mmap|memory.map|__getitem__|whole file|num_workers"
MENDED = "mended" in sys.argv


class Shards(Dataset):
    """Samples in files of 4000."""

    def __init__(self, folder, shards):
        self.paths = [Path(folder) / f"{i}.npy" for i in range(shards)]
        for path in self.paths:
            np.save(path, np.random.default_rng(0).standard_normal((4000, 256), dtype=np.float32))

    def __len__(self):
        return 4000 * len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index // 4000]
        shard = np.load(path, mmap_mode="r") if MENDED else np.load(path)  # planted
        return torch.from_numpy(shard[index % 4000].copy())


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        loader = DataLoader(Shards(folder, 2), batch_size=64, shuffle=True)
        model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for step, x in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step == 24:
                break
    print(f"last loss {loss.item():.3f}")


main()
