"""The operator namespace `torchfx_ext` in PyTorch's dispatcher."""

from __future__ import annotations

import torch

__all__ = ["library"]

library = torch.library.Library("torchfx_ext", "DEF")
