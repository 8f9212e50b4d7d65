"""A compiled module that meets new shapes, and is compiled again for them."""

import torch
from torch import nn

torch.set_num_threads(1)
model = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)), backend="aot_eager", dynamic=False)
with torch.no_grad():
    for turn in range(10):
        model(torch.randn(2 + turn // 3, 4))
print(torch._dynamo.utils.counters["stats"]["unique_graphs"], "graphs")
