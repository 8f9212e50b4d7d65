"""Questions people ask of a trace; each answer is a `Table`. `Trace` has every one of them as a method.

A question is loaded when it is first asked: a report on a trace needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Question"]


class Question:
    """A question as a method of a class. It puts the function in its own place when it is first looked up.

    Args:
        name: the file in this package, and the function in it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __set_name__(self, owner: type, method: str) -> None:
        self._owner, self._method = owner, method

    def __get__(self, instance: object, owner: type) -> Any:
        function = getattr(import_module(f"{__name__}.{self._name}"), self._name)
        setattr(self._owner, self._method, function)
        return getattr(owner if instance is None else instance, self._method)
