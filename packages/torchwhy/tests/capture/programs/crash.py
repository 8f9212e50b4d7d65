"""Fails in the third step."""

import torch

model = torch.nn.Linear(4, 4)
for number in range(1, 10):
    model(torch.randn(2, 4))
    if number == 3:
        raise ValueError("the third step is wrong")
