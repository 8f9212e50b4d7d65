"""A step with a graph break, and the same without: see docs/tutorial/graph-breaks.md."""

import torch
from torch import Tensor


def broken(x: Tensor) -> Tensor:
    y = x.sin()
    if y.sum() > 0:
        y = y + 1
    return y.cos()


def whole(x: Tensor) -> Tensor:
    y = x.sin()
    return torch.where(y.sum() > 0, y + 1, y).cos()
