"""Files through a module: one by one, each whole or not at all."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from torchfx import audio_io
from torchfx.errors import ArgumentError, AudioFileError, TorchFXError
from torchfx.wave import Wave

__all__ = ["Outcome", "plan_outputs", "process_files"]


@dataclass(frozen=True)
class Outcome:
    """What became of one file.

    Attributes:
        source: the file read.
        target: the file written.
        duration_s: seconds of audio processed; 0 when it failed.
        error: why nothing was written, or None.
        warnings: what the listener should know, such as clipped samples.
    """

    source: Path
    target: Path
    duration_s: float = 0.0
    error: TorchFXError | None = None
    warnings: tuple[str, ...] = ()


def plan_outputs(sources: Sequence[Path], output: Path) -> list[tuple[Path, Path]]:
    """Say where each source goes: one source to a file, or any number into a folder under their own names.

    Raises:
        ArgumentError: several sources and an output that is, or would be named as, a file; two sources with one name.
    """
    try:
        is_folder, exists = output.is_dir(), output.exists()
    except OSError as error:  # a name that is too long
        raise AudioFileError(f"cannot write {output}: {error.strerror}") from error
    if len(sources) == 1 and not is_folder:
        return [(sources[0], output)]
    if not is_folder and (exists or output.suffix.lower() in audio_io.FORMATS):
        raise ArgumentError(f"OUT must be a folder for {len(sources)} inputs, got the file {output}")
    names = Counter(source.name for source in sources)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ArgumentError(f"the inputs' names must differ, got {names[twice[0]]} named {twice[0]}")
    return [(source, output / source.name) for source in sources]


def process_files(jobs: Sequence[tuple[Path, Path]], module: nn.Module, overwrite: bool = False) -> Iterator[Outcome]:
    """Run each (source, target) through the module and yield what became of it; no failure stops the rest.

    Outputs keep their source's bit depth where their format can (`audio_io.kept_encoding`). Existing targets are left
    alone unless `overwrite` is set.
    """
    for source, target in jobs:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                duration = _process(source, target, module, overwrite)
            except TorchFXError as error:
                yield Outcome(source, target, error=error)
                continue
        yield Outcome(source, target, duration, warnings=tuple(str(warning.message) for warning in caught))


def _process(source: Path, target: Path, module: nn.Module, overwrite: bool) -> float:
    try:
        taken = target.exists()
    except OSError as error:  # a name that is too long
        raise AudioFileError(f"cannot write {target}: {error.strerror}") from error
    if taken and not overwrite:
        raise ArgumentError(f"{target} exists already; --force overwrites it")
    with audio_io.Reader(source) as file:  # opened once: a pipe can be read only once
        encoding = audio_io.kept_encoding(target, file.info)
        result = Wave(file.read(file.frames), file.fs) | module
    try:
        target.parent.mkdir(exist_ok=True)
    except OSError as error:
        reason = f"{target.parent} is a file" if target.parent.is_file() else error.strerror
        raise AudioFileError(f"cannot write {target}: {reason}") from error
    result.save(target, encoding=encoding)
    return result.duration()
