"""`torchfx spectrogram`."""

from __future__ import annotations

import sys
from pathlib import Path

from torchfx.cli.console import answer, complain, shows_unicode, warnings_said, width, write_file
from torchfx.errors import ArgumentError, AudioFileError, TorchFXError
from torchfx.spectrogram import as_png, as_text, spectrogram

__all__ = ["run"]


def run(source: str, png: Path | None, mel: int | None) -> int:
    """Draw a file in the terminal or as a picture; return 0, 2 for misuse, 3 where it cannot be read or written."""
    try:
        with warnings_said():
            found = spectrogram(source, mel=mel)
    except ArgumentError as error:
        return complain(error, 2)
    except AudioFileError as error:
        return complain(error, 3)
    if png is None:
        answer(as_text(found, min(max(width(), 40), 200), unicode=shows_unicode(sys.stdout)) + "\n")
        return 0
    try:
        write_file(png, as_png(found, source))
    except (TorchFXError, OSError) as error:
        return complain(f"cannot write {png}: {getattr(error, 'strerror', None) or error}", 3)
    return 0
