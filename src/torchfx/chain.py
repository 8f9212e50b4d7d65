"""Chains and sums of modules: what `|` and `+` between modules build."""

from __future__ import annotations

from collections import OrderedDict

from torch import Tensor, nn

from torchfx._ops.paths import cpu_path, other_path
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.plan import Plan, is_opaque, lower
from torchfx.processor import Processor, register_join
from torchfx.rate import sample_rate

__all__ = ["FilterChain", "Parallel"]


class FilterChain(Processor, nn.Sequential):  # type: ignore[misc]  # `+` adds outputs here, not modules
    """Modules one after the other, run as few operator calls: any depth of recursive filters is one.

    `a | b | c` builds one. It is an `nn.Sequential`: index it, slice it, append to it.

    Args:
        modules: what to run, in order; chains among them are laid flat. Or one ordered dict of named modules.

    Examples:
        >>> import torchfx as fx
        >>> chain = fx.filter.HiButterworth(80, order=4) | fx.filter.LoButterworth(12_000) | fx.effect.Gain("-3dB")
        >>> len(chain)
        3
        >>> plan = chain.explain(48_000)
        plan at 48000 Hz: 3 modules -> 1 operator call
          1. torchfx_ext::sos_forward  3 sections
             HiButterworth(cutoff=80, order=4)
             LoButterworth(cutoff=12000, order=2)
             Gain(-3 dB)
        CPU tensors: ...; other devices: ...
    """

    forward_is_declared = True

    def __init__(self, *modules: nn.Module | OrderedDict[str, nn.Module]) -> None:
        """Lay chains among the modules flat and keep the rest as it is."""
        if len(modules) == 1 and isinstance(modules[0], OrderedDict):
            super().__init__(modules[0])
            return
        flat: list[nn.Module] = []
        for module in modules:
            if not isinstance(module, nn.Module):
                raise ArgumentTypeError(f"modules must be nn.Modules, got {module!r} ({type(module).__name__})")
            flat += module if type(module) is FilterChain and not is_opaque(module) else [module]
        super().__init__(*flat)

    def forward(self, x: Tensor) -> Tensor:
        """Run the lowered chain on a signal (..., time)."""
        return lower(self).run(x)

    def plan(self) -> Plan:
        """Return what the chain runs at the ambient sample rate, or at the one its filters were built for."""
        return lower(self)

    def explain(self, fs: float | None = None) -> Plan:
        """Print the lowered plan at a sample rate (Hz), like a database's EXPLAIN, and return it.

        Without `fs` the rate is the one the filters were built for. The last line says which implementation the
        operators have here; `torchfx.suggest_device` measures which device is faster.
        """
        return _explain(self, fs)

    def __iadd__(self, other: object) -> nn.Module:  # type: ignore[override]
        """Join side by side, like `self + other`; an `nn.Sequential` would append instead."""
        return self + other


class Parallel(Processor):
    """Modules side by side on the same input, their outputs added.

    `a + b` builds one; its branches may be chains.

    Args:
        modules: the branches; sums among them are laid flat.

    Examples:
        >>> import torch, torchfx as fx
        >>> dry_and_wet = fx.effect.Gain(0.5) + fx.effect.Gain(0.25)
        >>> dry_and_wet(torch.ones(3))
        tensor([0.7500, 0.7500, 0.7500])
    """

    def __init__(self, *modules: nn.Module) -> None:
        """Lay sums among the modules flat and keep the rest as it is."""
        super().__init__()
        if not modules:
            raise ArgumentError("Parallel needs at least one module, got none")
        flat: list[nn.Module] = []
        for module in modules:
            if not isinstance(module, nn.Module):
                raise ArgumentTypeError(f"modules must be nn.Modules, got {module!r} ({type(module).__name__})")
            flat += module.branches() if type(module) is Parallel and not is_opaque(module) else [module]
        for i, module in enumerate(flat):
            self.add_module(str(i), module)

    def branches(self) -> list[nn.Module]:
        """Return the modules that run side by side."""
        return [module for module in self._modules.values() if module is not None]

    def forward(self, x: Tensor) -> Tensor:
        """Run every branch on a signal (..., time) and return the sum."""
        return lower(self).run(x)

    def explain(self, fs: float | None = None) -> Plan:
        """Print the lowered plan at a sample rate (Hz) and return it; see `FilterChain.explain`."""
        return _explain(self, fs)


def _explain(module: nn.Module, fs: float | None) -> Plan:
    if fs is None:
        plan = lower(module)
    else:
        with sample_rate(fs):
            plan = lower(module)
    print(plan)
    print(f"CPU tensors: {cpu_path()}; other devices: {other_path()}")
    return plan


register_join("|", FilterChain)
register_join("+", Parallel)
