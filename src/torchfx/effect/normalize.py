"""Peak normalisation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx.core.processor import Processor
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, level
from torchfx.plan import State
from torchfx.tensors import is_readable

__all__ = ["Normalize"]


class Normalize(Processor):
    """Scale a recording so that its largest sample, over all channels, has the magnitude `peak`.

    One factor serves all channels, so the stereo image stays; in a batch (..., channels, time) each item has its own.
    Silence stays silence. A NaN or an infinity is an error.

    Examples:
        >>> import torch
        >>> Normalize(peak=0.5)(torch.tensor([[1.0, -4.0], [0.0, 2.0]]))
        tensor([[ 0.1250, -0.5000], [ 0.0000, 0.2500]])
        >>> Normalize("-6dB")
        Normalize(peak=-6 dB)
    """

    peak: Value | str = level(default=1.0, low=0.0, open_low=True, doc="magnitude of the largest sample afterwards")

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the largest magnitude heard so far: zeros (..., 1), one for all channels."""
        return (torch.zeros((*shape[:-1], 1) if shape else (1,), dtype=dtype, device=device),)

    def measure(self, x: Tensor, state: State, rate: Any) -> State:
        """Return the largest magnitude heard so far."""
        if x.shape[-1] == 0:
            return state
        over = (-2, -1) if x.dim() > 1 else (-1,)
        loudest = torch.maximum(x.amax(over, keepdim=True), -x.amin(over, keepdim=True))
        loudest = torch.maximum(state[0], loudest.reshape(state[0].shape))
        if is_readable(loudest) and not bool(torch.isfinite(loudest).all()):
            count = int((~torch.isfinite(x)).sum())
            raise ArgumentError(f"x must be finite to be normalised, got {count} NaN or infinite samples")
        return (loudest,)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Scale by what was measured."""
        loudest = torch.where(state[0] > 0, state[0].double(), 1.0)
        peak = torch.as_tensor(self.peak).to(loudest).expand_as(loudest)
        factor = peak / loudest
        shape = (*loudest.shape[:-1], 1, 1) if x.dim() > 1 else (1,)
        if is_readable(factor):
            for dtype in (x.dtype, torch.float64):  # of very quiet or loud samples float32 does not hold the factor
                limits = torch.finfo(dtype)
                if bool(((factor > limits.tiny) & (factor < limits.max)).all()):
                    return (x.to(dtype) * factor.to(dtype).reshape(shape)).to(x.dtype), state
        return (x.double() / loudest.reshape(shape) * peak.reshape(shape)).to(x.dtype), state
