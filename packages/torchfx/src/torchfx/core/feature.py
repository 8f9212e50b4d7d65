"""Base class of processors that compute or take features, such as spectra over time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from torchfx.core.processor import Processor
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError
from torchfx.plan import NEEDS_WHOLE, Running, State

__all__ = ["Feature"]


class Feature(Processor):
    """A processor that takes samples (..., time) or features (..., bins, frames), and returns one of both.

    A subclass declares parameters as every processor does, sets what it `takes` and `gives`, and implements

    - `features(x, rate)`: the result for a whole signal;
    - `init_state`, `step` and `finish` for streams, or `refusal()` with the reason why streams are not supported. If
      each frame depends on one frame only (`is_pointwise`), streams need nothing more.

    `chain | feature | another` combines them; a processor that takes samples cannot follow features.
    """

    takes: ClassVar[str] = "samples"
    gives: ClassVar[str] = "features"
    is_pointwise: ClassVar[bool] = False
    """Whether each frame of the result depends on one frame alone."""
    takes_complex: ClassVar[bool] = False
    """Whether the features that come in may be complex."""

    @property
    def latency_frames(self) -> int:
        """The number of further input frames that a stream needs before it returns a frame."""
        return 0

    @property
    def required_rate(self) -> float | None:
        """The only sample rate (Hz) that the processor accepts; None: any."""
        return None

    @abstractmethod
    def features(self, x: Tensor, rate: float | None) -> Tensor:
        """Return the result for a whole signal, samples or features.

        Args:
            x: float32 or float64, or complex features.
            rate: sample rate, Hz; None if it is unknown and the class declares no `fs`.
        """

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream, as the end of a sentence; "" if it can."""
        return "" if self.is_pointwise else NEEDS_WHOLE

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state before the first sample or frame."""
        return ()

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Return the frames that a block completes, and the state for the next one."""
        if not self.is_pointwise:
            raise StreamError(f"{self._get_name()} {self.refusal()}")
        return (self.features(x, rate) if x.shape[-1] else x.new_zeros(*self.output_shape(x.shape[:-1]), 0)), state

    def running(self, state: State, rate: Any) -> Running | None:
        """Return what processes one block after the other faster than `step`, and keeps the state; None: nothing."""
        return None

    def finish(self, state: State, rate: Any) -> Tensor | None:
        """Return the frames that extend beyond the signal's end; None if no frame can."""
        return None

    def __ror__(self, other: object) -> Any:
        """Put a plain `nn.Module` in front, or process the tensor that `wave | feature` returned."""
        return self(other) if isinstance(other, Tensor) else super().__ror__(other)

    def checked(self, x: Any) -> Tensor:
        """Return the checked input, or raise."""
        if self.takes == "samples":
            return super().checked(x)
        if not isinstance(x, Tensor):
            raise ArgumentTypeError(f"x must be a tensor (..., bins, frames), got {type(x).__name__}")
        if x.dtype in {torch.float16, torch.bfloat16} and x.dtype is self._half:
            x = x.float()
        if x.is_complex() != self.takes_complex:
            raise ArgumentTypeError(f"x must be {'complex' if self.takes_complex else 'real'}, got {x.dtype}")
        if not (x.is_complex() or x.dtype in {torch.float32, torch.float64}):
            raise ArgumentTypeError(f"x must be float32 or float64, got {x.dtype}")
        if x.dim() < 2 or 0 in x.shape[-2:]:
            raise ArgumentError(f"x must have the shape (..., bins >= 1, frames >= 1), got {tuple(x.shape)}")
        checked: Tensor = x
        return checked
