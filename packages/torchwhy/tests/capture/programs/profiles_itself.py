"""Starts another profiler."""

import torch

model = torch.nn.Linear(4, 4)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
    for _ in range(10):
        model(torch.randn(2, 4))
print(sum(event.name == "aten::linear" for event in own.events()), "events of its own")
