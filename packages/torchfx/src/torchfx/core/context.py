"""Wrappers for foreign modules in streams: `Memoryless` and `WithContext` declare which samples a module needs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from torchfx.checks import whole_number
from torchfx.core.processor import Processor
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.plan import State

__all__ = ["Memoryless", "WithContext"]


class WithContext(Processor):
    """A module that needs samples before and after those it computes, such as a convolutional network.

    In a stream it gets each block with the surrounding samples; the output lags by `future_samples`. The signal is
    padded with silence at both ends.

    Args:
        module: maps (..., n) to (..., n), from which the context is removed, or to (..., n - past_samples -
            future_samples), like a convolution without padding.
        past_samples: number of preceding samples that an output depends on, >= 0.
        future_samples: number of following samples that an output depends on, >= 0.

    Examples:
        >>> import torch
        >>> smooth = torch.nn.Conv1d(1, 1, 5, bias=False)
        >>> WithContext(smooth, past_samples=2, future_samples=2)(torch.ones(1, 1, 100)).shape
        torch.Size([1, 1, 100])
    """

    def __init__(self, module: nn.Module, past_samples: int, future_samples: int = 0) -> None:
        """Check and keep the module and its context."""
        super().__init__()
        if not isinstance(module, nn.Module):
            raise ArgumentTypeError(f"module must be an nn.Module, got {module!r} ({type(module).__name__})")
        self.module = module
        self.past_samples = whole_number("past_samples", past_samples, 0)
        self.future_samples = whole_number("future_samples", future_samples, 0)

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return silence before the first block."""
        around = self.past_samples + self.future_samples
        return (torch.zeros(*shape, around, dtype=dtype, device=device),) if around else ()

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Run the module on a block and the surrounding samples."""
        time = x.shape[-1]
        if time == 0:
            return x, state
        heard = torch.cat([*state, x], dim=-1)
        y: Tensor = self.module(heard)
        if y.shape[-1] == heard.shape[-1]:
            y = y[..., self.past_samples : self.past_samples + time]
        elif y.shape[-1] != time:
            raise ArgumentError(
                f"module must return {heard.shape[-1]} or {time} samples for {heard.shape[-1]}, got {y.shape[-1]}"
            )
        return y, (heard[..., time:],) if state else ()

    def latency_samples(self, rate: Any) -> int:
        """Return `future_samples`."""
        return self.future_samples

    def extra_repr(self) -> str:
        """Return the context as text."""
        return f"past_samples={self.past_samples}, future_samples={self.future_samples}"


class Memoryless(WithContext):
    """A module whose output samples each depend only on the input sample at the same time.

    PyTorch's pointwise modules (`nn.Tanh`, `nn.ReLU` etc.) need no wrapper.

    Args:
        module: maps (..., n) to (..., n).

    Examples:
        >>> import torch
        >>> class Cubic(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x - x**3 / 3
        >>> Memoryless(Cubic())(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.6667])
    """

    def __init__(self, module: nn.Module) -> None:
        """Keep the module."""
        super().__init__(module, 0, 0)

    def extra_repr(self) -> str:
        """Return "", since the wrapped module has its own representation."""
        return ""
