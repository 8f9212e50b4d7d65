"""`torchfx info`."""

from __future__ import annotations

from torchfx.cli.console import out
from torchfx.system import describe

__all__ = ["run"]


def run() -> int:
    """Print one fact a line."""
    facts = describe()
    width = max(map(len, facts))
    # In one piece: a reader that leaves after the line it looked for breaks no pipe.
    out.print("\n".join(f"{name:<{width}}  {value}" for name, value in facts.items()), markup=False)
    return 0
