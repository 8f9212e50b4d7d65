"""Tags: the texts of a file, such as its title."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from torchfx.audio_io.formats import output_format
from torchfx.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from soundfile import SoundFile

__all__ = ["TAGS", "checked_tags", "kept_tags", "read_tags", "write_tags"]

TAGS = (
    "title", "artist", "album", "comment", "date", "copyright", "software", "genre", "tracknumber", "license",
)  # fmt: skip
# What libsndfile 1.2.2 gives back of each. Its reader of an AIFF's software runs past the end of the text, and LAME
# writes its own name there in an MP3.
HELD = {
    "WAV": frozenset(TAGS) - {"license"},
    "AIFF": frozenset({"title", "artist", "comment", "copyright"}),
    "MP3": frozenset(TAGS) - {"copyright", "license", "software"},
}
# Bytes. libsndfile 1.2.2 skips a longer text of a WAV, refuses to read an AIFF that holds a longer one, and cuts the
# software at 127 bytes with its own name, which it appends.
LONGEST = {"WAV": 2045, "AIFF": 8189}
LONGEST_SOFTWARE = 100
ASCII = {"AIFF", "MP3"}  # other characters come back as others


def checked_tags(container: str, tags: Mapping[str, str] | None) -> dict[str, str]:
    """Return the tags that the format has a place for and that aren't empty, or raise where a text doesn't fit."""
    if tags is None:
        return {}
    if not isinstance(tags, Mapping):
        raise ArgumentTypeError(f"tags must be a mapping of texts, got {tags!r} ({type(tags).__name__})")
    for name, text in tags.items():
        if name not in TAGS:
            raise ArgumentError(f"tags must be among {', '.join(TAGS)}, got {name!r}")
        if not isinstance(text, str):
            raise ArgumentTypeError(f"tags[{name!r}] must be a text, got {text!r} ({type(text).__name__})")
    held = {name: text for name, text in tags.items() if text and name in HELD.get(container, TAGS)}
    for name, text in held.items():
        _check_text(container, name, text)
    return held


def kept_tags(
    path: str | os.PathLike[str] | BinaryIO, tags: Mapping[str, str], format: str | None = None
) -> dict[str, str]:
    """Return those of a source's tags that an output has a place for.

    Args:
        path: the output, whose suffix decides its format.
        tags: the source's.
        format: the output's format, instead of the suffix.
    """
    container = output_format(path, format)
    kept = {}
    for name, text in tags.items():
        with suppress(ArgumentError, ArgumentTypeError):
            kept.update(checked_tags(container, {name: text}))
    return kept


def _check_text(container: str, name: str, text: str) -> None:
    charset = "ASCII" if container in ASCII else "UTF-8"
    try:
        size = len(text.encode(charset))
    except UnicodeEncodeError as error:
        wrong = text[error.start]
        raise ArgumentError(f"tags[{name!r}] must be {charset} in {container} files, got {wrong!r}") from error
    if "\0" in text:
        raise ArgumentError(f"tags[{name!r}] must hold no null character, got one at {text.index(chr(0))}")
    longest = LONGEST_SOFTWARE if name == "software" else LONGEST.get(container, size)
    if size > longest:
        raise ArgumentError(f"tags[{name!r}] must be at most {longest} bytes in {container} files, got {size}")


def read_tags(container: str, file: SoundFile) -> dict[str, str]:
    """Return an open file's tags."""
    texts = {name: str(getattr(file, name)) for name in TAGS}
    return {name: text for name, text in texts.items() if text and (container, name) != ("AIFF", "software")}


def write_tags(file: SoundFile, tags: Mapping[str, str]) -> None:
    """Give tags to a file that holds no samples yet: most formats have no place behind them."""
    for name, text in tags.items():
        setattr(file, name, text)
