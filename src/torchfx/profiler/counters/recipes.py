"""Which operators are only recipes made of others, judged by what a trace tells of a call.

A trace has names without overloads. Where the overloads of a name differ, what the call itself called decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import torch

from torchfx.profiler.counters.operators import SILENT, is_native

__all__ = ["is_recipe"]

_RECIPE_IF_IT_CALLS = {
    "aten::max": "aten::maximum",
    "aten::min": "aten::minimum",
    "aten::repeat_interleave": "aten::clone",
    "aten::split": "aten::split_with_sizes",
    "aten::where": "aten::nonzero_numpy",
}


def is_recipe(name: str, overload: str, called: Iterable[str]) -> bool:
    """Return whether a call counts as the calls it made, not itself.

    Args:
        name: `aten::linear`. overload: its overload, empty where it is the default or not recorded.
        called: the names of the operators it called directly.

    >>> is_recipe("aten::linear", "", ["aten::addmm"]), is_recipe("aten::relu", "", ["aten::clamp_min"])
    (True, False)
    >>> is_recipe("aten::max", "", []), is_recipe("aten::max", "", ["aten::maximum"])
    (False, True)
    """
    if name.partition("::")[0] in SILENT:
        return True
    called = set(called)
    if is_native(name.partition("::")[0]):
        return name in called  # a kernel for autograd that runs the operator itself
    if overload and overload in _overloads().get(name, {}):
        return _is_composite(f"{name}.{overload}")
    kinds = _kinds(name)
    if len(kinds) == 2:  # the recipes among the overloads call another one, or the operator they stand for
        return name in called or _RECIPE_IF_IT_CALLS.get(name) in called
    return kinds == {True}


@cache
def _overloads() -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {}
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.partition(".")
        found.setdefault(base, {})[overload] = None
    return found


@cache
def _kinds(name: str) -> frozenset[bool]:
    """Return whether the overloads of a name are recipes: all, none, or some (both values)."""
    overloads = _callable(_overloads().get(name, {}))
    return frozenset(_is_composite(f"{name}.{overload}" if overload else name) for overload in overloads)


def _callable(overloads: Iterable[str]) -> list[str]:
    """Leave out those that write into a given tensor or take named dimensions: hardly anyone calls them."""
    usual = [name for name in overloads if "out" not in name and "ame" not in name and name != "grad_input"]
    return usual or list(overloads)


@cache
def _is_composite(name: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"))
