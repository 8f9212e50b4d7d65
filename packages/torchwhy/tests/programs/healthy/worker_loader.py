"""Loads with one persistent worker that is faster than the training is."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    """Signals made when asked for."""

    def __len__(self):
        return 1024

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(1, 1024, generator=generator), index % 5


def main():
    torch.manual_seed(0)
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))  # a core for the worker
    loader = DataLoader(Noise(), batch_size=64, shuffle=True, num_workers=1, persistent_workers=True)
    model = nn.Sequential(
        nn.Conv1d(1, 48, 9, padding=4),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(48, 192, 9, padding=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(192, 5),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
