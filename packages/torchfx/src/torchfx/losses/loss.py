"""Base class of all losses: checks both signals and filters them."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn

from torchfx.checks import finite_number, number_text
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.tensors import check_signal

__all__ = ["Loss", "positive"]


class Loss(nn.Module):
    """Base class of losses: a scalar distance between an estimate and a target.

    Args:
        prefilter: a processor, or any module, that is applied to both signals first.
    """

    def __init__(self, prefilter: nn.Module | None = None) -> None:
        super().__init__()
        if prefilter is not None and not isinstance(prefilter, nn.Module):
            raise ArgumentTypeError(f"prefilter must be a module, got {type(prefilter).__name__}")
        self.prefilter = prefilter

    def forward(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the loss, ().

        Args:
            estimate: float32 or float64, (..., time).
            target: the same shape and type.

        Raises:
            ArgumentError: the shapes differ.
            ArgumentTypeError: the types differ, or are neither float32 nor float64.
        """
        estimate, target = check_signal(estimate), check_signal(target)
        if estimate.shape != target.shape:
            shapes = f"{tuple(estimate.shape)} and {tuple(target.shape)}"
            raise ArgumentError(f"estimate and target must have the same shape, got {shapes}")
        if estimate.dtype != target.dtype:
            raise ArgumentTypeError(
                f"estimate and target must have the same type, got {estimate.dtype} and {target.dtype}"
            )
        if self.prefilter is not None:
            estimate, target = self.prefilter(estimate), self.prefilter(target)
        return self.distance(estimate, target)

    @abstractmethod
    def distance(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the loss of checked and filtered signals."""


def positive(name: str, value: float) -> float:
    """Return a number > 0, or raise naming it."""
    if finite_number(name, value) <= 0:
        raise ArgumentError(f"{name} must be > 0, got {number_text(value)}")
    return value
