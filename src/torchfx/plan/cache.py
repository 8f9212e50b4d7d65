"""Plans that are remembered, and how it is known that one still holds.

A plan is made from values: numbers that parameters had, tensors, the modules in containers. Assigning any attribute of
any processor, and adding a hook to one, changes the number `changes` holds. While it stays, what can have changed are
the children of containers and the contents of tensors. Both are looked at in each call; nothing else is, however many
modules a chain has. Where a processor keeps values that could change unseen (a list, a tensor that is learned), nothing
is remembered.
"""

from __future__ import annotations

import itertools
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from torchfx._ops.observers import modes_active
from torchfx.plan.plan import Plan, children, has_hooks, kind_of, lower, parts_of, runs_children
from torchfx.plan.steps import CausalStep, ModuleStep, lasting

__all__ = ["Changes", "changes", "plan_of"]

IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), torch.device, torch.dtype)
INTERNAL = frozenset(vars(nn.Module()))
"""Attributes of every module that no processor's system depends on; hooks are counted where they are added."""


class Changes:
    """A number that is another one whenever an attribute of any processor was assigned, in this process."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self.number = next(self._numbers)

    def note(self) -> None:
        """Take the next number."""
        self.number = next(self._numbers)


changes = Changes()


class Remembered:
    """A plan, and all it was made from."""

    def __init__(self, plan: Plan, rate: float | None, number: int, module: nn.Module, tensors: list[Slot]) -> None:
        self.plan, self.rate, self.number = plan, rate, number
        self.containers = [(each._modules, tuple(each._modules.values())) for each in _containers(module)]
        self.sequentials = [vars(each) for each in _containers(module) if kind_of(each) is None and each is not module]
        self.tensors = tensors

    def holds(self, rate: float | None) -> bool:
        """Return whether the plan still is what the module would be lowered to."""
        if changes.number != self.number or rate != self.rate:
            return False
        for modules, children in self.containers:
            if tuple(modules.values()) != children:
                return False
        for slot in self.tensors:
            if not slot.holds():
                return False
        for own in self.sequentials:
            if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or "forward" in own:
                return False
        return True


class Slot:
    """A tensor in its place: the place may get another one, and the tensor other contents."""

    __slots__ = ("holder", "name", "tensor", "version")

    def __init__(self, holder: dict[str, Any], name: str) -> None:
        self.holder, self.name = holder, name
        self.tensor: Tensor = holder[name]
        self.version = self.tensor._version

    def holds(self) -> bool:
        """Return whether place and contents are what they were."""
        return self.holder.get(self.name) is self.tensor and self.tensor._version == self.version


_plans: WeakKeyDictionary[nn.Module, Remembered] = WeakKeyDictionary()


def plan_of(module: nn.Module, rate: float | None) -> Plan:
    """Return the plan of a processor or an `nn.Sequential` that is being called, at a sample rate (Hz) or its own."""
    if torch.compiler.is_dynamo_compiling():  # the compiler does not follow weak tables
        return lower(module, rate)
    known = _plans.get(module)
    if known is not None and known.holds(rate) and not modes_active():
        return known.plan
    if modes_active() or torch.compiler.is_compiling():  # coefficients made under a mode that traces are fakes
        return lower(module, rate)
    number = changes.number  # as it was before: an assignment in another thread in the meantime must not be missed
    with lasting():
        plan = lower(module, rate)
    tensors = _dependencies(module)
    # A plan that holds its own key would never be forgotten.
    if tensors is not None and not any(_module_of(step) is module for step in plan.steps):
        _plans[module] = Remembered(plan, rate, number, module, tensors)
    return plan


def _module_of(step: object) -> object:
    return step.module if isinstance(step, (CausalStep, ModuleStep)) else None


def _containers(module: nn.Module, called: bool = True) -> list[nn.Module]:
    """Return the containers a plan was flattened from."""
    found = [module] if runs_children(module, called) or kind_of(module, called) == "parallel" else []
    for child in children(module) if found else ():
        if not has_hooks(child):
            found += _containers(child, called=False)
    return found


def _dependencies(module: nn.Module) -> list[Slot] | None:
    """Return the tensors that linear time-invariant parts are made from, or None if one could change unseen."""
    slots: list[Slot] = []
    for part in parts_of(module):
        if kind_of(part, part is module) == "lti" and not _collect(part, slots):
            return None
    return slots


def _collect(part: nn.Module, slots: list[Slot]) -> bool:
    own = vars(part)
    if any(kind_of(child) is None or not _collect(child, slots) for child in children(part)):
        return False
    holders = (part._parameters, part._buffers, {name: own[name] for name in own if name not in INTERNAL})
    for holder, place in zip(holders, (part._parameters, part._buffers, own), strict=True):
        for name, value in holder.items():
            if isinstance(value, Tensor):
                if value.requires_grad or value.is_inference() or type(value) not in {Tensor, nn.Parameter}:
                    return False
                slots.append(Slot(place, name))
            elif not _is_immutable(value):
                return False
    return True


def _is_immutable(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_immutable, value))
    return isinstance(value, IMMUTABLE)
