"""Which files an archive has, and where each result goes."""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

from torchfx import audio_io
from torchfx.distributed.feature_files import FEATURE_FORMATS
from torchfx.errors import ArgumentError, AudioFileError

__all__ = [
    "STREAM",
    "Arrivals",
    "Job",
    "Source",
    "collisions",
    "file_system",
    "find",
    "format_of",
    "is_url",
    "output_format",
    "plan_outputs",
    "stamp",
]

STREAM = "-"  # stdin or stdout
SUFFIXES = {*audio_io.FORMATS, ".w64", ".caf", ".au", ".rf64"} - {".raw"}
TABLES = {".csv", ".parquet"}
NAMED = {suffix: name.lower() for suffix, name in audio_io.FORMATS.items()} | {
    suffix: name for name, suffix in FEATURE_FORMATS.items()
}
"""The format that each suffix of an output names."""


@dataclass(frozen=True)
class Source:
    """A file to process.

    Attributes:
        path: a local path, a URL, or "-" for stdin.
        name: its name below the folder that was requested, with "/" between folders.
    """

    path: str
    name: str


@dataclass(frozen=True)
class Job:
    """A file to read and the one to write; each a local path, a URL, or "-" for stdin or stdout."""

    source: str
    target: str


def is_url(path: str) -> bool:
    """Whether a path is fsspec's to open, as in "s3://bucket/talk.wav"."""
    return "://" in path


def file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path there.

    Raises:
        ArgumentError: fsspec or the package for the URL's protocol is not installed.
    """
    try:
        from fsspec.core import url_to_fs

        found: tuple[Any, str] = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ArgumentError(f"{url} needs fsspec and its protocol's package: pip install fsspec ({error})") from error
    return found


def find(where: str | os.PathLike[str], recursive: bool = False) -> list[Source]:
    """List the audio files of a folder, a glob, or a table, sorted by name; a file is listed itself.

    Args:
        where: a local path or a URL. A table is a .csv or .parquet file with a column "path"; what it names is relative
            to the table's folder.
        recursive: whether the folders in a folder count, too.

    Raises:
        ArgumentError: there are no audio files; a table without a column "path"; a URL without fsspec.
        AudioFileError: a table that cannot be read.
    """
    path = os.fspath(where)
    if path == STREAM:
        return [Source(path, path)]
    found = _find_remote(path, recursive) if is_url(path) else _find_local(path, recursive)
    if not found:
        advice = "" if recursive else "; --recursive (recursive=True) looks into its folders"
        raise ArgumentError(f"{path} has no audio files{advice}")
    return sorted(found, key=lambda source: source.name)


def _find_local(path: str, recursive: bool) -> list[Source]:
    if Path(path).is_dir():
        return _below(path, _walked(path, recursive))
    if not os.path.lexists(path) and glob.has_magic(path):
        names = [name for name in glob.glob(path, recursive=True) if Path(name).is_file()]  # noqa: PTH207
        fixed = Path(*takewhile(lambda part: not glob.has_magic(part), Path(path).parts))
        return _below(fixed, names)
    if Path(path).suffix.lower() in TABLES:
        folder = os.path.dirname(path)  # noqa: PTH120
        return _named(folder, (os.path.join(folder, name) for name in _rows(path)))  # noqa: PTH118
    return [Source(path, os.path.basename(path))]  # noqa: PTH119


def _walked(folder: str, recursive: bool) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if recursive else []
        for name in names:
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in SUFFIXES:  # noqa: PTH122
                yield os.path.join(place, name)  # noqa: PTH118


def _below(folder: str | Path, paths: Iterable[str]) -> list[Source]:
    return [Source(path, Path(os.path.relpath(path, folder)).as_posix()) for path in paths]


def _named(folder: str, paths: Iterable[str]) -> list[Source]:
    """Name what a table lists: below its folder, or below what the files have in common."""
    listed = list(dict.fromkeys(paths))
    local = [path for path in listed if not is_url(path)]
    absolute = [os.path.abspath(path) for path in local]  # noqa: PTH100
    top = os.path.abspath(folder or ".")  # noqa: PTH100
    if any(not Path(path).is_relative_to(top) for path in absolute):
        top = os.path.commonpath([os.path.dirname(path) for path in absolute])  # noqa: PTH120
    remote = [Source(path, PurePosixPath(path.partition("://")[2]).name) for path in listed if is_url(path)]
    return _below(top, local) + remote


def _find_remote(url: str, recursive: bool) -> list[Source]:
    system, path = file_system(url)
    if glob.has_magic(path) and not system.exists(path):
        fixed = path[: min(path.index(sign) for sign in "*?[" if sign in path)].rpartition("/")[0]
        paths = [name for name in system.glob(path) if system.isfile(name)]
    elif system.isdir(path):
        fixed = path
        paths = system.find(path, maxdepth=None if recursive else 1)
        paths = [name for name in paths if PurePosixPath(name).suffix.lower() in SUFFIXES]
    elif PurePosixPath(path).suffix.lower() in TABLES:
        folder = url.rpartition("/")[0]
        return _named("", (name if is_url(name) else f"{folder}/{name}" for name in _rows(url)))
    else:
        return [Source(url, PurePosixPath(path).name)]
    return [Source(system.unstrip_protocol(name), name[len(fixed) :].lstrip("/")) for name in paths]


def _rows(table: str) -> list[str]:
    """Return the column "path" of a CSV or Parquet file."""
    try:
        if is_url(table):
            system, path = file_system(table)
            opened = system.open(path, "rb")
        else:
            opened = open(table, "rb")  # noqa: PTH123, SIM115  (closed below)
        with opened as file:
            if table.lower().endswith(".csv"):
                rows = csv.DictReader(file.read().decode("utf-8-sig").splitlines())
                return _checked_column(table, rows.fieldnames or (), lambda: [row["path"] for row in rows])
            try:
                from pyarrow import parquet
            except ImportError as error:
                raise ArgumentError(f"{table} needs the package pyarrow: pip install pyarrow") from error
            read = parquet.read_table(file)
            return _checked_column(table, read.column_names, lambda: read.column("path").to_pylist())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise AudioFileError(f"cannot read {table}: {getattr(error, 'strerror', None) or error}") from error


def _checked_column(table: str, names: Sequence[str], values: Any) -> list[str]:
    if "path" not in names:
        raise ArgumentError(f'{table} must have a column "path", got {", ".join(names) or "no columns"}')
    return [str(value) for value in values() if value]


def format_of(path: str) -> str | None:
    """Return the format that a path's suffix names, such as "flac", or None."""
    return NAMED.get(os.path.splitext(path)[1].lower())  # noqa: PTH122


def output_format(output: str | os.PathLike[str]) -> str | None:
    """Return the format that an output's suffix names, or None for a folder, stdout and other suffixes."""
    path = os.fspath(output)
    named = format_of(path)
    try:
        return None if named is None or _is_folder(path)[0] else named
    except OSError:  # a name that is too long; `plan_outputs` reports it
        return named


def plan_outputs(
    sources: Sequence[Source], output: str | os.PathLike[str], suffix: str | None = None, folder: bool = False
) -> list[Job]:
    """Say where each source goes: one source to a file, or any number into a folder under their own names.

    A folder exists as one, ends in a slash, or has no suffix.

    Args:
        sources: what to read.
        output: a local path, a URL, or "-" for stdout.
        suffix: of the outputs in a folder, such as ".flac"; by default each source's.
        folder: whether the output must be a folder, since the sources come from one.

    Raises:
        ArgumentError: several sources and an output that is, or would be named as, a file.
    """
    path = os.fspath(output)
    if path == STREAM and len(sources) == 1:
        return [Job(sources[0].path, STREAM)]
    if path == STREAM:
        raise ArgumentError(f"OUT must be a folder for {len(sources)} inputs, got - (stdout)")
    try:
        is_folder, exists = _is_folder(path)
    except OSError as error:  # a name that is too long
        raise AudioFileError(f"cannot write {path}: {error.strerror}") from error
    is_folder = is_folder or (not exists and (path.endswith(("/", "\\")) or not os.path.splitext(path)[1]))  # noqa: PTH122
    if not is_folder and len(sources) == 1 and not folder:
        return [Job(sources[0].path, path)]
    if not is_folder and (exists or format_of(path)):
        raise ArgumentError(f"OUT must be a folder for {len(sources)} inputs, got the file {path}")
    if any(source.path == STREAM for source in sources):
        raise ArgumentError("OUT must be a file or - where the input is stdin")
    return [Job(source.path, _joined(path, source.name, suffix)) for source in sources]


def _is_folder(path: str) -> tuple[bool, bool]:
    """Whether a path is a folder, and whether it is there."""
    if is_url(path):
        system, place = file_system(path)
        return system.isdir(place), system.exists(place)
    return Path(path).is_dir(), Path(path).exists()


def _joined(folder: str, name: str, suffix: str | None) -> str:
    named = name if suffix is None else str(PurePosixPath(name).with_suffix(suffix))
    return f"{folder.rstrip('/')}/{named}" if is_url(folder) else os.path.join(folder, named)  # noqa: PTH118


def collisions(jobs: Sequence[Job]) -> dict[Job, ArgumentError]:
    """Return why jobs collide: two have one output, or an output is another's source."""
    makers: dict[str, list[str]] = {}
    for job in jobs:
        makers.setdefault(job.target, []).append(job.source)
    real = _real_paths()
    read = {real(job.source): job.source for job in jobs if not is_url(job.source)}
    found: dict[Job, ArgumentError] = {}
    for job in jobs:
        same = [each for each in makers[job.target] if each != job.source]
        replaced = None if job.target == STREAM or is_url(job.target) else read.get(real(job.target))
        if same:
            found[job] = ArgumentError(f"{job.source}: its output {job.target} would be that of {same[0]}, too")
        elif replaced not in (None, job.source):
            found[job] = ArgumentError(f"{job.source}: its output {job.target} would replace another input")
    return found


def _real_paths() -> Callable[[str], str]:
    """Return `os.path.realpath` for many files of few folders, each resolved once."""
    folders = cache(os.path.realpath)

    def real(path: str) -> str:
        if os.path.islink(path):  # noqa: PTH114
            return os.path.realpath(path)
        folder, name = os.path.split(path)
        return os.path.join(folders(folder), name)  # noqa: PTH118

    return real


def stamp(path: str) -> tuple[int, str]:
    """Return what changes with a file: its size in bytes, and its time of change.

    Raises:
        AudioFileError: it cannot be read.
    """
    try:
        if is_url(path):
            system, place = file_system(path)
            facts = system.info(place)
            changed = next((facts[key] for key in ("mtime", "LastModified", "ETag", "created") if key in facts), "")
            return int(facts["size"] or 0), str(changed)
        status = os.stat(path)  # noqa: PTH116
    except FileNotFoundError as error:
        raise AudioFileError(f"cannot read {path}: no such file") from error
    except OSError as error:
        raise AudioFileError(f"cannot read {path}: {error.strerror or error}") from error
    return status.st_size, str(status.st_mtime_ns)


class Arrivals:
    """The files that arrive in a folder. A file has arrived when size and time of change are those of the last look.

    Args:
        folder: a local folder or a URL.
        recursive: whether the folders in it count, too.
        besides: a folder in it that does not count, such as the one for the outputs.

    Raises:
        ArgumentError: there is no such folder.
    """

    def __init__(self, folder: str, recursive: bool = False, besides: str | None = None) -> None:
        """Check the folder; its files are listed on request."""
        if not _is_folder(folder)[0]:
            raise ArgumentError(f"folder must exist, got {folder!r}")
        self._folder, self._recursive, self._besides = folder, recursive, besides
        self._seen: dict[Source, tuple[int, str] | None] = {}
        self._taken: dict[Source, tuple[int, str] | None] = {}

    def look(self) -> list[Source]:
        """Return the files that have arrived, each once, and again where it has changed since."""
        try:
            found = without(find(self._folder, self._recursive), self._besides)
        except ArgumentError:  # still empty
            found = []
        now = {source: _stamp_or_none(source.path) for source in found}
        steady = {source: at for source, at in now.items() if at and at[0] and self._seen.get(source) == at}
        ready = [source for source, at in steady.items() if self._taken.get(source) != at]
        self._taken |= {source: steady[source] for source in ready}
        self._seen = now
        return ready


def _stamp_or_none(path: str) -> tuple[int, str] | None:
    try:
        return stamp(path)
    except AudioFileError:  # gone again
        return None


def without(sources: list[Source], folder: str | None) -> list[Source]:
    """Leave out what lies in a folder: an archive's outputs below its inputs are not its inputs."""
    if folder is None or is_url(folder):
        prefix = None if folder is None else folder.rstrip("/") + "/"
        return [source for source in sources if prefix is None or not source.path.startswith(prefix)]
    real, top = _real_paths(), Path(os.path.realpath(folder))
    return [source for source in sources if is_url(source.path) or not Path(real(source.path)).is_relative_to(top)]
