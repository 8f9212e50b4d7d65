"""Write audio files, block by block or whole; the output appears when it is complete."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from torchfx.audio_io import temporary
from torchfx.audio_io.aac import AACReader, AACWriter, check_pyav
from torchfx.audio_io.bitrate import compression, mp3_scale
from torchfx.audio_io.formats import (
    AAC_FORMATS,
    BITS,
    FORMATS,
    INTEGERS,
    Chapter,
    check_channels,
    file_rate,
    long_format,
    named_encoding,
    named_format,
)
from torchfx.audio_io.messages import file_errors, library_errors
from torchfx.audio_io.mpeg import completed, counted
from torchfx.audio_io.mutagen_tags import HOLDING, has_mutagen, warn_of_loss, write_more
from torchfx.audio_io.samples import block_frames, integer_type, interleaved, quantised
from torchfx.audio_io.source import library_path
from torchfx.audio_io.tags import checked_tags, fitting_tags, write_tags
from torchfx.audio_io.target import Target
from torchfx.checks import callers_level
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    import numpy.typing as npt
    from soundfile import SoundFile
    from torch import Tensor

__all__ = ["ClippingWarning", "Writer", "save"]

FLOATS = {"FLOAT", "DOUBLE"}
PLAIN = {"WAV", "AIFF", "RAW"}  # hold samples one after the other, except for those of compressing encodings
SPECTRA = {"VORBIS", "OPUS", "MPEG_LAYER_III", "AAC"}  # hold samples beyond full scale, until they are decoded


class ClippingWarning(UserWarning):
    """Samples exceed full scale in a file that stores integers or is decoded to integers."""


class Writer:
    """Write a file block by block; it appears when the `with` block ends without an exception.

    Until then the samples are in a temporary file in the same folder, `.torchfx-<process>-...`, which is removed after
    an exception. A replaced file keeps its permissions and, if possible, its owner; a symbolic link stays a link.

    Args:
        target: a path, whose suffix selects the format: .wav, .flac, .ogg, .opus, .mp3, .aiff, .raw, and with PyAV
            (package `av`) .m4a and .aac; or a binary file object, into which the complete file is written at its
            current position.
        fs: sample rate, Hz, an integer.
        channels: number of channels.
        format: the format's name, if the suffix names no format; it must not contradict the suffix.
        encoding: "PCM_S", "PCM_U", "PCM_F", "ULAW", "ALAW", or libsndfile's name of a subtype; defaults: float for WAV,
            24-bit integers for FLAC and AIFF, Vorbis for OGG.
        bits_per_sample: 8, 16, 24, 32 (or 64 for "PCM_F").
        tags: tags by name, of `torchfx.audio_io.TAGS`. Tags that the format does not support are omitted; libsndfile
            appends its name to the tag "software".
        double: whether float64 is the default for WAV.
        bitrate: minimum bit rate of MP3, Vorbis and Opus, mean bit rate of AAC, bits per second; by default the
            encoder's choice.
        chapters: chapters; they need the package `mutagen`, except for .m4a. Chapters after the end are omitted.

    Attributes:
        format: the container, such as "WAV". A WAV beyond 4 GiB becomes RF64, the WAV variant for long recordings.
        encoding: libsndfile's name of the encoding, such as "PCM_16".
        frames: number of frames written so far.

    Raises:
        ArgumentError: the format is unknown, contradicts the suffix, or does not support the encoding, rate, number of
            channels or tag.
        ArgumentTypeError: the target is neither a path nor a binary file object, or a tag is not a string.
        AudioFileError: the folder is missing, the file cannot be written, or AAC needs PyAV, which is not installed.

    Warns:
        ClippingWarning: samples exceed full scale in a file without floats; issued once, with their number.
        UserWarning: tags or chapters are lost because mutagen is not installed, or because a WAV became RF64.

    Examples:
        >>> import io, torch
        >>> from torchfx import audio_io
        >>> file = io.BytesIO()
        >>> with audio_io.Writer(file, 48_000, 2, format="wav", bits_per_sample=16) as writer:
        ...     for _ in range(3):
        ...         writer.write(torch.zeros(2, 1000))
        >>> _ = file.seek(0)
        >>> audio_io.info(file).frames
        3000
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        fs: float,
        channels: int,
        format: str | None = None,
        encoding: str | None = None,
        bits_per_sample: int | None = None,
        tags: Mapping[str, str] | None = None,
        double: bool = False,
        bitrate: int | None = None,
        chapters: Sequence[Chapter] = (),
    ) -> None:
        """Check the arguments; nothing is written yet."""
        self._target = Target(target)
        suffix = os.path.splitext(self._target.path)[1]  # noqa: PTH122
        self.format = named_format(suffix, format, self._target.name)
        self.encoding = named_encoding(self.format, encoding, bits_per_sample, double)
        self._rate = file_rate(self.format, fs)
        self._channels = check_channels(self.format, channels)
        tags = checked_tags(self.format, tags)
        self._tags = fitting_tags(self.format, tags)
        self._chapters = chapters if self.format in {*HOLDING, "M4A"} else ()
        if self._chapters and self.format in HOLDING and not has_mutagen():
            warn_of_loss()
            self._chapters = ()
        if self.format == "MP3" and (self._chapters or len(self._tags) < len(tags)):
            self._tags = {}  # LAME's ID3v1 tag, which cuts texts, would contradict mutagen's
        self._more = {name: text for name, text in tags.items() if name not in self._tags}
        self._compression = compression(self.format, self.encoding, bitrate, self._rate, self._channels)
        self._scale = mp3_scale(self._rate, bitrate) if self.format == "MP3" else 1.0
        self._suffix = suffix if suffix.lower() in FORMATS else ""
        if self.format in AAC_FORMATS:
            check_pyav("write", self._target.name)
        self._temporary: str | None = None
        self._file: SoundFile | AACWriter | None = None
        self._begin()

    def _begin(self) -> None:
        self._container = self.format
        self._clipped = 0
        self.frames = 0

    def write(self, ys: Tensor | npt.NDArray[Any]) -> None:
        """Append samples; all samples are checked before any is written.

        Args:
            ys: float32 or float64, (channels, frames), a tensor on any device or an array.

        Raises:
            ArgumentError: another shape; NaN or inf in a file without floats; more than 4 GiB in a format with 32-bit
                sizes.
            ArgumentTypeError: neither a tensor nor an array, or complex numbers, half precision or integers.
            AudioFileError: the file cannot be written, or is not open.
        """
        _check_samples(ys)
        if ys.shape[0] != self._channels:
            raise ArgumentError(f"ys must have the shape ({self._channels}, frames), got {tuple(ys.shape)}")
        if self._temporary is None:
            raise AudioFileError(f"cannot write {self._target.name}: it is open only inside its with block")
        container = long_format(self.format, self.encoding, (self.frames + ys.shape[1]) * self._channels)
        beyond = self.encoding not in FLOATS and self._count_beyond(ys)
        try:
            with file_errors("write", self._target.name):
                if container != self._container:
                    self._change_container(container)
                for block in _blocks(ys):
                    self._write_block(block, clip=bool(beyond))
        finally:
            self.frames += ys.shape[1]  # of a failed write too, so that a shorter file is noticed at the end
        self._clipped += beyond

    def _count_beyond(self, ys: Tensor | npt.NDArray[Any]) -> int:
        """Return how many samples lie beyond full scale, or raise where some are not finite."""
        beyond = 0
        for block in _blocks(ys):
            low, high = block.min(), block.max()
            if not (np.isfinite(low) and np.isfinite(high)):
                lost = np.concatenate([~np.isfinite(block) for block in _blocks(ys)], axis=1)
                first = self.frames + int(lost.any(0).argmax())
                raise ArgumentError(
                    f"ys must be finite in a {self.encoding} file, got {int(lost.sum())} NaN or infinite samples, the "
                    f"first in frame {first}"
                )
            if low < -1 or high > 1:
                beyond += int(np.count_nonzero(np.abs(block) > 1))
        return beyond

    def _write_block(self, block: npt.NDArray[Any], clip: bool) -> None:
        if clip and self.encoding not in SPECTRA:  # libsndfile 1.2.2 reads beyond its tables for loud ULAW and ALAW
            block = np.clip(block, -1, 1)
        if self._scale != 1:  # beyond full scale, as LAME takes floats
            block = block / np.float32(self._scale)
        if self.encoding in INTEGERS:
            block = quantised(block, self.encoding)
        assert self._file is not None
        self._file.write(interleaved(block, integer_type(self.encoding) or block.dtype))

    def _open(self) -> SoundFile | AACWriter:
        assert self._temporary is not None
        if self.format in AAC_FORMATS:
            layout = self.format, self._rate, self._channels
            return AACWriter(self._temporary, *layout, self._compression.get("bitrate"), self._tags, self._chapters)
        file = _unsynced()(library_path(self._temporary), "w", **self._layout(), **self._compression)
        write_tags(file, self._tags)
        return file

    def _layout(self) -> dict[str, Any]:
        """Return what soundfile must know to write the file, and to read it where it has no header."""
        container = "OGG" if self._container == "OPUS" else self._container
        endian = {"endian": "LITTLE"} if container == "RAW" else {}
        layout = {"samplerate": self._rate, "channels": self._channels, "subtype": self.encoding}
        return {**layout, "format": container, **endian}

    def _change_container(self, container: str) -> None:
        """Go on in another container; what was written so far is copied there, once in a file's life."""
        import soundfile

        assert self._file is not None
        assert self._temporary is not None
        self._file.close()
        begun, self._temporary, self._container = self._temporary, self._create(), container
        try:
            self._file = self._open()
            if self.frames:
                dtype = {"FLOAT": "float32", "DOUBLE": "float64"}.get(self.encoding, "int32")
                with soundfile.SoundFile(library_path(begun)) as source:
                    for block in source.blocks(block_frames(self._channels), dtype=dtype, always_2d=True):
                        self._file.write(block)
        finally:
            temporary.remove(begun)

    def _create(self) -> str:
        return temporary.create(self._target.folder, self._suffix, self._target.mode)

    def __enter__(self) -> Writer:
        """Create the temporary file."""
        self._begin()
        try:
            with file_errors("write", self._target.name):
                self._temporary = self._create()
                self._file = self._open()
        except BaseException:
            self._discard()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Rename the temporary file to its target, or remove it after an exception."""
        try:
            if kind is None:
                with file_errors("write", self._target.name):
                    self._finish()
        finally:
            self._discard()
        if kind is None and self._clipped:
            become = "clip where they are decoded to integers" if self.encoding in SPECTRA else "were clipped"
            warnings.warn(
                f"{self._target.name}: {self._clipped} of {self.frames * self._channels} samples lie beyond full scale "
                f"and {become} ({self.encoding}); make Normalize the last effect, or save as floating point",
                ClippingWarning,
                stacklevel=callers_level(),
            )

    def _finish(self) -> None:
        assert self._file is not None
        assert self._temporary is not None
        name = self._target.name
        if self.frames == 0:
            raise AudioFileError(f"cannot write {name}: no samples were given")
        self._file.close()
        if self.format == "MP3":
            self._complete_mp3(self._temporary)
        self._add_tags(self._temporary)
        kept = min(self._file.frames, self._frames_in(self._temporary))
        if kept < self.frames:
            raise AudioFileError(f"cannot write {name}: {kept} of {self.frames} frames were kept; is the disk full?")
        self._target.receive(self._temporary)

    def _frames_in(self, path: str) -> int:
        """Return how many frames a closed file holds, or has room for: Vorbis does not show when the disk is full."""
        if self.format in PLAIN and self.encoding in BITS:
            return os.stat(path).st_size // (self._channels * BITS[self.encoding] // 8)  # noqa: PTH116
        if self.format in AAC_FORMATS:
            with open(path, "rb") as file, closing(AACReader(file, self.format, self._target.name)) as written:  # noqa: PTH123
                return written.frames
        import soundfile

        layout = self._layout() if self.format == "RAW" else {}
        with soundfile.SoundFile(library_path(path), **layout) as file:
            return int(file.frames)

    def _complete_mp3(self, path: str) -> None:
        with open(path, "r+b") as file:  # noqa: PTH123
            if counted(file) is not None:
                file.seek(0)
                whole = completed(file.read(), self.frames)
                file.seek(0)
                file.write(whole)

    def _add_tags(self, path: str) -> None:
        """Add what libsndfile has not written."""
        length_s = self.frames / self._rate
        chapters = [each for each in self._chapters if each.start_s < length_s]
        if self.format not in HOLDING or not (self._more or chapters):
            return
        if self._container == "RF64":
            names = ", ".join([*self._more, *(["chapters"] if chapters else [])])
            warnings.warn(f"{self._target.name}: RF64 files hold no {names}", stacklevel=callers_level())
            return
        write_more(path, self.format, self.encoding, self._more, chapters, length_s)

    def _discard(self) -> None:
        """Close and remove the temporary file, if it is still there."""
        if self._file is not None:
            with suppress(*library_errors()):  # what matters was raised before
                self._file.close()
        if self._temporary is not None:
            temporary.remove(self._temporary)
        self._file = self._temporary = None


def save(
    path: str | os.PathLike[str] | BinaryIO,
    ys: Tensor | npt.NDArray[Any],
    fs: float,
    format: str | None = None,
    encoding: str | None = None,
    bits_per_sample: int | None = None,
    tags: Mapping[str, str] | None = None,
    bitrate: int | None = None,
    chapters: Sequence[Chapter] = (),
) -> None:
    """Write samples; the file appears under its name only when it is complete.

    Args:
        path: a path or a binary file object.
        ys: float32 or float64, (channels, frames), a tensor or an array.
        fs, format, encoding, bits_per_sample, tags, bitrate, chapters: as for `Writer`; a WAV of float64 samples holds
            doubles by default.

    Raises:
        ArgumentError, ArgumentTypeError, AudioFileError: as `Writer` and `Writer.write`.

    Warns:
        ClippingWarning, UserWarning: as `Writer`.
    """
    _check_samples(ys)
    if 0 in ys.shape:
        raise ArgumentError(f"ys must have the shape (channels, frames) and hold samples, got {tuple(ys.shape)}")
    double = str(ys.dtype).endswith("float64")
    with Writer(path, fs, ys.shape[0], format, encoding, bits_per_sample, tags, double, bitrate, chapters) as file:
        file.write(ys)


@cache
def _unsynced() -> type[SoundFile]:
    """Return soundfile's class without the wait for the disk when a file is closed, several times the rest's time."""
    import soundfile

    class Unsynced(soundfile.SoundFile):  # type: ignore[misc]
        def flush(self) -> None:
            """Leave it to libsndfile, which writes its buffers when it closes the file."""

    return Unsynced


def _check_samples(ys: Tensor | npt.NDArray[Any]) -> None:
    if not isinstance(ys, np.ndarray) and not _is_tensor(ys):
        raise ArgumentTypeError(f"ys must be a tensor or array of float32 or float64, got {type(ys).__name__}")
    if str(ys.dtype).removeprefix("torch.") not in {"float32", "float64"}:
        raise ArgumentTypeError(f"ys must be a tensor or array of float32 or float64, got {ys.dtype}")
    if ys.ndim != 2:
        raise ArgumentError(f"ys must have the shape (channels, frames) and hold samples, got {tuple(ys.shape)}")


def _is_tensor(ys: object) -> bool:
    torch = sys.modules.get("torch")  # only its tensors need it
    return torch is not None and isinstance(ys, torch.Tensor)


def _blocks(ys: Tensor | npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    step = block_frames(ys.shape[0])
    for start in range(0, ys.shape[1], step):
        block = ys[:, start : start + step]
        yield block if isinstance(block, np.ndarray) else block.detach().cpu().resolve_neg().numpy()
