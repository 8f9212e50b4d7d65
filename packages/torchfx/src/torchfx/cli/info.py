"""`torchfx info`: of this installation, or of audio files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfx import audio_io
from torchfx.cli.documents import show
from torchfx.cli.streams import answer, complain, warnings_said
from torchfx.errors import ArgumentError, AudioFileError
from torchfx.profiler.present.document import Column, Document, File, Row, Table
from torchfx.profiler.present.formats import check_format

if TYPE_CHECKING:
    from torchfx.loudness import FileLoudness

__all__ = ["Answer", "run"]

COLUMNS: tuple[str, ...] = ("format", "encoding", "rate Hz", "channels", "seconds")
LEVELS = ("integrated LUFS", "true peak dBTP")


@dataclass(frozen=True)
class Answer:
    """What `--format json` prints."""

    schema: int
    files: dict[str, audio_io.AudioInfo]
    loudness: dict[str, FileLoudness | None] | None


def run(paths: list[str], form: str, loudness: bool = False) -> int:
    """Print one fact a line, or a row for each file; return 0, 1 when some could not be read, 2, or 3 when none."""
    if loudness and not paths:
        return complain("--loudness needs files", 2)
    if not paths:
        return _installation()
    try:
        check_format(form)
    except ArgumentError as error:
        return complain(error, 2)
    with warnings_said():
        read = {path: _read(path) for path in paths}
    found = {path: each for path, each in read.items() if each is not None}
    if not found:
        return 3
    titles, measured, levels = COLUMNS, None, {}
    if loudness:
        from torchfx.cli import stats

        titles, measured = (*COLUMNS, *LEVELS), {path: stats.measured(path) for path in found}
        levels = {path: stats.levels(each) for path, each in measured.items()}
    columns = (Column("file"), *(Column(name, number=name not in {"format", "encoding"}) for name in titles))
    rows = tuple(Row((File(path), *_cells(each), *levels.get(path, ()), _tags(each))) for path, each in found.items())
    table = Table((*columns, Column("tags")), rows, noun=("file", "files"))
    show(Document("Audio files", (table,), Answer(1, found, measured), command="info"), form, whole=True)
    return 0 if len(found) == len(read) and None not in (measured or {}).values() else 1


def _read(path: str) -> audio_io.AudioInfo | None:
    try:
        return audio_io.info(path)
    except AudioFileError as error:
        complain(error, 1)
        return None


def _cells(found: audio_io.AudioInfo) -> tuple[str, ...]:
    return found.format, found.encoding, str(found.fs), str(found.channels), f"{found.frames / found.fs:.2f}"


def _tags(found: audio_io.AudioInfo) -> str:
    return ", ".join(f"{name}: {text}" for name, text in found.tags.items()) or "-"


def _installation() -> int:
    from torchfx.system import describe

    facts = describe()
    width = max(map(len, facts))
    # In one piece: a reader that leaves after the line it looked for breaks no pipe.
    answer("".join(f"{name:<{width}}  {value}\n" for name, value in facts.items()))
    return 0
