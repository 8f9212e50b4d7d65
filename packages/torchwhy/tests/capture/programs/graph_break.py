"""A compiled function with a graph break, called in a loop."""

import torch

torch.set_num_threads(1)


@torch.compile(backend="aot_eager")
def step(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


x = torch.randn(64)
for _ in range(9):
    step(x)
print(len(torch._dynamo.utils.counters["graph_break"]), "graph break")
