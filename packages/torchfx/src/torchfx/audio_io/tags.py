"""Tags: the texts of a file, such as its title."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO

from torchfx.audio_io.aac import METADATA
from torchfx.audio_io.formats import Chapter, output_format
from torchfx.audio_io.mutagen_tags import COMMENTED, HOLDING, has_mutagen, read_more, warn_of_loss
from torchfx.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from soundfile import SoundFile

    from torchfx.audio_io.source import Source

__all__ = ["TAGS", "checked_tags", "fitting_tags", "kept_tags", "read_tags", "write_tags"]

LIBSNDFILES = (
    "title", "artist", "album", "comment", "date", "copyright", "software", "genre", "tracknumber", "license",
)  # fmt: skip
TAGS = (*LIBSNDFILES, "albumartist", "composer", "discnumber")
# What libsndfile 1.2.2 gives back of each; mutagen writes the rest, except an MP3's software. Its reader of an AIFF's
# software runs past the end of the text, and LAME writes its own name there in an MP3.
HELD = {
    "WAV": frozenset(LIBSNDFILES) - {"license"},
    "AIFF": frozenset({"title", "artist", "comment", "copyright"}),
    "MP3": frozenset(LIBSNDFILES) - {"copyright", "license", "software"},
    "M4A": frozenset(METADATA),
    "AAC": frozenset(),
}
# Bytes. libsndfile 1.2.2 skips a longer text of a WAV, refuses to read an AIFF that holds a longer one, and cuts the
# software at 127 bytes with its own name, which it appends.
LONGEST = {"WAV": 2045, "AIFF": 8189}
LONGEST_SOFTWARE = 100
ASCII = {"AIFF", "MP3"}  # other characters come back as others
# What only mutagen reads, as a file's first bytes show it.
COMMENT_MARKS = (b"CHAPTER0", b"ALBUMARTIST=", b"COMPOSER=", b"DISCNUMBER=")
FRAME_MARKS = (b"CHAP", b"TPE2", b"TCOM", b"TPOS")


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
    held = {name: text for name, text in tags.items() if text and (container, name) != ("MP3", "software")}
    if container in HOLDING and has_mutagen():
        for name, text in held.items():
            _check_characters(container, name, text, "UTF-8")
        return held
    fitting = {name: text for name, text in held.items() if _has_place(container, name)}
    for name, text in fitting.items():
        _check_text(container, name, text)
    if container in HOLDING and len(fitting) < len(held):
        warn_of_loss()
    return fitting


def fitting_tags(container: str, tags: Mapping[str, str]) -> dict[str, str]:
    """Return those of checked tags that libsndfile writes and reads back."""
    return {name: text for name, text in tags.items() if _has_place(container, name) and _fits(container, name, text)}


def _has_place(container: str, name: str) -> bool:
    return name in HELD.get(container, LIBSNDFILES)


def _fits(container: str, name: str, text: str) -> bool:
    try:
        _check_text(container, name, text)
    except ArgumentError:
        return False
    return True


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
    kept: dict[str, str] = {}
    for name, text in tags.items():
        kept |= _kept_tag(container, name, text)
    return kept


def _kept_tag(container: str, name: str, text: str) -> dict[str, str]:
    try:
        return checked_tags(container, {name: text})
    except ArgumentTypeError:
        return {}
    except ArgumentError:
        if name in TAGS and container in HOLDING and not has_mutagen():
            warn_of_loss()
        return {}


def _check_text(container: str, name: str, text: str) -> None:
    size = _check_characters(container, name, text, "ASCII" if container in ASCII else "UTF-8")
    longest = LONGEST_SOFTWARE if name == "software" else LONGEST.get(container, size)
    if size > longest:
        raise ArgumentError(f"tags[{name!r}] must be at most {longest} bytes in {container} files, got {size}")


def _check_characters(container: str, name: str, text: str, charset: str) -> int:
    """Return how many bytes a text takes, or raise where the character set lacks one of its characters."""
    try:
        size = len(text.encode(charset))
    except UnicodeEncodeError as error:
        wrong = text[error.start]
        raise ArgumentError(f"tags[{name!r}] must be {charset} in {container} files, got {wrong!r}") from error
    if "\0" in text:
        raise ArgumentError(f"tags[{name!r}] must hold no null character, got one at {text.index(chr(0))}")
    return size


def read_tags(container: str, file: SoundFile, source: Source) -> tuple[dict[str, str], tuple[Chapter, ...]]:
    """Return the tags and the chapters of a file that libsndfile has opened.

    Warns:
        UserWarning: some need mutagen, which is not installed; or it cannot read them.
    """
    texts = {name: str(getattr(file, name)) for name in LIBSNDFILES}
    found = {name: text for name, text in texts.items() if text and (container, name) != ("AIFF", "software")}
    if container not in HOLDING or (container in {"WAV", "AIFF"} and not source.chunks.with_id3):
        return found, ()
    if not has_mutagen():
        if container in {"WAV", "AIFF"} or _shows_more(container, source.start_and_size()[0]):
            warn_of_loss()
        return found, ()
    with source.from_start() as stream:
        more, chapters = read_more(container, file.subtype, stream, source.name)
    return {**more, **found}, chapters


def _shows_more(container: str, start: bytes) -> bool:
    if container in COMMENTED:
        return any(mark in start.upper() for mark in COMMENT_MARKS)
    return start.startswith(b"ID3") and any(mark in start for mark in FRAME_MARKS)


def write_tags(file: SoundFile, tags: Mapping[str, str]) -> None:
    """Give tags to a file that holds no samples yet: most formats have no place after them."""
    for name, text in tags.items():
        setattr(file, name, text)
