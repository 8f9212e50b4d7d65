"""Plans that are remembered, and how it is known that one still holds.

A plan is made from values: numbers that parameters had, tensors, the modules in containers. Assigning any attribute of
a processor, adding a hook to one, and changing the modules of a chain or sum gives the processor a new stamp and moves
the number that `changes` holds for all processors. While that number stays, what can have changed are the contents of
tensors and the children of plain `nn.Sequential`s. Only those are checked in each call, however many
modules a chain has. Where the number has moved, a plan compares the stamps of the processors in its own module, and
holds if they are the same: other processors don't matter to it. Where a processor keeps values that could change unseen
(a list, a tensor that is learned), nothing is remembered. Where it may ask processors that are not in the module (it
keeps an object), the plan lapses with every change.

Whoever assigns holds the lock `assigning` while values take their places. A plan is made of values that held together:
if a stamp changed while it was being made, it is made once more, and assignments wait.
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from contextlib import nullcontext
from threading import RLock
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _global_backward_hooks as _backward_hooks
from torch.nn.modules.module import _global_backward_pre_hooks as _backward_pre_hooks
from torch.nn.modules.module import _global_forward_hooks as _forward_hooks
from torch.nn.modules.module import _global_forward_pre_hooks as _forward_pre_hooks
from typing_extensions import Self

from torchfx._ops.again import Again
from torchfx._ops.observers import is_wrapped, modes_active, tensors_are_replaced
from torchfx.plan.lowering import children, has_hooks, kind_of, lower, parts_of, runs_children
from torchfx.plan.steps import CausalStep, LateStep, ModuleStep, ParallelStep, Plan, Step, lasting
from torchfx.rate import ambient

__all__ = [
    "Changes", "WatchedModules", "assigning", "call_again", "changes", "lapses_by_changes", "plan_of", "plan_to_run",
    "run_plan",
]  # fmt: skip

IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), torch.device, torch.dtype)
INTERNAL = frozenset(vars(nn.Module())) | {"_stamp"}
"""Attributes of every module that no processor's system depends on; hooks are counted where they are added."""

assigning = RLock()
"""Held while values take their places: who holds it sees no assignment halfway."""

if hasattr(os, "register_at_fork"):  # a child of the process must not find it held by a thread that it does not have
    os.register_at_fork(before=assigning.acquire, after_in_parent=assigning.release, after_in_child=assigning.release)


_compiling = torch.compiler.is_dynamo_compiling


class Changes:
    """A number that is another one whenever an attribute of any processor was assigned, in this process."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self.number = next(self._numbers)

    def note(self) -> None:
        """Take the next number."""
        self.number = next(self._numbers)


changes = Changes()


class WatchedModules(dict[str, "nn.Module | None"]):
    """The children of a container, each change of which counts: some programs write into `_modules` directly.

    What is iterated over is a copy, so that another thread may change the container meanwhile.
    """

    stamp: object = None
    """Another one after each change."""

    def _noted(self, result: Any = None) -> Any:
        self.stamp = object()
        changes.note()
        return result

    def __setitem__(self, name: str, module: nn.Module | None) -> None:
        super().__setitem__(name, module)
        self._noted()

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._noted()

    def __ior__(self, other: Any) -> Self:  # type: ignore[override,misc]
        self.update(other)
        return self

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As `dict.update`."""
        super().update(*args, **kwargs)
        self._noted()

    def setdefault(self, *args: Any) -> Any:
        """As `dict.setdefault`."""
        return self._noted(super().setdefault(*args))

    def pop(self, *args: Any) -> Any:
        """As `dict.pop`."""
        return self._noted(super().pop(*args))

    def popitem(self) -> tuple[str, nn.Module | None]:
        """As `dict.popitem`."""
        found: tuple[str, nn.Module | None] = self._noted(super().popitem())
        return found

    def clear(self) -> None:
        """As `dict.clear`."""
        super().clear()
        self._noted()

    def items(self) -> ItemsView[str, nn.Module | None]:  # type: ignore[override]
        """Return names and modules as they are now."""
        return super().items() if _compiling() else dict(self).items()

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """Return the names as they are now."""
        return super().keys() if _compiling() else dict(self).keys()

    def values(self) -> ValuesView[nn.Module | None]:  # type: ignore[override]
        """Return the modules as they are now."""
        return super().values() if _compiling() else dict(self).values()


class Version:
    """Which state a processor was in."""

    __slots__ = ("processor", "stamps")

    def __init__(self, processor: nn.Module) -> None:
        self.processor, self.stamps = weakref.ref(processor), _stamps(processor)

    def holds(self) -> bool:
        """Return whether the processor is in this state still."""
        processor = self.processor()
        return processor is not None and _stamps(processor) == self.stamps


def _stamps(processor: Any) -> tuple[object, object]:
    """Return what is another object after an attribute was assigned, and after a child came, went or changed."""
    return processor._stamp, getattr(processor._modules, "stamp", None)


class Remembered:
    """A module's plan, and all it was made from."""

    def __init__(
        self,
        plan: Plan,
        rate: float | None,
        number: int,
        module: nn.Module,
        versions: list[Version] | None,
        tensors: list[Slot],
    ) -> None:
        self.plan, self.rate, self.number = plan, rate, number
        self.versions, self.tensors = versions, tensors
        key = id(module)
        self.module = weakref.ref(module, lambda _: _plans.pop(key, None))
        self.hooked = has_hooks(module)
        self.again: Again | None = None
        # Of the containers that are processors, children and hooks are counted among the changes.
        unwatched = [each for each in _containers(module) if kind_of(each) is None]
        self.unwatched = [(vars(each), tuple(each._modules.values())) for each in unwatched]

    def holds(self, module: nn.Module, rate: float | None) -> bool:
        """Return whether the plan is a module's, and still what the module would be lowered to."""
        if rate != self.rate or self.module() is not module:
            return False
        if changes.number != self.number and not self._is_current():
            return False
        for slot in self.tensors:
            if not slot.holds():
                return False
        for own, held in self.unwatched:
            if tuple(own["_modules"].values()) != held or "forward" in own:
                return False
            if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]:
                return False
        # Coefficients made outside of such a mode are no constants in it. The first question saves a call.
        return not (modes_active() and tensors_are_replaced())

    def _is_current(self) -> bool:
        """Return whether all that changed since the last look were other processors."""
        number = changes.number  # before the look: a change in another thread in the meantime must not be missed
        if self.versions is None or not all(version.holds() for version in self.versions):
            return False
        self.number = number
        return True


def run_plan(module: nn.Module, rate: float | None, x: Tensor) -> Tensor:
    """Run a module's plan on a whole signal; see `plan_of`. What it did is kept for `call_again`."""
    plan = plan_of(module, rate)
    y = plan.run(x)
    if _compiling():  # the compiler would read all of the table, which loses entries whenever modules are collected
        return y
    known = _plans.get(id(module))
    if known is not None and known.plan is plan and not (known.tensors or known.unwatched or known.hooked):
        known.again = plan.again(x)
    return y


def call_again(module: nn.Module, x: Any) -> Tensor | None:
    """Return what calling a module gives for a signal like the one of its last call, if nothing changed since.

    None where the module has to be called.
    """
    known = _plans.get(id(module))
    again = None if known is None else known.again
    if again is None or known.number != changes.number or known.rate != ambient.get():  # type: ignore[union-attr]
        return None
    if _forward_hooks or _forward_pre_hooks or _backward_hooks or _backward_pre_hooks:
        return None
    return again(x)


def lapses_by_changes(module: nn.Module) -> bool:
    """Return whether the plan that is remembered of a module holds as long as the number of `changes` stays.

    Otherwise tensors or the children of plain containers must be checked, too.
    """
    known = _plans.get(id(module))
    return known is not None and not known.tensors and not known.unwatched


class Slot:
    """A tensor in its place: the place may get another one, and the tensor other contents."""

    __slots__ = ("holder", "name", "tensor", "version")

    def __init__(self, holder: dict[str, Any], name: str) -> None:
        self.holder, self.name = holder, name
        self.tensor: Tensor = holder[name]
        self.version = self.tensor._version

    def holds(self) -> bool:
        """Return whether place and contents are unchanged."""
        return self.holder.get(self.name) is self.tensor and self.tensor._version == self.version


_plans: dict[int, Remembered] = {}
"""Plans by the module's id; forgotten with the module."""


def plan_to_run(module: nn.Module, rate: float) -> Plan | None:
    """Return the plan that does what calling a module does, or None where the module has to be called."""
    known = _plans.get(id(module))
    if known is not None and known.holds(module, rate):
        return None if known.hooked else known.plan
    lowered = kind_of(module) in {"lti", "chain", "parallel"} or runs_children(module)
    return plan_of(module, rate) if lowered and not has_hooks(module) else None


def plan_of(module: nn.Module, rate: float | None) -> Plan:
    """Return the plan of a processor or an `nn.Sequential` that is being called, at a sample rate (Hz) or its own."""
    if _compiling():  # the compiler does not follow the table
        return lower(module, rate)
    known = _plans.get(id(module))
    if known is not None and known.holds(module, rate):
        return known.plan
    number = changes.number  # as it was before: an assignment in another thread in the meantime must not be missed
    with assigning:
        versions = _versions(module)
    try:
        made = _made(module, rate)
    except Exception:
        if _hold(versions):
            raise
        made = None
    if made is None or not _hold(versions):  # it may be of old values and new ones
        with assigning:
            number, versions = changes.number, _versions(module)
            made = _made(module, rate)
    plan, tensors = made
    complete = tensors is not None and all(_is_complete(version.processor()) for version in versions)
    # A plan that holds its own key would never be forgotten. A processor with memory may by way of an attribute.
    holds_itself = any(_holds(step, module, complete) for step in plan.steps)
    if tensors is not None and not holds_itself:
        _plans[id(module)] = Remembered(plan, rate, number, module, versions if complete else None, tensors)
    return plan


def _made(module: nn.Module, rate: float | None) -> tuple[Plan, list[Slot] | None]:
    """Return a new plan and the tensors it is made from; None where it must not be remembered."""
    if tensors_are_replaced() or torch.compiler.is_compiling():  # coefficients made here may be fakes
        return lower(module, rate), None
    tensors = _dependencies(module)
    with nullcontext() if tensors is None else lasting():
        plan = lower(module, rate)
    if tensors is not None:
        for step in _causal_steps(plan):
            own: list[Slot] = []
            step.is_constant = _collect(step.module, own)  # type: ignore[arg-type]
            tensors += own if step.is_constant else []
    return plan, tensors


def _versions(module: nn.Module) -> list[Version]:
    """Return the states of all processors in a module: what its plan depends on."""
    return [Version(each) for each in module.modules() if kind_of(each) is not None]


def _hold(versions: list[Version]) -> bool:
    with assigning:
        return all(version.holds() for version in versions)


def _is_complete(processor: nn.Module | None) -> bool:
    """Return whether all processors that a processor may ask for something are its children."""
    own: dict[str, Any] = {} if processor is None else vars(processor)
    return all(_holds_no_module(own.get(name)) for name in own.keys() - INTERNAL)


def _holds_no_module(value: object) -> bool:
    if isinstance(value, FunctionType):
        return value.__closure__ is None
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_holds_no_module, value))
    return isinstance(value, (*IMMUTABLE, Tensor, BuiltinFunctionType))


def _causal_steps(plan: Plan) -> Iterator[CausalStep]:
    """Yield the steps of processors with memory."""
    for each in plan.steps:
        step = each.inner if isinstance(each, LateStep) else each
        if isinstance(step, CausalStep):
            yield step
        elif isinstance(step, ParallelStep):
            for branch in step.plans:
                yield from _causal_steps(branch)


def _holds(step: Step, module: nn.Module, complete: bool) -> bool:
    """Return whether a step keeps a module alive; `complete`: whether the module's attributes do not."""
    step = step.inner if isinstance(step, LateStep) else step
    if isinstance(step, CausalStep):
        held: Any = step.module
        return held is module or (vars(held) is vars(module) and not complete)
    return isinstance(step, ModuleStep) and step.module is module


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
    own: dict[str, Any] = vars(part)
    if any(kind_of(child) is None or not _collect(child, slots) for child in children(part)):
        return False
    places: tuple[dict[str, Any], ...] = (part._parameters, part._buffers, own)
    for place in places:
        for name, value in place.copy().items():  # another thread may add an attribute meanwhile
            if place is own and name in INTERNAL:
                continue
            if isinstance(value, Tensor):
                if value.requires_grad or value.is_inference() or type(value) not in {Tensor, nn.Parameter}:
                    return False
                if is_wrapped(value):
                    return False
                slots.append(Slot(place, name))
            elif not _is_immutable(value):
                return False
    return True


def _is_immutable(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_immutable, value))
    return isinstance(value, IMMUTABLE)
