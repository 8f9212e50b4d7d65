"""Lowering: a chain of modules becomes the fewest operator calls, once, and runs from then on.

    modules -> runs of linear time-invariant steps, everything else -> steps -> Plan

A run collapses to one cascade (all sections of all its filters), one finite impulse response (all taps convolved) and
a gain that is multiplied into either. Modules with hooks or a `forward` of their own, and modules that are not of this
package, are called as they are. Plans are remembered per container and made anew when anything they depend on changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeGuard
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from torchfx import _ops
from torchfx._ops.dispatch import modes_active
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError
from torchfx.lti import LTI, cascade
from torchfx.processor import Processor
from torchfx.rate import ambient_rate

__all__ = ["LTIStep", "ModuleStep", "ParallelStep", "Plan", "is_opaque", "lower"]


class Step(Protocol):
    """One step of a plan."""

    def run(self, x: Tensor) -> Tensor:
        """Process a signal (..., time)."""

    def lines(self) -> list[str]:
        """Return the step as text: what is called, then what it stands for."""

    def calls(self) -> int:
        """Return how many operator calls the step makes, as far as that is known before it runs."""


@dataclass
class LTIStep:
    """A run of linear time-invariant modules as one operator call."""

    system: LTI
    members: tuple[nn.Module, ...]
    _placed: dict[torch.device, LTI] = field(default_factory=dict)

    def on(self, device: torch.device) -> LTI:
        """Return the coefficients on a device; kept there, so that a GPU gets them once."""
        found = self._placed.get(device)
        if found is None:
            with _lasting():
                sos, taps = self.system.sos, self.system.taps
                found = LTI(
                    self.system.gain,
                    None if sos is None else sos.to(device),
                    None if taps is None else taps.to(device),
                )
            self._placed[device] = found
        return found

    def run(self, x: Tensor) -> Tensor:
        """Process a signal (..., time)."""
        system = self.on(x.device)
        if system.sos is not None and system.taps is not None:
            return _ops.parallel_iir_forward(x, system.sos, taps=system.taps)[0]
        if system.sos is not None:
            return _ops.parallel_iir_forward(x, system.sos)[0]
        if system.taps is not None:
            return _ops.fir_forward(x, system.taps)[0]
        return x * system.gain

    def lines(self) -> list[str]:
        """Return the operator calls, then the modules they stand for."""
        sos, taps = self.system.sos, self.system.taps
        sections = "" if sos is None else _plural(sos.shape[0], "section")
        if sos is not None and taps is not None:
            head = f"torchfx_ext::lti_forward  {_plural(taps.numel(), 'tap')}, {sections}"
        elif sos is not None:
            head = f"torchfx_ext::sos_forward  {sections}"
        elif taps is not None:
            head = f"torchfx_ext::fir_forward  {_plural(taps.numel(), 'tap')}"
        else:
            head = f"aten::mul  by {self.system.gain:.6g}"
        return [head, *map(_name, self.members)]

    def calls(self) -> int:
        """Return the number of operator calls."""
        return 1


@dataclass
class ModuleStep:
    """A module that is called as it is."""

    module: nn.Module

    def run(self, x: Tensor) -> Tensor:
        """Process a signal (..., time)."""
        y: Tensor = self.module(x)
        return y

    def lines(self) -> list[str]:
        """Return the module's class and parameters."""
        return [f"{_name(self.module)}  called as it is"]

    def calls(self) -> int:
        """Return 1 for the module's own call; what happens inside is not known here."""
        return 1


@dataclass
class ParallelStep:
    """Plans side by side, added."""

    plans: tuple[Plan, ...]

    def run(self, x: Tensor) -> Tensor:
        """Process a signal (..., time) in every branch and return the sum."""
        total = self.plans[0].run(x)
        for plan in self.plans[1:]:
            total = total + plan.run(x)
        return total

    def lines(self) -> list[str]:
        """Return the branches' steps, indented."""
        text = [f"sum of {len(self.plans)} branches"]
        for i, plan in enumerate(self.plans):
            text.append(f"branch {i + 1}:")
            text += [f"    {line}" for line in plan.lines()]
        return text

    def calls(self) -> int:
        """Return the calls of all branches and the additions."""
        return sum(plan.calls() for plan in self.plans) + len(self.plans) - 1


@dataclass
class Plan:
    """What a chain runs: its steps, at one sample rate."""

    fs: float | None
    steps: tuple[Step, ...]
    modules: int
    device: torch.device | None = None

    def run(self, x: Tensor) -> Tensor:
        """Process a signal (..., time), float32 or float64."""
        if not isinstance(x, Tensor):
            raise ArgumentTypeError(
                f"x must be a tensor (..., time), got {type(x).__name__}; a Wave is piped: wave | module"
            )
        if self.device is not None and x.device != self.device:
            raise ArgumentError(
                f"the filters were moved to {self.device} but the signal is on {x.device}; move one of them with .to()"
            )
        for step in self.steps:
            x = step.run(x)
        return x

    def calls(self) -> int:
        """Return how many operator calls the plan makes."""
        return sum(step.calls() for step in self.steps)

    def lines(self) -> list[str]:
        """Return the steps as numbered lines."""
        text = []
        for i, step in enumerate(self.steps):
            head, *rest = step.lines()
            text.append(f"{i + 1}. {head}")
            text += [f"   {line}" for line in rest]
        return text or ["nothing to do"]

    def __str__(self) -> str:
        """Return the plan as text."""
        rate = "any sample rate" if self.fs is None else f"{self.fs:g} Hz"
        head = f"plan at {rate}: {_plural(self.modules, 'module')} -> {_plural(self.calls(), 'operator call')}"
        return "\n".join([head, *(f"  {line}" for line in self.lines())])


def lower(module: nn.Module) -> Plan:
    """Return the plan of a container at the ambient sample rate, or at the one rate its filters were built for."""
    if torch.compiler.is_dynamo_compiling():
        return _lower(module, None)  # the compiler follows neither context variables nor weak tables
    rate, keys = ambient_rate(), _keys(module)
    known = _plans.get(module)
    if known is not None and keys is not None and known[0] == (rate, keys):
        return known[1]
    if keys is None or not _may_be_kept(module):
        return _lower(module, rate)
    with _lasting():
        plan = _lower(module, rate)
    _plans[module] = ((rate, keys), plan)
    return plan


def _lasting() -> AbstractContextManager[object]:
    """Let tensors be made that serve any later call: those made in inference mode are barred from training."""
    if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
        return nullcontext()
    return torch.inference_mode(False)


def _may_be_kept(module: nn.Module) -> bool:
    """Return whether a plan made now may serve later calls.

    Not where the module is its own only step: the table's entry would keep its own key alive. Nor while a dispatch mode
    is active: coefficients made under one that traces are fakes.
    """
    own_step = not (_transparent(module) or _branches(module))
    return not (own_step or modes_active() or torch.compiler.is_compiling())


_plans: WeakKeyDictionary[nn.Module, tuple[Hashable, Plan]] = WeakKeyDictionary()


def _lower(module: nn.Module, rate: float | None) -> Plan:
    leaves = _leaves(module)
    parts = [part for leaf in leaves for part in _parts(leaf)]
    rate = _common_rate(parts) if rate is None else rate
    branches = _branches(module)
    steps = [_side_by_side(branches, rate)] if branches else _steps(leaves, rate)
    return Plan(rate, tuple(steps), len(parts), _common_device(parts))


def _side_by_side(branches: Sequence[nn.Module], rate: float | None) -> ParallelStep:
    return ParallelStep(
        tuple(
            Plan(rate, (ModuleStep(branch),), 1) if is_opaque(branch) else _lower(branch, rate) for branch in branches
        )
    )


def _steps(leaves: list[nn.Module], rate: float | None) -> list[Step]:
    steps: list[Step] = []
    run: list[tuple[nn.Module, LTI]] = []

    def end_run() -> None:
        if run:
            steps.append(LTIStep(cascade([system for _, system in run]).folded(), tuple(leaf for leaf, _ in run)))
            run.clear()

    for leaf in leaves:
        system = leaf.lti(rate) if isinstance(leaf, Processor) and not is_opaque(leaf) else None
        if system is not None:
            run.append((leaf, system))
            continue
        end_run()
        branches = () if is_opaque(leaf) else _branches(leaf)
        steps.append(_side_by_side(branches, rate) if branches else ModuleStep(leaf))
    end_run()
    return steps


def _transparent(module: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether running a module's children one after the other is all it does."""
    return isinstance(module, nn.Sequential) and (
        type(module).forward is nn.Sequential.forward or isinstance(module, Processor)
    )


def _leaves(module: nn.Module) -> list[nn.Module]:
    if not _transparent(module):
        return [module]
    leaves: list[nn.Module] = []
    for child in module:
        leaves += _leaves(child) if _transparent(child) and not is_opaque(child) else [child]
    return leaves


def _keys(module: nn.Module) -> Hashable | None:
    """Return a value that changes whenever the plan would, or None when that cannot be known."""
    keys: list[Hashable] = []
    for leaf in _leaves(module):
        key: Hashable | None = ()
        branches = _branches(leaf)
        if branches:
            inner = [_keys(branch) for branch in branches]
            key = None if None in inner else tuple(inner)
        elif isinstance(leaf, Processor):
            key = leaf.lti_key()
        if key is None:
            return None
        keys.append((id(leaf), is_opaque(leaf), key))
    return tuple(keys)


def _branches(module: nn.Module) -> Sequence[nn.Module]:
    return module.branches() if isinstance(module, Processor) else ()


def _parts(leaf: nn.Module) -> list[nn.Module]:
    """Return a leaf, or where it is a sum of chains, the leaves of those."""
    branches = _branches(leaf)
    if not branches:
        return [leaf]
    return [part for branch in branches for inner in _leaves(branch) for part in _parts(inner)]


def is_opaque(module: nn.Module) -> bool:
    """Return whether a module must be called itself: it has hooks, or a `forward` that nothing else tells about."""
    own = vars(module)  # asked for at every call, and quicker there than through nn.Module
    if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]:
        return True
    return "forward" in own or (isinstance(module, Processor) and not module.forward_is_declared)


def _common_rate(leaves: list[nn.Module]) -> float | None:
    rates = {leaf.fs: leaf for leaf in leaves if isinstance(leaf, Processor) and leaf.fs is not None}
    if len(rates) > 1:
        shown = " and ".join(f"{_name(leaf)} for {fs:g} Hz" for fs, leaf in rates.items())
        raise SampleRateError(f"the filters of a chain must share one sample rate, got {shown}")
    return next(iter(rates), None)


def _common_device(leaves: list[nn.Module]) -> torch.device | None:
    devices: dict[torch.device, nn.Module] = {}
    for leaf in leaves:
        device = getattr(leaf, "device", None) if isinstance(leaf, Processor) else None
        if device is not None:
            devices[device] = leaf
    if len(devices) > 1:
        shown = " and ".join(f"{_name(leaf)} on {device}" for device, leaf in devices.items())
        raise ArgumentError(f"the filters of a chain must share one device, got {shown}")
    return next(iter(devices), None)


def _name(module: nn.Module) -> str:
    return f"{type(module).__name__}({module.extra_repr()})"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
