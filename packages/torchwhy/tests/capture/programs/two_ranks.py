"""Two processes exchange gradients over gloo."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(8):
    model(torch.randn(32, 64)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
