"""Leaves with status 7 after ten steps."""

import sys

import torch

model = torch.nn.Linear(4, 4)
for _ in range(10):
    model(torch.randn(2, 4))
sys.exit(7)
