"""Which operators are only recipes made of others, and so are never counted themselves.

A trace has names without overloads. Where the overloads of a name differ, what the call itself called decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import torch

from torchwhy.counters.operators import SILENT, is_native
from torchwhy.spelling import closest
from torchwhy.trace.meaning.operators import RECIPE_IF_IT_CALLS

__all__ = ["is_known", "is_recipe", "why_never_counted"]


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
        return name in called or RECIPE_IF_IT_CALLS.get(name) in called
    return kinds == {True}


def why_never_counted(name: str) -> str | None:
    """Return why no count can hold calls of an operator of this name, or None where one can.

    None also for one of a library that this process has not loaded (`is_known`).

    >>> why_never_counted("aten::mm"), why_never_counted("somebodys::filter")
    (None, None)
    >>> why_never_counted("aten::addmmm")
    "there is no such operator, did you mean 'aten::addmm'?"
    >>> why_never_counted("aten::add.Tensor")
    "calls are counted without the overload, as 'aten::add'"
    >>> why_never_counted("aten::linear")
    'it is made of other operators, and those are counted'
    """
    namespace = name.partition("::")[0]
    known = _registered()
    if name not in known:
        if (base := name.partition(".")[0]) in known:
            return f"calls are counted without the overload, as {base!r}"
        siblings = [other for other in known if other.startswith(f"{namespace}::")]
        meant = closest(name, siblings)
        hint = f", did you mean {meant!r}?" if meant else ""
        return f"there is no such operator{hint}" if siblings else None
    if namespace in SILENT:
        return "it computes nothing, and is not counted"
    recipe = not is_native(namespace) and _kinds(name) == {True}
    return "it is made of other operators, and those are counted" if recipe else None


def is_known(name: str) -> bool:
    """Return whether this process has loaded an operator of this name."""
    return name in _registered()


def _registered() -> dict[str, dict[str, None]]:
    """Return the overloads of every operator that there is now; a library adds its own when it is loaded."""
    found: dict[str, dict[str, None]] = {}
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.partition(".")
        found.setdefault(base, {})[overload] = None
    return found


_overloads = cache(_registered)


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
