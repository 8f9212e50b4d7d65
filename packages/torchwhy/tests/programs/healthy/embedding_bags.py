"""Trains a recommender: sparse gradients for embedding bags of 100,000 rows, dense ones for the rest."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    users, items = (nn.EmbeddingBag(100_000, 64, sparse=True) for _ in range(2))
    top = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    of_bags = torch.optim.SparseAdam([*users.parameters(), *items.parameters()], lr=1e-2)
    of_top = torch.optim.AdamW(top.parameters(), lr=1e-3)
    seen, offered = torch.randint(0, 100_000, (2, 8, 1024, 8))
    clicks = torch.rand(8, 1024).round()
    for step in range(30):
        both = torch.cat([users(seen[step % 8]), items(offered[step % 8])], 1)
        loss = nn.functional.binary_cross_entropy_with_logits(top(both)[:, 0], clicks[step % 8])
        of_bags.zero_grad()
        of_top.zero_grad()
        loss.backward()
        of_bags.step()
        of_top.step()
    print(f"last loss {loss.item():.3f}")


main()
