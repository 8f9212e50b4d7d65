"""Channel mixing: each output channel is a weighted sum of the input channels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx.core.processor import Processor
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, matrix, number
from torchfx.plan import State
from torchfx.tensors import broadcast_shapes, settings_on

__all__ = ["Balance", "ChannelMatrix", "ChannelMixing", "Mono", "Pan", "StereoWidth", "matrix_of", "per_example"]


class ChannelMixing(Processor):
    """Multiply the channels (..., inputs, time) of every sample by a matrix.

    A subclass implements `weights`. Parameters with one value per example have the shape (..., 1).
    """

    @abstractmethod
    def weights(self, channels: int) -> Tensor:
        """Return the matrix for a number of channels: float64, (..., outputs, inputs).

        If its number of inputs differs from the number of channels, the signal is rejected.
        """

    def _checked_weights(self, shape: tuple[int, ...]) -> Tensor:
        channels = shape[-1] if shape else 0
        found = self.weights(channels)
        if not shape or found.shape[-1] != channels:
            raise ArgumentError(
                f"x must have {found.shape[-1] or 'some'} channels, shape (..., channels, time), for "
                f"{self._get_name()}, got the leading dimensions {tuple(shape)}"
            )
        return found

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions for a signal with these."""
        return _mixed(shape, self._checked_weights(shape))

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Mix the channels, in float64."""
        found = settings_on(self._checked_weights(tuple(x.shape[:-1])), x.device)
        return torch.matmul(found, x.double()).to(x.dtype), state

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append the sums, if the number of channels stays the same and nothing is learned."""
        found = self._checked_weights(program.shape)
        if found.requires_grad or _mixed(program.shape, found) != program.shape:
            return None
        mixed: int = program.mix(source, found)
        return mixed


class ChannelMatrix(ChannelMixing):
    """Mix channels with a given matrix: y[o] = sum over i of matrix[o, i] x[i].

    Examples:
        >>> import torch
        >>> swapped = ChannelMatrix([[0.0, 1.0], [1.0, 0.0]])
        >>> swapped(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.],
                [1., 2.]])
    """

    matrix: Tensor = matrix(doc="weights, one row for each output")

    def weights(self, channels: int) -> Tensor:
        """Return the matrix."""
        return self.matrix.double()


class Pan(ChannelMixing):
    """Equal-power panning of a mono or stereo signal; the output is stereo.

    A mono signal is multiplied by cos and sin of (position + 1) pi/4; in the middle both are -3 dB. For a stereo
    signal, the channel on the side of `position` stays, and the other channel moves towards it at equal power; in the
    middle the signal is unchanged.

    Source: W3C, Web Audio API, StereoPannerNode.

    Examples:
        >>> import torch
        >>> Pan(1.0)(torch.ones(1, 2)).round()
        tensor([[0., 0.],
                [1., 1.]])
        >>> Pan(0.0)(torch.tensor([[1.0], [3.0]]))
        tensor([[1.],
                [3.]])
    """

    position: Value = number(default=0.0, low=-1.0, high=1.0, doc="-1 is left, 1 is right", typical="-0.5")

    def weights(self, channels: int) -> Tensor:
        """Return the matrix for one or two channels."""
        position = per_example("position", self.position)
        if channels == 1:
            angle = (position + 1) * (math.pi / 4)
            return matrix_of([[angle.cos()], [angle.sin()]])
        left, right = (side.clamp(min=0) * (math.pi / 2) for side in (-position, position))
        return matrix_of([[right.cos(), left.sin()], [right.sin(), left.cos()]])


class Balance(ChannelMixing):
    """Turn down one channel of a stereo signal: multiply the left by 1 - position, or the right by 1 + position.

    Examples:
        >>> import torch
        >>> Balance(0.25)(torch.tensor([[1.0], [1.0]]))
        tensor([[0.7500],
                [1.0000]])
    """

    position: Value = number(
        default=0.0, low=-1.0, high=1.0, doc="-1: left channel only, 1: right channel only", typical="-0.5"
    )

    def weights(self, channels: int) -> Tensor:
        """Return the two gains as a diagonal."""
        position = per_example("position", self.position)
        left, right = ((1 + side).clamp(max=1) for side in (-position, position))
        return matrix_of([[left, 0.0], [0.0, right]])


class StereoWidth(ChannelMixing):
    """Widen or narrow a stereo signal: the side signal (left - right) / 2 is multiplied by `width`.

    The mid signal (left + right) / 2 is unchanged. A width of 0 makes the signal mono, 1 changes nothing.

    Examples:
        >>> import torch
        >>> StereoWidth(0.0)(torch.tensor([[1.0], [0.0]]))
        tensor([[0.5000],
                [0.5000]])
    """

    width: Value = number(
        default=1.0, low=0.0, high=100.0, draws=(0.0, 2.0), doc="factor of the side signal", typical="2"
    )

    def weights(self, channels: int) -> Tensor:
        """Return the matrix that scales the side signal."""
        width = per_example("width", self.width)
        same, other = (1 + width) / 2, (1 - width) / 2
        return matrix_of([[same, other], [other, same]])


class Mono(ChannelMixing):
    """Average all channels into one.

    Examples:
        >>> import torch
        >>> Mono()(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
        tensor([[2., 4.]])
    """

    def weights(self, channels: int) -> Tensor:
        """Return equal weights whose sum is 1."""
        return torch.full((1, channels), 1 / max(channels, 1), dtype=torch.float64)


def _mixed(shape: tuple[int, ...], weights: Tensor) -> tuple[int, ...]:
    """Return the leading dimensions that weights make of a signal's."""
    return (*broadcast_shapes(x=shape[:-1], weights=weights.shape[:-2]), weights.shape[-2])


def per_example(name: str, value: Value) -> Tensor:
    """Return a parameter as float64 without the dimension of channels: (...,) of one value for each example."""
    found = torch.as_tensor(value, dtype=torch.float64)
    if found.dim() and found.shape[-1] != 1:
        raise ArgumentError(
            f"{name} must be a number or have the shape (..., 1), a value for each example, got {tuple(found.shape)}"
        )
    return found[..., 0] if found.dim() else found


def matrix_of(rows: Sequence[Sequence[Value]]) -> Tensor:
    """Return rows of numbers and tensors (...) as matrices (..., rows, columns), float64."""
    given = [each for row in rows for each in row]
    device = next((each.device for each in given if isinstance(each, Tensor)), None)
    elements = [torch.as_tensor(each, dtype=torch.float64, device=device) for each in given]
    found = torch.stack(torch.broadcast_tensors(*elements), dim=-1)
    return found.reshape(*found.shape[:-1], len(rows), len(rows[0]))
