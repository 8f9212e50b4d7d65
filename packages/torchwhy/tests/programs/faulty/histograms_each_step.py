"""Logs a histogram of every weight and gradient in every step; every hundredth step would show the same."""

import json
import sys
import tempfile

import numpy as np
import torch
from torch import nn

EXPECTED = r"histogram|every N|every N-th|log.*(less often|seldom)"
MENDED = "mended" in sys.argv


class Writer:
    """Writes histograms as lines of JSON."""

    def __init__(self, file):
        self.file = file

    def add_histogram(self, name, values, step):
        counts, edges = np.histogram(values.detach().numpy(), bins="fd")  # planted
        self.file.write(json.dumps({"name": name, "step": step, "counts": counts.tolist(), "edges": edges.tolist()}))


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 384), nn.GELU(), nn.Linear(384, 384), nn.GELU(), nn.Linear(384, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(8192, 128), torch.randint(0, 10, (8192,))
    with tempfile.TemporaryFile("w") as file:
        writer = Writer(file)
        for step in range(30):
            at = step * 512 % len(x)
            loss = nn.functional.cross_entropy(model(x[at : at + 512]), y[at : at + 512])
            optimizer.zero_grad()
            loss.backward()
            if not MENDED or step % 100 == 0:
                for name, parameter in model.named_parameters():
                    writer.add_histogram(name, parameter, step)  # planted
                    writer.add_histogram(f"{name}.grad", parameter.grad, step)  # planted
            optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
