"""Acts when the program imports a module, so that nothing is imported before the program does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["after_import"]


def after_import(name: str, act: Callable[[ModuleType], object]) -> None:
    """Call `act(module)` as soon as the module has been loaded: now if it is, else when the program imports it.

    Loading PyTorch before the program would fix settings that it makes first, such as `OMP_NUM_THREADS`.
    """
    module = sys.modules.get(name)
    if module is not None:
        act(module)
    else:
        sys.meta_path.insert(0, _Finder(name, act))


class _Finder(MetaPathFinder):
    """Finds one module, through everybody else, and hands out a loader that says when it is loaded."""

    def __init__(self, name: str, act: Callable[[ModuleType], object]) -> None:
        self._name, self._act = name, act
        self._asks_others = False  # among them may be another of these, for the same module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name or self._asks_others:
            return None
        self._asks_others = True
        try:
            specs = (finder.find_spec(fullname, path, target) for finder in sys.meta_path)
            spec = next((spec for spec in specs if spec is not None), None)
        finally:
            self._asks_others = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec

    def loaded(self, module: ModuleType) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._act(module)


class _Loader(Loader):
    """Loads with the real loader and puts it back."""

    def __init__(self, real: Any, finder: _Finder) -> None:
        self._real, self._finder = real, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        spec.loader = self._real
        created: ModuleType | None = self._real.create_module(spec)
        spec.loader = self
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        self._finder.loaded(module)
