"""`torchfx_ext::sos_forward` and `sos_backward` under `torch.func.vmap`: the batch joins the channels where it can."""

from __future__ import annotations

from typing import Any

import torch

from torchfx._ops.batching import one_by_one, with_batch
from torchfx._ops.library import library
from torchfx._ops.sos import autograd  # noqa: F401  (defines the operators)


def _forward(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    operator, size = torch.ops.torchfx_ext.sos_forward.default, info.batch_size
    if in_dims[1] is not None:
        return one_by_one(operator, size, in_dims, args)
    x, sos, state, *rest = args if len(args) > 2 else (*args, None)
    if state is not None:
        state = with_batch(state, in_dims[2], size, at=1)
    return operator(with_batch(x, in_dims[0], size), sos, state, *rest), (0, 1)


def _backward(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return one_by_one(torch.ops.torchfx_ext.sos_backward.default, info.batch_size, in_dims, args)


torch.library.register_vmap("torchfx_ext::sos_forward", _forward, lib=library)
torch.library.register_vmap("torchfx_ext::sos_backward", _backward, lib=library)
