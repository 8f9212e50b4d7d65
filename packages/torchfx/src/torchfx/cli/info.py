"""`torchfx info`: of this installation, or of audio files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfx import audio_io
from torchfx.cli.console import check_format, complain, show_data, show_table, warnings_said
from torchfx.errors import ArgumentError, AudioFileError

if TYPE_CHECKING:
    from torchfx.loudness import FileLoudness

__all__ = ["Answer", "run"]

COLUMNS: tuple[str, ...] = ("format", "encoding", "rate Hz", "channels", "seconds")
BITRATE = "kbit/s"  # a column where a file has one
LEVELS = ("integrated LUFS", "true peak dBTP")


@dataclass(frozen=True)
class Answer:
    """The output of `--format json`."""

    schema: int
    files: dict[str, audio_io.AudioInfo]
    loudness: dict[str, FileLoudness | None] | None


@dataclass(frozen=True)
class Installation:
    """The output of `--format json` without files."""

    schema: int
    facts: dict[str, str]


def run(paths: list[str], form: str, loudness: bool = False) -> int:
    """Print one fact a line, or a row for each file; return 0, 1 when some could not be read, 2, or 3 when none."""
    if loudness and not paths:
        return complain("--loudness needs files", 2)
    try:
        check_format(form)
    except ArgumentError as error:
        return complain(error, 2)
    if not paths:
        return _installation(form)
    with warnings_said():
        read = {path: _read(path) for path in paths}
    found = {path: each for path, each in read.items() if each is not None}
    if not found:
        return 3
    measured, levels = None, {}
    if loudness:
        from torchfx.cli import stats

        measured = {path: stats.measured(path) for path in found}
        levels = {path: stats.levels(each) for path, each in measured.items()}
    if form == "json":
        show_data(Answer(1, found, measured))
    else:
        lossy = any(each.bitrate is not None for each in found.values())
        titles = (*COLUMNS, *((BITRATE,) if lossy else ()), *(LEVELS if loudness else ()))
        rows = [(path, *_cells(each, lossy), *levels.get(path, ()), _tags(each)) for path, each in found.items()]
        numbers = [title for title in titles if title not in {"format", "encoding"}]
        show_table(("file", *titles, "tags"), rows, numbers=numbers)
    return 0 if len(found) == len(read) and None not in (measured or {}).values() else 1


def _read(path: str) -> audio_io.AudioInfo | None:
    try:
        return audio_io.info(path)
    except AudioFileError as error:
        complain(error, 1)
        return None


def _cells(found: audio_io.AudioInfo, lossy: bool) -> tuple[str, ...]:
    cells = found.format, found.encoding, str(found.fs), str(found.channels), f"{found.frames / found.fs:.2f}"
    if not lossy:
        return cells
    return (*cells, "-" if found.bitrate is None else f"{found.bitrate / 1000:.0f}")


def _tags(found: audio_io.AudioInfo) -> str:
    return ", ".join(f"{name}: {text}" for name, text in found.tags.items()) or "-"


def _installation(form: str) -> int:
    from torchfx.system import describe

    facts = describe()
    if form == "json":
        show_data(Installation(1, facts))
    else:
        show_table(("", ""), list(facts.items()))
    return 0
