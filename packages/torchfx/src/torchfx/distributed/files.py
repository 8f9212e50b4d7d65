"""One file: read, through a recipe, written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any, BinaryIO

from torchfx import audio_io
from torchfx.checks import number_text
from torchfx.distributed.feature_files import feature_format, save_features
from torchfx.distributed.recipe import Recipe
from torchfx.distributed.sources import STREAM, Job, file_system, is_url
from torchfx.errors import ArgumentError, AudioFileError, StreamError, TorchFXError
from torchfx.not_finite import NotFinite

if TYPE_CHECKING:
    from torch import Tensor, nn

    from torchfx.loudness import Meter

__all__ = ["Outcome", "heard_warnings", "is_taken", "metered_job", "process_job"]

BLOCK = 1 << 16  # frames
WHOLE_LIMIT = 1 << 27
"""Samples over all channels of a file that effects may have in memory as a whole: 512 MiB, and some times that."""

_heard = local()


@dataclass(frozen=True)
class Outcome:
    """The result of processing one file.

    Attributes:
        job: the file read and the one written.
        error: why nothing was written, or None.
        warnings: what the listener should know, such as clipped samples.
        duration_s: length of the result, of features that of the source, seconds; 0 after an error.
        not_finite_in: NaN and infinite samples in the source, and the frame of the first.
        not_finite_out: likewise, in the result.
        details: what else there is to say of features: their shape, and the rate the samples were converted to.
    """

    job: Job
    error: TorchFXError | None = None
    warnings: tuple[str, ...] = ()
    duration_s: float = 0.0
    not_finite_in: tuple[int, int] | None = None
    not_finite_out: tuple[int, int] | None = None
    details: str = ""

    @property
    def not_finite(self) -> bool:
        """Whether the source or the result has NaN or infinite samples."""
        return bool(self.not_finite_in or self.not_finite_out)


@contextmanager
def heard_warnings() -> Iterator[None]:
    """Keep warnings for the outcome of the job whose thread raises them; `warnings` itself keeps threads not apart."""

    def hear(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        _heard.__dict__.setdefault("texts", []).append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = hear
        yield


def process_job(job: Job, recipe: Recipe, overwrite: bool, check: Callable[..., object] | None = None) -> Outcome:
    """Run one file through a recipe and say what became of it; an error is part of that.

    Files are read and written block by block; one is in memory as a whole only where an effect needs the whole signal
    at once. Outputs keep their source's encoding, or its bit depth in another format. Folders are made. An existing
    target is left alone unless `overwrite` is set. `check` is called after each block; what it raises ends the work.
    """
    _heard.texts = []
    try:
        report = _processed(job, recipe, overwrite, check)
    except TorchFXError as error:
        return Outcome(job, error)
    return Outcome(job, None, tuple(_heard.texts), **report)


def _processed(job: Job, recipe: Recipe, overwrite: bool, check: Callable[..., object] | None) -> dict[str, Any]:
    if not overwrite and is_taken(job.target):
        raise ArgumentError(f"{job.target} exists already; --force overwrites it")
    with ExitStack() as stack:
        source = stack.enter_context(_opened(job.source))
        raw = recipe.layout() if job.source == STREAM or job.source.lower().endswith(".raw") else None
        reader = stack.enter_context(audio_io.Reader(source, raw))  # opened once: a pipe cannot be read again
        output = stack.enter_context(_placed(job.target, recipe))
        return _Work(reader, output, recipe, check).run()


def metered_job(source: str, recipe: Recipe) -> Meter:
    """Return a meter that has measured the result of a recipe for a file; the result is kept nowhere."""
    from torchfx.core.wave import Wave
    from torchfx.loudness import Meter, metered
    from torchfx.realtime.files import process_file

    chain = recipe.chain()
    raw = recipe.layout() if source.lower().endswith(".raw") else None
    try:
        with _opened(source) as opened, audio_io.Reader(opened, raw) as reader:
            if chain is None:
                return metered(reader)
            with tempfile.TemporaryDirectory() as folder:
                result = os.path.join(folder, "result.wav")  # noqa: PTH118
                try:
                    process_file(chain, reader, result, BLOCK, format="WAV", encoding="FLOAT")
                except StreamError as error:
                    _check_whole(reader, error)
                    wave = Wave(reader.part(), reader.fs) | chain
                    meter = Meter(wave.fs, wave.channels())
                    meter.process(wave.ys)
                    return meter
                return metered(result)
    except ArgumentError as error:
        raise ArgumentError(f"{source}: {error}") from error


def is_taken(target: str) -> bool:
    """Whether there is something at a target already.

    Raises:
        AudioFileError: nothing can be there, such as under a name that is too long.
    """
    if target == STREAM:
        return False
    try:
        if is_url(target):
            system, path = file_system(target)
            return bool(system.exists(path))
        return Path(target).exists()
    except OSError as error:  # a name that is too long
        raise AudioFileError(f"cannot write {target}: {error.strerror or error}") from error


@contextmanager
def _opened(source: str) -> Iterator[str | BinaryIO]:
    """Yield what `audio_io.Reader` reads."""
    if source == STREAM:
        yield sys.stdin.buffer
    elif not is_url(source):
        yield source
    else:
        system, path = file_system(source)
        try:
            opened = system.open(path, "rb")
        except OSError as error:
            raise AudioFileError(f"cannot read {source}: {error.strerror or 'no such file'}") from error
        with opened:
            yield opened


@dataclass(frozen=True)
class _Output:
    """The file that `audio_io.Writer` writes, and its format if the name does not show it."""

    file: str | BinaryIO
    format: str | None = None


@contextmanager
def _placed(target: str, recipe: Recipe) -> Iterator[_Output]:
    """Yield where to write: the path itself, stdout, or a file that is copied to its URL once it is whole."""
    name = recipe.format.upper() if recipe.format else None
    if target == STREAM:
        yield _Output(sys.stdout.buffer, name or (None if recipe.gives_features else "WAV"))
    elif not is_url(target):
        with _folders_of(Path(target)):
            yield _Output(target, name)
    else:
        suffix = os.path.splitext(target)[1]  # noqa: PTH122
        with tempfile.TemporaryDirectory() as folder:
            whole = os.path.join(folder, f"whole{suffix}")  # noqa: PTH118
            yield _Output(whole, name)
            _copy_to_url(whole, target)


def _copy_to_url(whole: str, target: str) -> None:
    """Copy a file to a URL under another name, then rename it: not all file systems write at once."""
    system, path = file_system(target)
    folder, _, name = path.rpartition("/")
    begun = f"{folder}/.torchfx-{os.urandom(4).hex()}-{name}"
    try:
        system.makedirs(folder, exist_ok=True)
        try:
            system.put_file(whole, begun)
            system.mv(begun, path)
        except BaseException:
            with suppress(OSError):
                system.rm_file(begun)
            raise
    except OSError as error:
        raise AudioFileError(f"cannot write {target}: {error.strerror or error}") from error


@contextmanager
def _folders_of(target: Path) -> Iterator[None]:
    """Make the folders of a target; after an exception, remove those that were made."""
    missing = list(takewhile(lambda folder: not folder.is_dir(), target.parents))
    try:
        if missing:
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


def _check_whole(reader: audio_io.Reader, error: StreamError) -> None:
    """Raise if a file is too long for effects that need the whole signal in memory."""
    samples = reader.frames * reader.channels
    if samples > WHOLE_LIMIT:
        raise ArgumentError(
            f"{reader.name}: {error}; the file must then have at most {WHOLE_LIMIT} samples over all channels, got "
            f"{samples}; cut the file (torchfx split), or run the chain on a Wave"
        ) from None


@dataclass
class _Work:
    """A file that is open, and where its result goes."""

    reader: audio_io.Reader
    output: _Output
    recipe: Recipe
    check: Callable[..., object] | None
    encoding: str | None = field(init=False, default=None)

    def run(self) -> dict[str, Any]:
        """Write the result; return what `Outcome` says of it."""
        chain = self.recipe.chain()
        in_blocks, of_whole = self._in_blocks, self._whole
        if self.recipe.gives_features:
            feature_format(self.output.file, self.recipe.format)
            in_blocks, of_whole = self._features_in_blocks, self._features_of_whole
        elif self.recipe.bits is None:
            self.encoding = audio_io.kept_encoding(self.output.file, self.reader.info, self.output.format)
        if chain is None:
            return self._copy()
        try:
            return in_blocks(chain)
        except StreamError as error:
            _check_whole(self.reader, error)
            return of_whole(chain)

    def _copy(self) -> dict[str, Any]:
        reader = self.reader
        with audio_io.Writer(
            self.output.file, reader.fs, reader.channels, **self._options(reader.fs, reader.channels)
        ) as writer:
            for start in range(0, reader.frames, BLOCK):
                writer.write(reader.read_array(min(BLOCK, reader.frames - start), exact=True))
                if self.check is not None:
                    self.check()
        return {"duration_s": reader.frames / reader.fs}

    def _options(self, fs: float, channels: int) -> dict[str, Any]:
        """Return how to write the result, for `audio_io`."""
        file, form, source = self.output.file, self.output.format, self.reader.info
        bitrate = self.recipe.bits_per_second() or audio_io.kept_bitrate(file, source, fs, channels, form)
        chosen = {"encoding": self.encoding, "bits_per_sample": self.recipe.bits, "bitrate": bitrate}
        tags = audio_io.kept_tags(file, source.tags, form)
        return {"format": form, "tags": tags, "chapters": source.chapters, **chosen}

    def _in_blocks(self, chain: nn.Module) -> dict[str, Any]:
        from torchfx.realtime.files import process_file

        report = process_file(
            chain, self.reader, self.output.file, BLOCK, self.check, self.output.format, self.encoding,
            self.recipe.bits, self.recipe.bits_per_second(),
        )  # fmt: skip
        return {
            "duration_s": report.duration_s,
            "not_finite_in": report.not_finite_in,
            "not_finite_out": report.not_finite_out,
        }

    def _whole(self, chain: nn.Module) -> dict[str, Any]:
        from torchfx.core.wave import Wave

        wave = Wave(self.reader.part(), self.reader.fs)
        result = wave | chain
        found = []
        for each in (wave, result):
            bad = NotFinite()
            bad.look(each.ys)
            found.append(bad.found)
        audio_io.save(self.output.file, result.ys, result.fs, **self._options(result.fs, result.channels()))
        return {"duration_s": len(result) / result.fs, "not_finite_in": found[0], "not_finite_out": found[1]}

    def _features_in_blocks(self, chain: nn.Module) -> dict[str, Any]:
        import torch

        from torchfx.realtime.stream import Stream

        stream, bad, parts = Stream(chain, self.reader.fs, self.reader.channels), NotFinite(), []
        for start in range(0, self.reader.frames, BLOCK):
            block = self.reader.read(min(BLOCK, self.reader.frames - start))
            bad.look(block)
            parts.append(stream.process(block))
            if self.check is not None:
                self.check()
        return self._save_features(torch.cat([*parts, stream.flush()], dim=-1), bad.found)

    def _features_of_whole(self, chain: nn.Module) -> dict[str, Any]:
        import torch

        from torchfx.core.wave import Wave

        wave, bad = Wave(self.reader.part(), self.reader.fs), NotFinite()
        bad.look(wave.ys)
        with torch.no_grad():
            found: Any = wave | chain
        return self._save_features(found, bad.found)

    def _save_features(self, found: Tensor, not_finite_in: tuple[int, int] | None) -> dict[str, Any]:
        reader, bad = self.reader, NotFinite()
        bad.look((found.abs() if found.is_complex() else found).flatten(0, -2))
        fs = self.recipe.feature_rate or reader.fs
        form = feature_format(self.output.file, self.recipe.format)
        facts = {"fs": number_text(fs), "recipe": str(self.recipe)}
        save_features(self.output.file, found.numpy(force=True), form, facts)
        details = " x ".join(map(str, found.shape))
        if fs != reader.fs:
            details += f", resampled from {number_text(reader.fs)} to {number_text(fs)} Hz"
        return {
            "duration_s": reader.frames / reader.fs,
            "not_finite_in": not_finite_in,
            "not_finite_out": bad.found,
            "details": details,
        }
