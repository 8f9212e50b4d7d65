"""The command `torchfx`: one file per subcommand, each imported only when it runs.

Exit status: 0 fine, 1 findings or some files failed, 2 misuse, 3 cannot read or run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    name="torchfx",
    help="Audio DSP for PyTorch: filter files, see what runs, try it out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def process(
    paths: Annotated[list[Path], typer.Argument(metavar="IN... OUT", help="Audio files, then a file or folder.")],
    effect: Annotated[
        list[str],
        typer.Option("--effect", "-e", metavar="NAME:PARAMETERS", help="A filter or effect; repeat for a chain."),
    ],
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing outputs.")] = False,
) -> None:
    """Run audio files through a chain of filters and effects.

    Parameters go by position or name, frequencies may carry Hz or kHz:
    torchfx process in.wav out.flac -e hibutterworth:80,order=4 -e gain:-3dB
    """
    from torchfx.cli import process as command

    raise typer.Exit(command.run(paths, effect, force))


@app.command()
def effects() -> None:
    """List the filters and effects with their parameters and defaults."""
    from torchfx.cli import effects as command

    raise typer.Exit(command.run())


@app.command()
def info() -> None:
    """Show versions, threads, instruction set and GPU, and which path serves which device."""
    from torchfx.cli import info as command

    raise typer.Exit(command.run())


@app.command()
def demo() -> None:
    """Make a recording, filter it, and show the plan, the time and the deviation from SciPy."""
    from torchfx.cli import demo as command

    raise typer.Exit(command.run())
