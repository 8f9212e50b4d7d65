"""Normalisation: to a peak, or to a loudness."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from torchfx import loudness
from torchfx.core.processor import Processor
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, choice, level, number, sample_rate
from torchfx.plan import State
from torchfx.tensors import is_readable

__all__ = ["Normalize"]

R128 = -23.0  # LUFS, the target level of EBU R 128


class Normalize(Processor):
    """Scale a recording so that its largest sample, over all channels, has the magnitude `peak`, or to a loudness.

    One factor serves all channels, so the stereo image stays; in a batch (..., channels, time) each item has its own.
    Silence stays silence. A NaN or an infinity is an error.

    With method="lufs" the integrated loudness (ITU-R BS.1770-5, see `torchfx.loudness.integrated`) becomes `lufs`; by
    default -23 LUFS, as EBU R 128 asks for. The signal lasts at least 0.4 s then, and its peaks may exceed 1.

    Examples:
        >>> import torch
        >>> Normalize(peak=0.5)(torch.tensor([[1.0, -4.0], [0.0, 2.0]]))
        tensor([[ 0.1250, -0.5000], [ 0.0000, 0.2500]])
        >>> Normalize("-6dB")
        Normalize(peak=-6 dB)
        >>> import torchfx as fx
        >>> y = fx.Wave(torch.randn(2, 48_000), 48_000) | Normalize(method="lufs", lufs=-14)
        >>> print(f"{fx.loudness.integrated(y):.2f} LUFS")
        -14.00 LUFS
    """

    peak: Value | str = level(default=1.0, low=0.0, open_low=True, doc="magnitude of the largest sample afterwards")
    method: Literal["peak", "lufs"] = choice(("peak", "lufs"), default="peak", draws=("peak",), doc="what is measured")
    lufs: Value | None = number(default=None, low=-70.0, high=0.0, unit="LUFS", doc='loudness for method="lufs"')
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise where a loudness is given for another method."""
        if self.lufs is not None and self.method != "lufs":
            raise ArgumentError(f'lufs needs method="lufs", got method={self.method!r}')

    def rate_for(self, rate: float | None) -> float | None:
        """Return the rate (Hz) to work at; a peak needs none."""
        return super().rate_for(rate) if self.method == "lufs" else rate

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return what was heard so far: nothing.

        That is the largest magnitude, zeros (..., 1), one for all channels; for a loudness the state of the weighting
        filter, the rest of a step, and the power of each step before.
        """
        if self.method == "lufs":
            powers = torch.zeros(*shape[:-1], 0, dtype=torch.float64, device=device)
            return (*loudness.rest(shape or (1,), dtype, device), powers)
        return (torch.zeros((*shape[:-1], 1) if shape else (1,), dtype=dtype, device=device),)

    def measure(self, x: Tensor, state: State, rate: Any) -> State:
        """Return what was heard so far, with a block more."""
        if x.shape[-1] == 0:
            return state
        if self.method == "lufs":
            x = x if x.dim() > 1 else x[None]
            weights = loudness.checked_weights(x.shape[-2])
            powers, after = loudness.step_powers(x, rate, weights, state[:-1])
            return (*after, torch.cat([state[-1], powers], dim=-1))
        over = (-2, -1) if x.dim() > 1 else (-1,)
        loudest = torch.maximum(x.amax(over, keepdim=True), -x.amin(over, keepdim=True))
        loudest = torch.maximum(state[0], loudest.reshape(state[0].shape))
        if is_readable(loudest) and not bool(torch.isfinite(loudest).all()):
            count = int((~torch.isfinite(x)).sum())
            raise ArgumentError(f"x must be finite to be normalised, got {count} NaN or infinite samples")
        return (loudest,)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Scale by what was measured."""
        if self.method == "lufs":
            measured = 10 ** (loudness.gated_loudness(state[-1])[..., None] / 20)
            wanted = 10 ** (torch.as_tensor(R128 if self.lufs is None else self.lufs) / 20)
        else:
            measured, wanted = state[0].double(), torch.as_tensor(self.peak)
        measured = torch.where(measured > 0, measured, 1.0)
        wanted = wanted.to(measured).expand_as(measured)
        factor = wanted / measured
        shape = (*measured.shape[:-1], 1, 1) if x.dim() > 1 else (1,)
        if is_readable(factor):
            for dtype in (x.dtype, torch.float64):  # of very quiet or loud samples float32 does not hold the factor
                limits = torch.finfo(dtype)
                if bool(((factor > limits.tiny) & (factor < limits.max)).all()):
                    return (x.to(dtype) * factor.to(dtype).reshape(shape)).to(x.dtype), state
        return (x.double() / measured.reshape(shape) * wanted.reshape(shape)).to(x.dtype), state
