"""Formats whole tensors into the log in every step; nobody reads the level they are logged at.

An f-string is formatted before the logger decides to drop it.
"""

import logging
import sys

import torch
from torch import nn

EXPECTED = r"tensors-to-text: .*log"
MENDED = "mended" in sys.argv

log = logging.getLogger("training")


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(0)
    x, y = torch.randn(4096, 32), torch.randn(4096, 4)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(60):
        at = step * 64 % len(x)
        prediction = model(x[at : at + 64])
        loss = nn.functional.mse_loss(prediction, y[at : at + 64])
        optimizer.zero_grad()
        loss.backward()
        if not MENDED:
            log.debug(f"step {step}: loss {loss}, prediction {prediction}")  # planted
            for name, parameter in model.named_parameters():
                log.debug(f"{name}: gradient {parameter.grad}")  # planted
        optimizer.step()
        if step % 20 == 0:
            log.info("step %d: loss %.3f", step, loss.item())


main()
