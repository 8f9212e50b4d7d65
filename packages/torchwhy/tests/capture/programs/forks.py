"""Uses the profiler's package itself, and forks a process that ends by itself."""

import os

import torch

import torchwhy

print(torchwhy.load.__name__, len(torchwhy.__all__) > 0)
for _ in range(3):
    torch.nn.Identity()(torch.ones(1))
child = os.fork()
if child == 0:
    raise SystemExit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
