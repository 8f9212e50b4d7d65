"""`torchfx stats`."""

from __future__ import annotations

from dataclasses import dataclass

from torchfx.cli.console import check_format, complain, show_data, show_table
from torchfx.errors import ArgumentError, AudioFileError
from torchfx.loudness import FileLoudness, measure_file

__all__ = ["Answer", "levels", "measured", "run"]

COLUMNS = ("integrated LUFS", "range LU", "momentary LUFS", "short-term LUFS", "true peak dBTP", "seconds")


@dataclass(frozen=True)
class Answer:
    """What `--format json` prints; a loudness of silence is null there, like one of a file that is too short."""

    schema: int
    files: dict[str, FileLoudness]


def run(paths: list[str], form: str) -> int:
    """Measure files; return 0, 1 when some could not be, 2 for misuse, 3 when none could."""
    try:
        check_format(form)
    except ArgumentError as error:
        return complain(error, 2)
    answers = {path: measured(path) for path in paths}
    found = {path: each for path, each in answers.items() if each is not None}
    if not found:
        return 3
    if form == "json":
        show_data(Answer(1, found))
    else:
        rows = [(path, *_cells(each)) for path, each in found.items()]
        show_table(("file", *COLUMNS), rows, caption="Loudness, with momentary and short-term maxima", numbers=COLUMNS)
    return 0 if len(found) == len(answers) else 1


def measured(path: str) -> FileLoudness | None:
    """Return what a file measures, or None with a complaint."""
    try:
        return measure_file(path)
    except AudioFileError as error:
        complain(error, 1)
    except ArgumentError as error:
        complain(f"{path}: {error}", 1)
    return None


def _cells(found: FileLoudness) -> tuple[str, ...]:
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
