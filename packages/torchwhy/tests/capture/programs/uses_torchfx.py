"""Relies on `import torchfx` registering its operators, and on a fork that ends by itself."""

import os

import torch

import torchfx
import torchfx.profiler

print(torch.ops.torchfx_ext.sos_forward.default.name(), torchfx.profiler.__name__, torchfx.filter.__name__)
for _ in range(3):
    torch.nn.Identity()(torch.ones(1))
child = os.fork()
if child == 0:
    raise SystemExit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
