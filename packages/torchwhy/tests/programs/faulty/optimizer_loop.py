"""Updates 240 small parameters one by one: the optimizer was made with `foreach=False`."""

import sys

import torch
from torch import nn

EXPECTED = r"optimizer-for-loop: .*(fused=True|foreach)"
MENDED = "mended" in sys.argv


class Residual(nn.Module):
    """Normalise, project, add."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.project = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.project(self.norm(x)))


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*(Residual(32) for _ in range(60)), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False, fused=MENDED)  # planted
    x, y = torch.randn(2048, 32), torch.randn(2048, 1)
    for step in range(60):
        at = step * 32 % len(x)
        loss = nn.functional.mse_loss(model(x[at : at + 32]), y[at : at + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # planted
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


main()
