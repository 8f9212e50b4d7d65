"""The operators of the cascade under `torch.func.vmap`: the batch joins the channels where it can."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from torchfx._ops.batching import one_by_one, with_batch
from torchfx._ops.library import library
from torchfx._ops.sos import autograd  # noqa: F401  (defines the operators)


def _forward(operator: Any, out_dims: tuple[int, ...], info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    size = info.batch_size
    if in_dims[1] is not None:
        return one_by_one(operator, size, in_dims, args)
    x, sos, state, *rest = args if len(args) > 2 else (*args, None)
    if state is not None:
        state = with_batch(state, in_dims[2], size, at=1)
    return operator(with_batch(x, in_dims[0], size), sos, state, *rest), out_dims


def _backward(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return one_by_one(torch.ops.torchfx_ext.sos_backward.default, info.batch_size, in_dims, args)


for name, out_dims in (("sos_forward", (0, 1)), ("sos_forward_recording", (0, 1, 0))):
    rule = partial(_forward, getattr(torch.ops.torchfx_ext, name).default, out_dims)
    torch.library.register_vmap(f"torchfx_ext::{name}", rule, lib=library)
torch.library.register_vmap("torchfx_ext::sos_backward", _backward, lib=library)
