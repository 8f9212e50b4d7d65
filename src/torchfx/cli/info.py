"""`torchfx info`."""

from __future__ import annotations

from torchfx.cli.console import out
from torchfx.system import describe

__all__ = ["run"]


def run() -> int:
    """Print one fact a line."""
    facts = describe()
    width = max(map(len, facts))
    for name, value in facts.items():
        out.print(f"{name:<{width}}  {value}", markup=False)
    return 0
