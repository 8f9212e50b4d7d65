"""Files through a module: one by one, each whole or not at all."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from torchfx import audio_io
from torchfx.core.wave import Wave
from torchfx.errors import ArgumentError, AudioFileError, StreamError, TorchFXError
from torchfx.realtime.files import FileReport, NotFinite, process_file

__all__ = ["Outcome", "plan_outputs", "process_files"]


@dataclass(frozen=True)
class Outcome:
    """What became of one file.

    Attributes:
        source: the file read.
        target: the file written.
        report: what was written; None when nothing was.
        error: why nothing was written, or None.
        warnings: what the listener should know, such as clipped samples.
    """

    source: Path
    target: Path
    report: FileReport | None = None
    error: TorchFXError | None = None
    warnings: tuple[str, ...] = ()

    @property
    def not_finite(self) -> bool:
        """Whether the source or the result has NaN or infinite samples."""
        return self.report is not None and bool(self.report.not_finite_in or self.report.not_finite_out)


def plan_outputs(sources: Sequence[Path], output: str | Path) -> list[tuple[Path, Path]]:
    """Say where each source goes: one source to a file, or any number into a folder under their own names.

    A folder is what exists as one, ends in a slash, or has no suffix.

    Raises:
        ArgumentError: several sources and an output that is, or would be named as, a file; two sources with one name.
    """
    path = Path(output)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:  # a name that is too long
        raise AudioFileError(f"cannot write {output}: {error.strerror}") from error
    is_folder = is_folder or (not exists and (str(output).endswith(("/", "\\")) or not path.suffix))
    if not is_folder and len(sources) == 1:
        return [(sources[0], path)]
    if not is_folder and (exists or path.suffix.lower() in audio_io.FORMATS):
        raise ArgumentError(f"OUT must be a folder for {len(sources)} inputs, got the file {output}")
    names = Counter(source.name for source in sources)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ArgumentError(f"the inputs' names must differ, got {names[twice[0]]} named {twice[0]}")
    return [(source, path / source.name) for source in sources]


def process_files(jobs: Sequence[tuple[Path, Path]], module: nn.Module, overwrite: bool = False) -> Iterator[Outcome]:
    """Run each (source, target) through the module and yield what became of it; no failure stops the rest.

    Files are read and written block by block; one is in memory as a whole only where the module needs the whole signal
    at once. Outputs keep their source's encoding, or its bit depth in another format. Folders are made. Existing
    targets are left alone unless `overwrite` is set.
    """
    for source, target in jobs:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                report = _process(source, target, module, overwrite)
            except TorchFXError as error:
                yield Outcome(source, target, error=error)
                continue
        yield Outcome(source, target, report, warnings=tuple(str(warning.message) for warning in caught))


def _process(source: Path, target: Path, module: nn.Module, overwrite: bool) -> FileReport:
    try:
        taken = target.exists()
    except OSError as error:  # a name that is too long
        raise AudioFileError(f"cannot write {target}: {error.strerror}") from error
    if taken and not overwrite:
        raise ArgumentError(f"{target} exists already; --force overwrites it")
    with audio_io.Reader(source) as reader, _folders_of(target):  # opened once: a pipe cannot be read again
        try:
            return process_file(module, reader, target)
        except StreamError:
            return _process_whole(module, reader, target)


@contextmanager
def _folders_of(target: Path) -> Iterator[None]:
    """Make the folders of a target; after an exception, remove those that were made."""
    missing = [folder for folder in target.parents if not folder.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{target.parent} is a file" if target.parent.is_file() else error.strerror
        raise AudioFileError(f"cannot write {target}: {reason}") from error
    try:
        yield
    except BaseException:
        for folder in missing:
            with suppress(OSError):  # something else is in it
                folder.rmdir()
        raise


def _process_whole(module: nn.Module, reader: audio_io.Reader, target: Path) -> FileReport:
    wave = Wave(reader.part(), reader.fs, metadata={"tags": reader.tags})
    result = wave | module
    found = []
    for each in (wave, result):
        bad = NotFinite()
        bad.look(each.ys)
        found.append(bad.found)
    result.save(target, encoding=audio_io.kept_encoding(target, reader.info))
    return FileReport(len(result), result.fs, result.channels(), 1, *found)
