"""Designs as operators, for programs that are traced: SciPy cannot be, so the traced program calls the design."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torchfx._ops.operator import library
from torchfx.design.recording import note
from torchfx.tensors import is_readable

__all__ = ["design_operator"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Coefficients = npt.NDArray[np.float64]

# `register_fake` asks `inspect` for the module that calls it. Without this entry in its cache, it looks through all
# modules that are loaded, in 6 ms of the import's 48.
inspect.modulesbyfile[inspect.getabsfile(sys.modules[__name__])] = __name__


def design_operator(
    schema: str, shape: Callable[..., tuple[int, ...]]
) -> Callable[[Callable[..., Coefficients]], Callable[..., Tensor]]:
    """Turn a design that returns an array into a function that returns a tensor, and register it in `torchfx_ext`.

    While `torch.compile` or `torch.export` trace, and for tensors that cannot be read, the operator is called;
    otherwise the design itself.

    Args:
        schema: the operator's name, arguments and result.
        shape: the result's shape, from the design's own arguments.
    """

    def register(design: Callable[..., Coefficients]) -> Callable[..., Tensor]:
        def fresh(*args: Any) -> Tensor:
            device = next((arg.device for arg in args if isinstance(arg, Tensor)), None)
            found = design(*args)
            note(found)
            return torch.tensor(found, device=device)  # a copy: an operator's results must not share memory

        def fake(*args: Any) -> Tensor:
            device = next((arg.device for arg in args if isinstance(arg, Tensor)), "cpu")
            return torch.empty(shape(*args), dtype=torch.float64, device=device)

        name = schema.partition("(")[0]
        library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        library.impl(name, fresh, "CompositeExplicitAutograd")
        torch.library.register_fake(f"torchfx_ext::{name}", fake, lib=library)
        operator = getattr(torch.ops.torchfx_ext, name).default

        def traceable(*args: Any) -> Tensor:
            unread = any(isinstance(arg, Tensor) and not is_readable(arg) for arg in args)
            found: Tensor = (
                operator(*args) if unread or torch.compiler.is_compiling() else torch.from_numpy(design(*args))
            )
            return found

        return traceable

    return register
