"""`torchfx stats`."""

from __future__ import annotations

from dataclasses import dataclass

from torchfx.cli.console import check_format, complain, show_data, show_table
from torchfx.errors import ArgumentError, AudioFileError
from torchfx.loudness import AlbumLoudness, FileLoudness, Meter, album_of, file_of, metered

__all__ = ["Answer", "levels", "measured", "run"]

COLUMNS = ("integrated LUFS", "range LU", "momentary LUFS", "short-term LUFS", "true peak dBTP", "seconds")


@dataclass(frozen=True)
class Answer:
    """The output of `--format json`; the loudness of silence is null there, as of a file that is too short."""

    schema: int
    files: dict[str, FileLoudness]
    album: AlbumLoudness | None = None


def run(paths: list[str], form: str, album: bool = False) -> int:
    """Measure files; return 0, 1 when some could not be, 2 for misuse, 3 when none could."""
    try:
        check_format(form)
    except ArgumentError as error:
        return complain(error, 2)
    meters = {path: _metered(path) for path in paths}
    read = {path: meter for path, meter in meters.items() if meter is not None}
    if not read:
        return 3
    found = {path: file_of(meter) for path, meter in read.items()}
    together = album_of(list(read.values())) if album and len(read) == len(meters) else None
    if album and together is None:
        complain("the album is not measured, because some files cannot be", 1)
    if form == "json":
        show_data(Answer(1, found, together))
    else:
        rows = [(path, *_cells(each)) for path, each in found.items()]
        rows += [] if together is None else [("album", *_cells(together))]
        show_table(("file", *COLUMNS), rows, caption="Loudness, with momentary and short-term maxima", numbers=COLUMNS)
    return 0 if len(found) == len(meters) else 1


def measured(path: str) -> FileLoudness | None:
    """Return the loudness of a file, or None with a complaint."""
    meter = _metered(path)
    return None if meter is None else file_of(meter)


def _metered(path: str) -> Meter | None:
    """Return a meter that has measured a file, or None with a complaint."""
    try:
        return metered(path)
    except AudioFileError as error:
        complain(error, 1)
    except ArgumentError as error:
        complain(f"{path}: {error}", 1)
    return None


def _cells(found: FileLoudness | AlbumLoudness) -> tuple[str, ...]:
    values = (
        found.integrated_lufs,
        found.loudness_range_lu,
        found.max_momentary_lufs,
        found.max_short_term_lufs,
        found.true_peak_dbtp,
    )
    return (*map(_decibels, values), f"{found.duration_s:.2f}")


def levels(found: FileLoudness | None) -> tuple[str, str]:
    """Return integrated loudness and true peak as tables show them."""
    return ("-", "-") if found is None else (_decibels(found.integrated_lufs), _decibels(found.true_peak_dbtp))


def _decibels(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
