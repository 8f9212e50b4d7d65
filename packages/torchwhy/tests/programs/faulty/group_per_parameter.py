"""Trains a deep residual network with an optimizer that has a group for each parameter."""

import sys

import torch
from torch import nn

EXPECTED = r"parameter-groups"
MENDED = "mended" in sys.argv


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.second(self.first(self.norm(x)).relu())


def groups(model):
    if MENDED:
        decayed = [p for p in model.parameters() if p.ndim > 1]
        rest = [p for p in model.parameters() if p.ndim <= 1]
        return [{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    found = []
    for name, parameter in model.named_parameters():
        decay = 0.0 if "norm" in name or name.endswith("bias") else 0.1
        found.append({"params": [parameter], "weight_decay": decay})  # planted
    return found


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), *[Residual(32) for _ in range(24)], nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(groups(model), lr=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    x, y = torch.randn(4096, 16), torch.randn(4096, 1)
    for _ in range(200):
        index = torch.randint(0, len(x), (32,))
        loss = nn.functional.mse_loss(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # planted
        scheduler.step()
    print(float(loss))


if __name__ == "__main__":
    main()
