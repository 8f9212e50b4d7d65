"""`torchfx spectrogram`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from torchfx.cli.console import answer, complain, shows_unicode, width, write_file
from torchfx.errors import AudioFileError, TorchFXError
from torchfx.spectrogram import as_text, plot, spectrogram

__all__ = ["run"]


def run(source: str, png: Path | None) -> int:
    """Draw a file in the terminal or as a picture; return 0, or 3 where it cannot be read or the picture written."""
    try:
        found = spectrogram(source)
    except AudioFileError as error:
        return complain(error, 3)
    if png is None:
        answer(as_text(found, min(max(width(), 40), 200), unicode=shows_unicode(sys.stdout)) + "\n")
        return 0
    try:
        picture = io.BytesIO()
        plot(found, source).savefig(picture, format="png", dpi=110)
        write_file(png, picture.getvalue())
    except (TorchFXError, OSError) as error:
        return complain(f"cannot write {png}: {getattr(error, 'strerror', None) or error}", 3)
    return 0
