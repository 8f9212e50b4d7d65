"""Sends every token through every expert, though two of eight count."""

import sys

import torch
from torch import nn

EXPECTED = r"all-experts: .*"
MENDED = "mended" in sys.argv


class Experts(nn.Module):
    def __init__(self, width, hidden, count, chosen):
        super().__init__()
        self.router, self.chosen = nn.Linear(width, count), chosen
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)) for _ in range(count)
        )

    def forward(self, tokens):
        scores, index = self.router(tokens).softmax(-1).topk(self.chosen)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            if MENDED:
                rows, place = torch.where(index == number)
                out = out.index_add(0, rows, expert(tokens[rows]) * scores[rows, place, None])
            else:
                weight = (scores * (index == number)).sum(-1, keepdim=True)
                out = out + weight * expert(tokens)  # planted
        return out


def main():
    torch.manual_seed(0)
    model = nn.ModuleList(Experts(128, 256, 8, 2) for _ in range(2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(14):
        tokens = torch.randn(256, 128)
        for layer in model:
            tokens = tokens + layer(tokens)
        loss = tokens.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
