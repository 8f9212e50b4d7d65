"""What to say of a trace: facts and a verdict as plain values, and the views drawn from them.

Names are loaded when they are first used: many who want a style or a sentence need no report.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchfx.profiler.report.formats import FORMATS, render
    from torchfx.profiler.report.report import SCHEMA, describe
    from torchfx.profiler.report.style import PLAIN, Style

__all__ = ["FORMATS", "PLAIN", "SCHEMA", "Style", "describe", "render"]

_HOMES = {
    "FORMATS": "formats",
    "PLAIN": "style",
    "SCHEMA": "report",
    "Style": "style",
    "describe": "report",
    "render": "formats",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
