"""Calls `backward(retain_graph=True)` for each of four losses: each call goes through the shared layers again."""

import sys

import torch
from torch import nn

EXPECTED = r"retain_graph|sum.*(loss|backward)|backward.*(once|sum)"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 128))
    heads = nn.ModuleList(nn.Linear(128, 4) for _ in range(4))
    optimizer = torch.optim.AdamW([*trunk.parameters(), *heads.parameters()], lr=1e-3)
    for _ in range(30):
        features = trunk(torch.randn(256, 128))
        losses = [nn.functional.cross_entropy(head(features), torch.randint(0, 4, (256,))) for head in heads]
        optimizer.zero_grad()
        if MENDED:
            sum(losses).backward()
        else:
            for loss in losses:
                loss.backward(retain_graph=True)  # planted
        optimizer.step()
    print(f"last loss {sum(losses).item():.3f}")


main()
