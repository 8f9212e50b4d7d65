"""Dry/wet mix."""

from __future__ import annotations

from typing import Any

from torch import nn

from torchfx.core.processor import FilterChain, Parallel, assign
from torchfx.effect.gain import Gain
from torchfx.parameters import Value, named, number

__all__ = ["Mix"]

MIX = named("mix", number(low=0.0, high=1.0))


class Mix(Parallel):
    """Mix a processor's output with its input: y = (1 - mix) x + mix processor(x).

    In a stream, the dry signal is delayed by the processor's latency, so that both stay aligned.

    Args:
        processor: any module.
        mix: from 0 (dry, only the input) to 1 (wet, only the processor): a number, a tensor with one value per example,
            or an `nn.Parameter`, which is learned.

    Raises:
        ArgumentError: mix out of range.

    Examples:
        >>> import torch, torchfx as fx
        >>> echo = Mix(fx.effect.Delay("2 samples", fs=48_000), mix=0.25)
        >>> echo(torch.tensor([1.0, 0.0, 0.0]))
        tensor([0.7500, 0.0000, 0.2500])
    """

    def __init__(self, processor: nn.Module, mix: Value = 0.5) -> None:
        """Combine the input and the processor."""
        mix = MIX.check(mix, None)
        super().__init__(_Dry(mix), FilterChain(processor, Gain(mix)))

    @property
    def mix(self) -> Any:
        """The wet share; can be assigned."""
        return self._modules["0"].gain  # type: ignore[union-attr]

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign an attribute; PyTorch would register a learned `mix` here instead of in the gains."""
        if name != "mix":
            super().__setattr__(name, value)
            return
        gains: Any = (self._modules["0"], self._modules["1"][-1])  # type: ignore[index]
        assign(gains, "gain", MIX.check(value, None))


class _Dry(Gain):
    """The gain of the input: 1 - gain."""

    @property
    def factor(self) -> Any:
        """The factor of the samples."""
        return 1 - super().factor
