"""Finite impulse responses: given taps, or designed by the window method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchfx import _ops
from torchfx.design import fir_taps
from torchfx.design.firwin import Window, check_band_edges, check_pass_zero, check_taps, check_window
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.filter.filter import Filter, check_tensor
from torchfx.lti import LTI
from torchfx.rate import ambient_rate

__all__ = ["FIR", "DesignableFIR"]


class Identity:
    """A tensor as a part of a key: equal to itself alone, and kept, so that no other can come to lie in its place."""

    def __init__(self, tensor: Tensor) -> None:
        """Keep the tensor."""
        self.tensor = tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.tensor is other.tensor

    def __hash__(self) -> int:
        return id(self.tensor)


class FiniteResponse(Filter):
    """A filter that is nothing but its taps, run in float64 arithmetic."""

    @abstractmethod
    def _design(self, rate: float | None) -> Tensor:
        """Return the taps for a signal of this rate (Hz; None where it is not known): float64, (n,)."""

    def _taps(self) -> Tensor:
        """Return the taps at the filter's own rate or the ambient one."""
        own = self.fs is not None and torch.compiler.is_dynamo_compiling()
        return self._design(self.fs if own else ambient_rate())

    @property
    def b(self) -> Tensor:
        """The taps, float64, (n,)."""
        return self._taps().to(self._device or "cpu").clone()

    @property
    def a(self) -> Tensor:
        """The denominator of a filter that has none: float64, (1,), equal to 1."""
        return torch.ones(1, dtype=torch.float64, device=self._device or "cpu")

    def lti(self, rate: float | None) -> LTI:
        """Return the filter as taps, at its own rate (Hz) or the signal's."""
        return LTI(taps=self._design(rate))

    def forward(self, x: Tensor) -> Tensor:
        """Filter a signal (..., time), float32 or float64, from rest; the output is as long as the input."""
        check_tensor(x)
        return _ops.fir_forward(x, self._taps().to(self._device or x.device))[0]


class FIR(FiniteResponse):
    """A finite impulse response with given taps.

    Args:
        b: the taps, a sequence, array or tensor (n,) of finite real numbers. A tensor that requires a gradient is
            learned: a leaf becomes a parameter, and what a network computed stays part of it. Everything else is kept
            as float64 and is part of the state dict.

    Raises:
        ArgumentError: no taps, more than one dimension, or a tap that is NaN or infinite.

    Examples:
        >>> import torch
        >>> FIR([0.5, 0.5])(torch.tensor([1.0, 0.0, 2.0]))
        tensor([0.5000, 0.5000, 1.0000])
    """

    taps: Tensor

    def __init__(self, b: Sequence[float] | np.ndarray[Any, Any] | Tensor) -> None:
        """Check and keep the taps."""
        super().__init__()
        if isinstance(b, Tensor) and b.requires_grad and not b.is_complex():
            self.taps = torch.nn.Parameter(b) if b.is_leaf and not isinstance(b, torch.nn.Parameter) else b
        else:
            self.register_buffer("taps", _as_float64(b))
        if self.taps.ndim != 1 or self.taps.numel() == 0:
            raise ArgumentError(f"b must have the shape (n >= 1,), got {tuple(self.taps.shape)}")
        if not bool(torch.isfinite(self.taps).all()):
            raise ArgumentError("b must hold finite numbers, got NaN or infinity")

    def _taps(self) -> Tensor:
        return self._design(None)  # given taps serve any rate; the compiler could not ask for it

    def _design(self, rate: float | None) -> Tensor:
        return self.taps.double()

    def lti_key(self) -> Hashable | None:
        """Return the identity and version of the taps; learnable ones are asked for every time."""
        taps = self.taps
        if taps.requires_grad or taps.is_inference():  # the latter do not count their changes
            return None
        return (Identity(taps), taps._version, self._device)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        exact = None if self.taps.requires_grad else self.taps
        super()._apply(fn, recurse)
        if exact is not None and self.taps.dtype != torch.float64:
            self.taps = exact.to(self.taps.device)
        return self

    def extra_repr(self) -> str:
        """Return the number of taps as text."""
        return f"{self.taps.numel()} taps"


class DesignableFIR(FiniteResponse):
    """A linear-phase FIR filter designed by the window method; its delay is (num_taps - 1) / 2 samples.

    Equals `scipy.signal.firwin(num_taps, cutoff, window=window, pass_zero=pass_zero, fs=fs)`.

    Args:
        cutoff: -6 dB frequency in Hz, in (0, fs/2); several, ascending, for bands.
        num_taps: >= 1; odd when the response at fs/2 must pass.
        fs: sample rate in Hz, or None to follow the wave's.
        window: a name or (name, parameter) that `scipy.signal.get_window` knows.
        pass_zero: True passes 0 Hz (lowpass, bandstop), False stops it (highpass, bandpass).

    Raises:
        ArgumentError: a parameter out of range (with fs unknown, the cutoff's upper bound is checked at the call).

    Examples:
        >>> DesignableFIR(cutoff=1000, num_taps=101, fs=44_100).b.shape
        torch.Size([101])
    """

    def __init__(
        self,
        cutoff: float | Sequence[float],
        num_taps: int,
        fs: float | None = None,
        window: Window = "hamming",
        pass_zero: bool = True,
    ) -> None:
        """Check and keep the parameters; the design happens when the rate is known."""
        super().__init__(fs)
        edges = check_band_edges(cutoff, self.fs)
        self.pass_zero = check_pass_zero(pass_zero)
        self.num_taps = check_taps(num_taps, edges, pass_zero)
        self.cutoff = cutoff if isinstance(cutoff, (int, float)) else edges
        check_window(window)
        self.window = window
        # A window that SciPy does not know shows here, not in the first call; it doesn't depend on the rate.
        fir_taps(edges, self.num_taps, self.fs or 4 * edges[-1], window, pass_zero)

    def _design(self, rate: float | None) -> Tensor:
        return fir_taps(self.cutoff, self.num_taps, self._rate_for(rate), self.window, self.pass_zero)

    def lti_key(self) -> Hashable:
        """Return what the design depends on."""
        return (self.cutoff, self.num_taps, self.fs, self.window, self.pass_zero, self._device)

    def extra_repr(self) -> str:
        """Return the parameters as text."""
        cutoff = f"{self.cutoff:g}" if isinstance(self.cutoff, (int, float)) else list(self.cutoff)
        parts = [f"cutoff={cutoff}", f"num_taps={self.num_taps}"]
        parts += [f"fs={self.fs:g}"] if self.fs else []
        parts += [f"window={self.window!r}"] if self.window != "hamming" else []
        parts += [] if self.pass_zero else ["pass_zero=False"]
        return ", ".join(parts)


def _as_float64(values: Sequence[float] | np.ndarray[Any, Any] | Tensor) -> Tensor:
    if isinstance(values, Tensor):
        if values.is_complex():
            raise ArgumentTypeError(f"b must be real, got {values.dtype}")
        return values.detach().to(torch.float64, copy=True)
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ArgumentError(f"b must have the shape (n >= 1,): {error}") from error
    if array.dtype.kind not in "fiub":
        raise ArgumentTypeError(f"b must hold real numbers, got {array.dtype}")
    return torch.tensor(array, dtype=torch.float64)
