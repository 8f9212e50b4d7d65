"""The command line: parses, calls, renders; the work is done elsewhere."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command `torchfx`."""
    from torchfx.cli.app import app

    app()
