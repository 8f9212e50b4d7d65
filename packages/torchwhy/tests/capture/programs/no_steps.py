"""Nothing repeats: plain tensor arithmetic."""

import torch

torch.set_num_threads(1)
x = torch.randn(100, 100)
print(round(float((x @ x).sum() * 0), 1))
