"""Lowering: a chain of modules becomes the fewest operator calls.

    modules -> runs of linear time-invariant steps, everything else -> steps -> Plan

A run collapses to one cascade (all sections of all its filters), one finite impulse response (all taps convolved) and
a gain that is multiplied into either. Modules with hooks, and modules that are not of this package, are called as they
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from torchfx.errors import ArgumentError, SampleRateError, TorchFXError
from torchfx.plan.lti import LTI, cascade
from torchfx.plan.steps import (
    CausalStep,
    FeatureStep,
    LateStep,
    LTIStep,
    ModuleStep,
    ParallelStep,
    Plan,
    Step,
    named_error,
    shown,
)
from torchfx.rate import rate_ratio, resampled_length

__all__ = ["NEEDS_WHOLE", "children", "gives_of", "has_hooks", "kind_of", "lower", "parts_of", "runs_children"]

NEEDS_WHOLE = "needs the whole signal at once"
"""Why a class that gives no reason cannot run in a stream."""

SIDES = {"samples": "samples (..., time)", "features": "features (..., bins, frames)"}


def lower(module: nn.Module, rate: float | None, called: bool = True) -> Plan:
    """Return the plan of a module.

    Args:
        module: a processor, or an `nn.Sequential`.
        rate: the signal's sample rate, Hz; None: the one rate the module's filters were built for, if any was.
        called: whether the module itself is being called; else its hooks have still to run, and it is called.
    """
    leaves = _leaves(module, called)
    parts = parts_of(module, called)
    if rate is None:
        rate = _common_rate(parts)
    first, steps, run = rate, [], Run()
    latency, keeps_rate = 0, True
    given: nn.Module | None = None  # the last one that says what it gives
    for i, leaf in enumerate(leaves):
        name = "" if leaf is module else f"{type(leaf).__name__} ({_ordinal(i + 1)} of {len(leaves)})"
        own = leaf is module and called
        hooked = has_hooks(leaf) and not own
        kind = None if hooked else kind_of(leaf, own)
        if kind_of(leaf) is None:
            given = None
        else:
            _check_sides(given, leaf, name)
            given = leaf
        try:
            system = _system(leaf, kind, rate)
            if system is not None:
                run.append(leaf, system)
                continue
            steps += run.end()
            step = _step(leaf, kind, rate, name, hooked, own)
        except TorchFXError as error:
            raise named_error(name, error) from error.__cause__
        after = step.output_rate(rate)
        ratio = rate_ratio(rate, after)
        steps.append(LateStep(step, ratio) if step.latency else step)
        latency = resampled_length(latency, *ratio) + step.latency
        keeps_rate = keeps_rate and ratio == (1, 1) and step.gives == "samples"
        rate = after
    steps += run.end()
    refusal = next((step.refusal for step in steps if step.refusal), "")
    gives = next((step.gives for step in reversed(steps) if isinstance(step, FeatureStep)), "samples")
    return Plan(first, tuple(steps), len(parts), _common_device(parts), rate, latency, refusal, keeps_rate, gives)


def gives_of(module: nn.Module) -> str:
    """Return what a module gives, "samples" or "features"; a module that is no processor is taken to keep it."""
    found = "samples"
    for leaf in _leaves(module, called=True):
        found = getattr(leaf, "gives", found) if kind_of(leaf) is not None else found
    return found


def _check_sides(before: Any, leaf: Any, name: str) -> None:
    """Raise where a processor does not take what the one before it gives."""
    if before is not None and before.gives != leaf.takes:
        raise ArgumentError(
            f"{name or shown(leaf)} takes {SIDES[leaf.takes]}, and {shown(before)} in front of it gives "
            f"{SIDES[before.gives]}"
        )


def parts_of(module: nn.Module, called: bool = True) -> list[nn.Module]:
    """Return the modules a plan stands for: those that containers hold, and those that sums add."""
    parts: list[nn.Module] = []
    for leaf in _leaves(module, called):
        own = leaf is module and called
        if kind_of(leaf, own) == "parallel" and (own or not has_hooks(leaf)):
            parts += [part for branch in children(leaf) for part in parts_of(branch, called=False)]
        else:
            parts.append(leaf)
    return parts


def kind_of(module: nn.Module, called: bool = False) -> str | None:
    """Return the kind of a processor, or None for another module; see `torchfx.Processor`.

    Args:
        module: any module.
        called: whether the module is being called, so that a `forward` written on top has run already.
    """
    cls = type(module)
    if not hasattr(cls, "lti"):
        return None
    kind: str = cls.derived_kind if called else cls.kind  # type: ignore[attr-defined]
    return kind


def has_hooks(module: nn.Module) -> bool:
    """Return whether a module must be called itself: somebody listens to its calls, or replaced its `forward`."""
    own = vars(module)
    hooks = own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]
    return bool(hooks) or "forward" in own


def runs_children(module: nn.Module, called: bool = False) -> bool:
    """Return whether calling a module's children one after the other is all its `forward` does."""
    if kind_of(module) is not None:
        return kind_of(module, called) == "chain"
    return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward


def children(module: nn.Module) -> list[nn.Module]:
    """Return the modules a container holds, one that it holds twice twice (unlike `nn.Module.children`)."""
    return [child for child in module._modules.values() if child is not None]


def _leaves(module: nn.Module, called: bool) -> list[nn.Module]:
    """Return the modules that a container runs in order, those of containers in it among them."""
    if not runs_children(module, called) or (has_hooks(module) and not called):
        return [module]
    return [leaf for child in children(module) for leaf in _leaves(child, called=False)]


class Run:
    """Linear time-invariant modules in a row, on their way to becoming one step."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.systems: list[LTI] = []

    def append(self, module: nn.Module, system: LTI) -> None:
        """Add a module."""
        self.names.append(shown(module))
        self.systems.append(system)

    def end(self) -> list[Step]:
        """Return the step of the modules so far, if there are any, and start again."""
        if not self.systems:
            return []
        step = LTIStep(cascade(self.systems).folded(), self.names)
        self.__init__()  # type: ignore[misc]
        return [step]


def _system(leaf: nn.Module, kind: str | None, rate: float | None) -> LTI | None:
    if kind != "lti":
        return None
    processor: Any = leaf
    found: LTI | None = processor.lti(processor.rate_for(rate))
    return found


def _step(leaf: nn.Module, kind: str | None, rate: float | None, name: str, hooked: bool, own: bool) -> Step:
    processor: Any = leaf
    if hooked:
        reason = f"{name or shown(leaf)} has hooks or a replaced forward, which a stream cannot call"
        return ModuleStep(leaf, rate, name, reason)
    if kind == "parallel":
        plans = [lower(branch, rate, called=False) for branch in children(leaf)]
        for plan, branch in zip(plans, children(leaf), strict=True):
            if gives_of(branch) == "features":
                raise ArgumentError(f"the branches of a sum give samples, got {SIDES['features']} of {shown(branch)}")
            if not plan.keeps_rate:
                raise ArgumentError(
                    f"the branches of a sum must keep the sample rate, got one that ends at {plan.output_rate:g} Hz "
                    f"for {rate or 0:g} Hz; resample before or after the sum"
                )
        return ParallelStep(plans)
    if kind in {"lti", "causal", "measured"}:
        # A plan is remembered with the module it was made of, which it must not keep alive.
        return CausalStep(processor._now() if own else processor, processor.rate_for(rate), name)
    if kind == "feature":
        return FeatureStep(processor._now() if own else processor, processor.rate_for(rate), name)
    if kind == "whole":
        reason = _refusal(leaf, name) or f"{name or shown(leaf)} {NEEDS_WHOLE}"
        return ModuleStep(leaf, rate, name, reason, processor.in_pieces is not None)
    return ModuleStep(leaf, rate, name, _refusal(leaf, name) if hasattr(type(leaf), "refusal") else "")


def _refusal(leaf: Any, name: str) -> str:
    """Return why a module cannot run in a stream, in its words; "" if it can."""
    why = leaf.refusal()
    return f"{name or shown(leaf)} {why}" if why else ""


def _common_rate(parts: Sequence[nn.Module]) -> float | None:
    rates: dict[float, Any] = {}
    for part in parts:
        if kind_of(part) is not None and part.fs is not None:
            rates[part.fs] = part  # type: ignore[index]
    if len(rates) > 1:
        shares = " and ".join(f"{shown(part)} for {fs:g} Hz" for fs, part in rates.items())
        raise SampleRateError(f"the filters of a chain must share one sample rate, got {shares}")
    return next(iter(rates), None)


def _common_device(parts: Sequence[nn.Module]) -> torch.device | None:
    devices: dict[torch.device, Any] = {}
    for part in parts:
        if kind_of(part) is not None and part.device is not None:
            devices[part.device] = part  # type: ignore[index]
    if len(devices) > 1:
        shares = " and ".join(f"{shown(part)} on {device}" for device, part in devices.items())
        raise ArgumentError(f"the filters of a chain must share one device, got {shares}")
    return next(iter(devices), None)


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
