"""A data set that fails in the main process, below everything that was hooked."""

import torch
from torch.utils.data import DataLoader, Dataset


class Broken(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise RuntimeError("no such sample")


for batch in DataLoader(Broken()):
    print(torch.sum(batch))
