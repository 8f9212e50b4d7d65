"""The command line: parses, calls, renders; the work is done elsewhere."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command `torchwhy`."""
    import copy
    import os
    import sys

    # Below this level PyTorch's profiler prints a line for every start and stop into stderr.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")

    from torchwhy.cli.app import app

    named = [
        each
        for each in app.registered_commands
        if each.callback and [each.name or each.callback.__name__] == sys.argv[1:2]
    ]
    if named:  # typer reads the options of every command it knows, which takes longer than a small trace
        app = copy.copy(app)
        app.registered_commands = named
    app()
