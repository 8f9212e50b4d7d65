"""Errors of files, each in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchfx.errors import AudioFileError, TorchFXError

__all__ = ["file_errors", "library_errors", "shown"]


def shown(file: Any) -> str:
    """Return the name of a path or a file object as a message shows it: in one line, whatever it holds."""
    if not isinstance(file, (str, bytes, os.PathLike)):
        named = getattr(file, "name", None)
        file = named if isinstance(named, (str, bytes)) else f"the {type(file).__name__} object"
    name = os.fsdecode(file)
    return name if name.isprintable() else repr(name)[1:-1]


@contextmanager
def file_errors(verb: str, name: str) -> Iterator[None]:
    """Raise errors of the system and of libsndfile as this package's, in one line: "cannot <verb> <name>: ..."."""
    try:
        yield
    except TorchFXError:
        raise
    except library_errors() as error:
        text = getattr(error, "error_string", None) or getattr(error, "strerror", None) or str(error)
        text = " ".join(text.split()).rstrip(".").removeprefix("Error : ")
        if text in {"", "System error"}:
            text = "the system refused" + ("; is the disk full?" if verb == "write" else "")
        if text == "flac decoder lost sync":
            text += "; the file was cut or is damaged"
        if text == "Internal psf_fseek() failed":
            text = "the file was cut or is damaged"
        raise AudioFileError(f"cannot {verb} {name}: {text}") from error


def library_errors() -> tuple[type[Exception], ...]:
    """Return what the libraries raise; soundfile's assertions say that fewer frames were written than requested."""
    import soundfile

    errors = [(sys.modules.get("mutagen"), "MutagenError"), (sys.modules.get("av"), "FFmpegError")]
    # A module that is not loaded, or that another thread is still loading, raises nothing.
    loaded = [kind for module, name in errors if (kind := getattr(module, name, None)) is not None]
    return (OSError, ValueError, AssertionError, soundfile.SoundFileError, *loaded)
