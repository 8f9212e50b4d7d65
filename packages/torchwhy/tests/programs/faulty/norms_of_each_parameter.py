"""Logs the norm of each of 150 parameters and gradients in each step, one `.item()` for each."""

import sys

import torch
from torch import nn

EXPECTED = r"norms?\b.*(stack|foreach|once|at once|every|fewer|less often)|_foreach_norm|get_total_norm"
MENDED = "mended" in sys.argv


def norms(model):
    if MENDED:
        return torch.stack(torch._foreach_norm([p.grad for p in model.parameters()])).tolist()
    log = {}
    for name, parameter in model.named_parameters():
        log[f"weight/{name}"] = parameter.norm().item()  # planted
        log[f"gradient/{name}"] = parameter.grad.norm().item()  # planted
    return log


def main():
    torch.manual_seed(0)
    layers = [layer for _ in range(38) for layer in (nn.LayerNorm(48), nn.Linear(48, 48), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(48, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(100):
        x, y = torch.randn(16, 48), torch.randint(0, 3, (16,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if not MENDED or step % 20 == 0:
            norms(model)
        optimizer.step()
    print(f"last loss {loss.item():.3f}")


main()
