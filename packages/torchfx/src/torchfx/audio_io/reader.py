"""Read audio files, block by block or whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO, TypeGuard

import numpy as np

from torchfx.audio_io.aac import AACReader, aac_format, check_pyav
from torchfx.audio_io.bitrate import mean_bitrate, vorbis_bitrate
from torchfx.audio_io.formats import BITS, INTEGERS, AudioInfo
from torchfx.audio_io.messages import file_errors
from torchfx.audio_io.mpeg import Frames, replaced
from torchfx.audio_io.samples import block_frames, from_integers, integer_type
from torchfx.audio_io.source import Source, may_be_mp3
from torchfx.audio_io.tags import read_tags
from torchfx.checks import whole_number
from torchfx.errors import ArgumentError, AudioFileError

if TYPE_CHECKING:
    from types import TracebackType

    import numpy.typing as npt
    from soundfile import SoundFile
    from torch import Tensor

__all__ = ["Reader", "info", "load"]

# libsndfile 1.2.2 goes to wrong frames of Vorbis and Opus (its issue 885): they are decoded from their start. An MP3's
# frames build on those before: it is decoded from this many frames ahead.
MP3_LEAD = 1 << 15
LONGEST_END = 1 << 12  # bytes; a cut frame and a tag of ID3v1 are shorter


class Reader:
    """Read a file block by block, in constant memory.

    Args:
        source: a path, or a binary file object, which is read from its current position and stays open. WAV, FLAC, OGG,
            MP3, AIFF and all other formats of libsndfile, and with PyAV (package `av`) .m4a and .aac. A pipe is copied
            to a temporary file first.
        raw: sample rate (Hz), number of channels and encoding of a file without a header, such as (16000, 1, "PCM_16"),
            little-endian.

    Attributes:
        name: name of the file in messages.
        info: the attributes below that the header contains, as one object.
        fs: sample rate, Hz.
        channels: number of channels.
        frames: samples per channel.
        format: container, such as "WAV".
        encoding: sample encoding, such as "PCM_16".
        bits: bits per sample, or None for a lossy encoding.
        tags: tags by name, such as "title".
        chapters: chapters of the file.

    Raises:
        AudioFileError: the file is missing, empty, truncated, or in an unknown format.
        ArgumentTypeError: the source is neither a path nor a binary file object.

    Examples:
        >>> import io, torch
        >>> from torchfx import audio_io
        >>> file = io.BytesIO()
        >>> audio_io.save(file, torch.zeros(2, 1000), 48_000, format="flac")
        >>> _ = file.seek(0)
        >>> with audio_io.Reader(file) as reader:
        ...     print(reader.fs, reader.channels, reader.frames, reader.bits)
        ...     [reader.read(600).shape[1] for _ in range(3)]
        48000 2 1000 24
        [600, 400, 0]
    """

    def __init__(self, source: str | os.PathLike[str] | BinaryIO, raw: tuple[int, int, str] | None = None) -> None:
        """Open the file and read its header."""
        self._raw = raw
        self._file: SoundFile | AACReader | None = None
        self._position = 0
        self._mpeg_frames: int | None = None
        self._source = Source(source)
        self.name = self._source.name
        try:
            self._file = self._open()
            self.info = self._described(self._file)
        except BaseException:
            self.close()
            raise
        self.fs, self.channels, self.frames = self.info.fs, self.info.channels, self.info.frames
        self.format, self.encoding, self.bits = self.info.format, self.info.encoding, self.info.bits
        self.tags, self.chapters = self.info.tags, self.info.chapters

    @property
    def goes_anywhere(self) -> bool:
        """Whether `seek` is fast: true for PCM and FLAC."""
        plain = self.encoding in {*INTEGERS, "FLOAT", "DOUBLE"}
        return plain and self._file is not None and _can_seek(self._file)

    def _open(self) -> SoundFile | AACReader:
        import soundfile

        self._source.rewind()
        named = self._source.opened if isinstance(self._source.opened, (str, bytes)) else b""
        if self._raw is None and os.fsdecode(named).lower().endswith(".raw"):  # soundfile would ask for more
            name = self.name
            raise AudioFileError(f"cannot read {name}: raw samples don't say their rate, channels and encoding")
        if self._raw is None and os.fsdecode(named).lower().endswith(".mp3"):
            with self._calls():
                start = self._source.start_and_size()[0]
            if not may_be_mp3(start):  # libmpg123 would write about its search to stderr
                raise AudioFileError(f"cannot read {self.name}: there is no MP3 frame in its first {len(start)} bytes")
        with self._calls():
            if self._raw is not None:
                return _in_order()(self._source.opened, "r", *self._raw, endian="LITTLE", format="RAW")
            try:
                file = _in_order()(self._source.opened)
                return self._of_known_length(file) if file.format == "MP3" else file
            except soundfile.LibsndfileError:
                container = aac_format(self._source.start_and_size()[0])
                if container is None:
                    raise
            check_pyav("read", self.name)
            return AACReader(self._source.stream(), container, self.name)

    def _of_known_length(self, file: SoundFile) -> SoundFile:
        """Return a file of MPEG audio with a header that names its length, without which libsndfile estimates it."""
        found = self._source.mpeg_frames
        if found is None:
            return file
        file.close()
        if self._mpeg_frames is None:
            self._mpeg_frames = found.number
            if found.most > found.number:  # the decoder decides about the bytes between the frames
                self._mpeg_frames = self._decoded(found)
        return _in_order()(self._source.spliced(*replaced(found, self._mpeg_frames)))

    def _decoded(self, found: Frames) -> int:
        """Return how many frames a damaged file has for the decoder."""
        stream = self._source.spliced(*replaced(found, found.most))
        with _in_order()(stream) as file:
            block = np.empty((block_frames(file.channels), file.channels), np.float32)
            samples = sum(iter(lambda: len(file.read(out=block)), 0))
        left = -stream.tell() + stream.seek(0, os.SEEK_END)
        if left > LONGEST_END:
            raise AudioFileError(f"cannot read {self.name}: damaged, {left} bytes at its end cannot be decoded")
        return samples // found.samples

    def _described(self, file: SoundFile | AACReader) -> AudioInfo:
        name = self.name
        if file.frames == 0:
            raise AudioFileError(f"cannot read {name}: it holds no samples")
        if file.frames == (1 << 63) - 1:  # libsndfile's word for it
            raise AudioFileError(f"cannot read {name}: its header does not say how many frames it has")
        if file.format in {"WAV", "WAVEX", "AIFF"}:
            with self._calls():
                missing, promised = self._source.missing_bytes()
            if missing:
                raise AudioFileError(f"cannot read {name}: truncated, {missing} of {promised} bytes are missing")
        frames = file.frames
        if self._mpeg_frames is not None and self._source.mpeg_frames is not None:  # estimated in layers I and II
            frames = min(frames, self._mpeg_frames * self._source.mpeg_frames.samples)
        container = "WAV" if file.format in {"WAVEX", "RF64"} else file.format  # WAVs with longer headers
        with self._calls():
            named = isinstance(file, AACReader)
            tags, chapters = (file.tags, file.chapters) if named else read_tags(container, file, self._source)
        bitrate = None
        if file.subtype not in BITS:
            with self._calls():
                start, size = self._source.start_and_size()
            bitrate = vorbis_bitrate(start) or mean_bitrate(size, frames, file.samplerate, file.subtype)
        layout = file.samplerate, file.channels, frames, container, file.subtype
        return AudioInfo(*layout, tags, bitrate, chapters)

    def read(self, count: int) -> Tensor:
        """Read the next frames.

        Args:
            count: number of frames, >= 0. At the end of the file fewer frames, or no frames, are returned.

        Returns:
            Samples (channels, <= count); float64 if the file holds doubles, else float32, with integers scaled to [-1,
            1). Samples of integer files are contiguous. Samples of float files are a transposed view, because copying
            them would take longer than reading them.

        Raises:
            AudioFileError: the file is truncated, cannot be read, or was closed.
        """
        import torch  # takes a second to load, and headers are read without it

        return torch.from_numpy(self.read_array(count))

    def read_array(self, count: int, exact: bool = False) -> npt.NDArray[Any]:
        """Read the next frames as an array, without PyTorch.

        Args:
            count: as for `read`.
            exact: whether 32-bit integers become float64, which represents them exactly, instead of float32.
        """
        count = min(whole_number("count", count, 0), self.frames - self._position)
        integers = integer_type(self.encoding)
        double = self.encoding == "DOUBLE" or (exact and self.encoding == "PCM_32")
        shape = (count, self.channels) if integers is None else (self.channels, count)
        try:
            samples = np.empty(shape, np.float64 if double else np.float32)
        except (MemoryError, ValueError) as error:  # a damaged header may promise anything
            promised = f"{count} frames of {self.channels} channels"
            name = self.name
            raise AudioFileError(f"cannot read {name}: the {promised} it promises do not fit into memory") from error
        if integers is None:
            self._fill(samples)
            return samples.T
        step = block_frames(self.channels)
        block = np.empty((min(step, count), self.channels), integers)
        for start in range(0, count, step):
            part = block[: count - start]
            self._fill(part)
            from_integers(part, samples[:, start : start + step])
        return samples

    def part(self, frame_offset: int = 0, num_frames: int = -1) -> Tensor:
        """Read `num_frames` (-1: all) from `frame_offset` on, like `load`.

        Raises:
            ArgumentError: frame_offset or num_frames out of range.
        """
        if num_frames != -1:
            whole_number("num_frames (-1 for all)", num_frames, 1)
        if whole_number("frame_offset", frame_offset, 0) >= self.frames:
            raise ArgumentError(f"frame_offset must lie in [0, {self.frames}) for {self.name}, got {frame_offset}")
        if frame_offset != self._position:
            self.seek(frame_offset)
        return self.read(self.frames if num_frames == -1 else num_frames)

    def _fill(self, frames: npt.NDArray[Any]) -> None:
        """Read the next frames into an array (frames, channels)."""
        if self._file is None:
            raise AudioFileError(f"cannot read {self.name}: it was closed")
        with self._calls():
            read = len(self._file.read(out=frames))
        self._position += read
        if read < len(frames):
            raise AudioFileError(
                f"cannot read {self.name}: truncated, it promises {self.frames} frames and ends after {self._position}"
            )

    def seek(self, frame: int) -> None:
        """Seek to a frame, counted from the start, from 0 to `frames`.

        Ogg, .m4a and .aac files are decoded up to this frame: 5 minutes take about a second.
        """
        if whole_number("frame", frame, 0) > self.frames:
            raise ArgumentError(f"frame must lie in [0, {self.frames}] for {self.name}, got {frame}")
        if self._file is None:
            raise AudioFileError(f"cannot read {self.name}: it was closed")
        if frame == self._position:
            return
        lead = MP3_LEAD if self.format == "MP3" else 0
        if frame >= lead and self.format != "OGG" and _can_seek(self._file):
            with self._calls():
                self._file.seek(frame - lead)
            self._position = frame - lead
        elif frame < self._position:  # some encodings, such as GSM 6.10, can be read only from their start
            self._file.close()
            self._file, self._position = self._open(), 0
        while self._position < frame:
            self.read_array(min(block_frames(self.channels), frame - self._position))

    @contextmanager
    def _calls(self) -> Iterator[None]:
        """Raise what goes wrong in a call of libsndfile; what the file object has raised comes first."""
        try:
            with file_errors("read", self.name):
                yield
        finally:
            self._source.check()

    def close(self) -> None:
        """Close the file; a file object that was passed in stays open."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._source.close()

    def __enter__(self) -> Reader:
        """Return the reader."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()


@cache
def _in_order() -> type[SoundFile]:
    """Return soundfile's class without the seek to the position behind each read, where the file is already.

    libmpg123 would decode the last frames again, without those before, and write about the missing bits to stderr.
    """
    import soundfile

    class InOrder(soundfile.SoundFile):  # type: ignore[misc]
        def seekable(self) -> bool:
            return False

    return InOrder


def _can_seek(file: SoundFile | AACReader) -> TypeGuard[SoundFile]:
    import soundfile

    return isinstance(file, soundfile.SoundFile) and bool(soundfile.SoundFile.seekable(file))


def info(path: str | os.PathLike[str] | BinaryIO) -> AudioInfo:
    """Read a file's header. For FLAC, also read the last frame, to detect truncated files.

    See `Reader` for the supported sources.

    Raises:
        AudioFileError: the file is missing, empty, truncated, or in an unknown format.
    """
    with Reader(path) as file:
        if file.format == "FLAC":
            file.seek(file.frames - 1)
            file.read_array(1)
        return file.info


def load(path: str | os.PathLike[str] | BinaryIO, frame_offset: int = 0, num_frames: int = -1) -> tuple[Tensor, int]:
    """Read samples.

    Args:
        path: path of a WAV, FLAC, OGG, MP3 or AIFF file, or another format of libsndfile; or a binary file object.
        frame_offset: first frame to read, >= 0.
        num_frames: number of frames, > 0; -1 reads to the end. At the end of the file fewer frames are returned.

    Returns:
        Samples (channels, frames), as `Reader.read` returns them, and the sample rate in Hz.

    Raises:
        AudioFileError: the file is missing, empty, truncated, or in an unknown format.
        ArgumentError: frame_offset or num_frames out of range.
    """
    with Reader(path) as file:
        return file.part(frame_offset, num_frames), file.fs
