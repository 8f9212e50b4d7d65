"""The command line: parses, calls, renders; the work is done elsewhere."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command `torchfx`."""
    import copy
    import sys

    from torchfx.cli.app import app
    from torchfx.cli.console import lose_output, output_lost

    named = [each for each in app.registered_commands if each.callback and [each.callback.__name__] == sys.argv[1:2]]
    if named:  # typer reads the options of every command it knows, which takes longer than a short file
        app = copy.copy(app)
        app.registered_commands = named
    try:
        app()
    except SystemExit as ended:
        if output_lost():
            raise SystemExit(3) from ended
        raise
    except OSError as error:  # of help, which typer prints
        lose_output(error)
        output_lost()
        raise SystemExit(3) from error
