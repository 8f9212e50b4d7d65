"""Writes the whole history of the losses to a file at each step; a line for the last one would do."""

import json
import sys
import tempfile

import torch
from torch import nn

EXPECTED = r"become longer"
MENDED = "mended" in sys.argv


def train(file):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(500, 32), nn.Flatten(), nn.Linear(32 * 16, 64), nn.GELU(), nn.Linear(64, 500))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tokens = torch.randint(0, 500, (4096, 17))
    history = []
    for step in range(600):
        rows = tokens[step % 128 * 32 :][:32]
        loss = nn.functional.cross_entropy(model(rows[:, :16]), rows[:, 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append({"step": step, "loss": loss.item(), "epoch": step // 128})
        if MENDED:
            file.write(json.dumps(history[-1]) + "\n")
            continue
        file.seek(0)
        json.dump(history, file, indent=1)  # planted
    print(f"loss {loss.item():.3f}")


with tempfile.TemporaryFile("w+") as history_file:
    train(history_file)
