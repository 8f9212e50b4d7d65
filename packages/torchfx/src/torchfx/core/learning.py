"""Parameters that are learned within a range: the optimiser updates an unconstrained number, not the parameter itself.

Optimiser steps do not suit a cutoff in Hz: equal steps are unequal ratios, and a step may leave (0, fs/2). `learn` adds
a parametrization (`torch.nn.utils.parametrize`): the optimiser updates an unconstrained number, and the filter gets a
value in the range.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from torchfx.checks import number_text
from torchfx.core.processor import FilterChain, Parallel, Processor
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.parameters import Number

__all__ = ["learn"]

P = TypeVar("P", bound=Processor)


def learn(processor: P, *names: str, **ranges: tuple[float, float]) -> P:
    """Make parameters of a processor learnable within a range, and return the processor.

    The optimiser updates one unconstrained number per value (float64, initialized from the present value). A sigmoid
    maps it into the range: on a logarithmic scale for frequencies, times and quality factors, so that a step is the
    same ratio at 50 Hz and at 5 kHz, and linearly for decibels and all others. No step leaves the range. Reading the
    parameter returns its value; assigning a value sets the unconstrained number.
    `torch.nn.utils.parametrize.remove_parametrizations` undoes `learn`.

    Args:
        processor: a filter or effect. It is changed in place.
        names: parameters to learn within their default range: 20 Hz to 0.45 fs for frequencies, the range of random
            draws for others, extended if the present value lies outside. Without names and ranges, all learnable
            parameters are learned.
        ranges: parameters to learn within a given range, (low, high) in their unit.

    Raises:
        ArgumentError: a parameter does not exist, cannot be learned, or is already learned; a range exceeds the
            parameter's limits or excludes its present value; the default range of a frequency needs an `fs` that the
            filter does not have.

    Examples:
        >>> import torch, torchfx as fx
        >>> peak = fx.learn(fx.filter.Peaking(3000, q=1.0, gain_db=0.0, fs=48_000), "gain_db", cutoff=(100, 10_000))
        >>> optimizer = torch.optim.Adam(peak.parameters(), lr=0.05)
        >>> x = torch.randn(1, 4800, generator=torch.Generator().manual_seed(0))
        >>> target = fx.filter.Peaking(1000, q=1.0, gain_db=-6.0, fs=48_000)(x)
        >>> for _ in range(100):
        ...     optimizer.zero_grad()
        ...     (peak(x) - target).square().mean().backward()
        ...     optimizer.step()
        >>> abs(peak.cutoff.item() - 1000) < 10, abs(peak.gain_db.item() + 6) < 0.1
        (True, True)
    """
    if not isinstance(processor, Processor):
        raise ArgumentTypeError(f"processor must be a filter or an effect, got {type(processor).__name__}")
    learnable = {
        name: declaration.number
        for name, declaration in processor.declarations.items()
        if declaration.number is not None and declaration.number.learnable
    }
    if isinstance(processor, (FilterChain, Parallel)) and not learnable:
        raise ArgumentError(
            f"processor must be a filter or an effect, got a {processor._get_name()}; make its parts learnable one by "
            "one: for part in chain: torchfx.learn(part, ...)"
        )
    wanted = dict.fromkeys(names) | ranges
    if not wanted:
        wanted = {name: None for name in learnable if getattr(processor, name) is not None}
        if not wanted:
            raise ArgumentError(f"{processor._get_name()} has no number to learn")
    found = {name: _range(processor, name, learnable, bounds) for name, bounds in wanted.items()}
    with processor._replaced() as twin:
        for name, mapping in found.items():
            twin._keep(name, nn.Parameter(_present(twin, name)))
            parametrize.register_parametrization(twin, name, mapping)
        _pickle_by_reduced(twin)
    return processor


def _pickle_by_reduced(processor: Processor) -> None:
    own_class: Any = type(processor)  # PyTorch made it for this processor alone
    own_class.__reduce_ex__ = _reduced


def _reduced(processor: P, protocol: int) -> str | tuple[Any, ...]:
    """Pickle a processor that learns: PyTorch's class for it has no name that could be imported."""
    state = dict(vars(processor))
    modules = state["_modules"] = state["_modules"].copy()
    mappings = dict(modules.pop("parametrizations").items())
    if not all(len(chain) == 1 and isinstance(chain[0], InRange) for chain in mappings.values()):
        return object.__reduce_ex__(processor, protocol)  # others' parametrizations: PyTorch's error names the remedy
    learned = {name: (chain[0], chain.original) for name, chain in mappings.items()}
    return _restored, (type(processor).__bases__[0], state, learned)


def _restored(cls: type[P], state: dict[str, Any], learned: dict[str, tuple[InRange, nn.Parameter]]) -> P:
    """Return the processor that `_reduced` took apart, with its very free numbers."""
    processor = cls.__new__(cls)
    processor.__setstate__(state)
    for name, (mapping, free) in learned.items():
        processor._keep(name, nn.Parameter(mapping(torch.zeros_like(free))))
        parametrize.register_parametrization(processor, name, mapping)
        processor.get_submodule(f"parametrizations.{name}").original = free
    _pickle_by_reduced(processor)
    return processor


class InRange(nn.Module):
    """Maps an unconstrained number to a value in (low, high), which are the limits at minus and plus infinity.

    Args:
        name: the parameter's name, for messages.
        low, high: the range.
        logarithmic: whether the scale is logarithmic.
    """

    def __init__(self, name: str, low: float, high: float, logarithmic: bool) -> None:
        """Keep the range."""
        super().__init__()
        self.name, self.low, self.high, self.logarithmic = name, low, high, logarithmic

    def forward(self, free: Tensor) -> Tensor:
        """Return the value."""
        share = torch.sigmoid(free.double())
        if self.logarithmic:
            return self.low * torch.exp(math.log(self.high / self.low) * share)
        return self.low + (self.high - self.low) * share

    def right_inverse(self, value: Tensor | float) -> Tensor:
        """Return the unconstrained number of a value."""
        value = torch.as_tensor(value).double()
        self.check(value)
        if self.logarithmic:
            return torch.logit(torch.log(value / self.low) / math.log(self.high / self.low))
        return torch.logit((value - self.low) / (self.high - self.low))

    def check(self, value: Tensor) -> None:
        """Raise unless the value lies in the range."""
        outside = value[(value <= self.low) | (value >= self.high)]
        if len(outside):
            raise ArgumentError(
                f"{self.name} must lie in ({number_text(self.low)}, {number_text(self.high)}), the range it is learned "
                f"in, got {number_text(float(outside[0]))}"
            )

    def extra_repr(self) -> str:
        """Return the range."""
        scale = "by ratio" if self.logarithmic else "by difference"
        return f"{number_text(self.low)} to {number_text(self.high)}, {scale}"


def _range(
    processor: Processor, name: str, learnable: dict[str, Number], bounds: tuple[float, float] | None
) -> InRange:
    kind = processor._get_name()
    declaration = learnable.get(name)
    if declaration is None:
        raise ArgumentError(f"{kind} can learn {', '.join(learnable) or 'nothing'}, got {name!r}")
    if parametrize.is_parametrized(processor, name):
        raise ArgumentError(f"{name} of {kind} is learned already")
    if getattr(processor, name) is None:
        raise ArgumentError(f"{name} of {kind} is None: set it to a number first")
    value = _present(processor, name)
    low, high = _usual(declaration, processor, value) if bounds is None else _given(declaration, processor, bounds)
    found = InRange(name, low, high, declaration.logarithmic)
    found.check(value)
    return found


def _present(processor: Processor, name: str) -> Tensor:
    """Return the values a parameter has now: float64, one or one for each example or band."""
    return torch.as_tensor(getattr(processor, name)).detach().double()


def _given(declaration: Number, processor: Processor, bounds: tuple[float, float]) -> tuple[float, float]:
    name = declaration.name
    try:
        low, high = (float(declaration.check(bound, processor.fs)) for bound in bounds)
    except (TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"the range of {name} must be a pair (low, high), got {bounds!r}") from error
    if not low < high:
        raise ArgumentError(f"the range of {name} must ascend, got ({number_text(low)}, {number_text(high)})")
    if declaration.logarithmic and not low > 0:
        raise ArgumentError(f"the range of {name} must begin above 0, got {number_text(low)}")
    return low, high


def _usual(declaration: Number, processor: Processor, value: Tensor) -> tuple[float, float]:
    if declaration.per_second and processor.fs is None:
        raise ArgumentError(
            f"{declaration.name} needs a range while {processor._get_name()} has no fs: "
            f"learn(..., {declaration.name}=(low, high))"
        )
    low, high = declaration.drawn_range(processor.fs)  # type: ignore[arg-type]
    least, most = declaration.bounds(processor.fs)
    first, last = float(value.min()), float(value.max())
    if declaration.logarithmic:
        low, high = (first / 2 if first <= low else low), (last * 2 if last >= high else high)
    else:
        span = high - low
        low, high = (first - span / 2 if first <= low else low), (last + span / 2 if last >= high else high)
    return max(low, least), min(high, most)
