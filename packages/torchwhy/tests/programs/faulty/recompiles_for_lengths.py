"""Compiles a model for fixed shapes and calls it with texts of every length: it is compiled again for each."""

import sys

import torch
from torch import nn

EXPECTED = r"recompil|dynamic=True|mark_dynamic|compiled? again|pad"
MENDED = "mended" in sys.argv


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(500, 64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 500))
    torch._dynamo.config.recompile_limit = 64
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(10):
        length = 40 + 3 * step
        words = torch.randint(1, 500, (16, length + 1))
        inputs, targets = words[:, :-1], words[:, 1:]
        if MENDED:
            inputs, targets = (nn.functional.pad(x, (0, 128 - length)) for x in (inputs, targets))
        loss = nn.functional.cross_entropy(compiled(inputs).flatten(0, 1), targets.flatten(), ignore_index=0)  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
