"""Errors of files, each in one line."""

from __future__ import annotations

import os
from typing import Any

from torchfx.errors import AudioFileError

__all__ = ["file_error", "library_errors", "shown"]


def shown(file: Any) -> str:
    """Return the name of a path or a file object as a message shows it: in one line, whatever it holds."""
    if not isinstance(file, (str, bytes, os.PathLike)):
        named = getattr(file, "name", None)
        file = named if isinstance(named, (str, bytes)) else f"the {type(file).__name__} object"
    name = os.fsdecode(file)
    return name if name.isprintable() else repr(name)[1:-1]


def file_error(verb: str, name: str, error: Exception) -> AudioFileError:
    """Return the error of the system or of libsndfile as this package's; one that is so already stays as it is."""
    if isinstance(error, AudioFileError):
        return error
    text = getattr(error, "error_string", None) or getattr(error, "strerror", None) or str(error)
    text = " ".join(text.split()).rstrip(".").removeprefix("Error : ")
    if text in {"", "System error"}:
        text = "the system refused" + ("; is the disk full?" if verb == "write" else "")
    return AudioFileError(f"cannot {verb} {name}: {text}")


def library_errors() -> tuple[type[Exception], ...]:
    """Return what soundfile raises; the assertions among it say that fewer frames were written than asked for."""
    import soundfile

    return (OSError, ValueError, AssertionError, soundfile.SoundFileError)
