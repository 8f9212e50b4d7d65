"""AAC and ALAC in .m4a, AAC in .aac (ADTS), through PyAV, behind the methods that soundfile's `SoundFile` is used for.

The length of an .m4a written here is exact: its edit list (ISO/IEC 14496-12, 8.6.6) leaves out the encoder's delay and
what fills up the last packet, in samples. Other programs' edit lists may count milliseconds. ADTS has no place for
either: a recording comes back after 1024 samples of silence, in whole packets of 1024.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from torchfx.audio_io.formats import AAC_FORMATS, Chapter
from torchfx.errors import AudioFileError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["METADATA", "AACReader", "AACWriter", "aac_format", "check_pyav"]

METADATA = {  # FFmpeg's names of what an .m4a holds
    "title": "title", "artist": "artist", "album": "album", "albumartist": "album_artist", "composer": "composer",
    "date": "date", "genre": "genre", "tracknumber": "track", "discnumber": "disc", "comment": "comment",
    "copyright": "copyright",
}  # fmt: skip
DEMUXERS = {"M4A": "mov", "AAC": "aac"}
MUXERS = {"M4A": "ipod", "AAC": "adts"}


def aac_format(start: bytes) -> str | None:
    """Return "M4A" or "AAC" as a file's first bytes say, or None."""
    if start[4:8] == b"ftyp":
        return "M4A"
    return "AAC" if len(start) > 1 and start[0] == 0xFF and start[1] & 0xF6 == 0xF0 else None


def check_pyav(verb: str, name: str) -> None:
    """Raise where the extra `av` is not installed."""
    try:
        import av  # noqa: F401
    except ImportError:
        raise AudioFileError(f"cannot {verb} {name}: AAC needs PyAV; pip install av") from None


class AACReader:
    """An .m4a or .aac that is decoded from its start to its end: a packet builds on those before.

    Args:
        file: a binary file object; closing it is the caller's.
        container: "M4A" or "AAC".
        name: as messages show the file.

    Attributes:
        samplerate, channels, frames, format, subtype: as soundfile's; frames without the encoder's delay in an .m4a.
        tags, chapters: as `AudioInfo`'s.

    Raises:
        AudioFileError: there is no sound in it.
        av.FFmpegError: it is damaged.
    """

    def __init__(self, file: Any, container: str, name: str) -> None:
        """Decode the first packet, which says more of the encoding than the header."""
        self._av = _opened(file, container)
        stream = next(iter(self._av.streams.audio), None)
        if stream is None:
            raise AudioFileError(f"cannot read {name}: it has no audio stream")
        self._decoded = self._frames(stream)
        self._rest: npt.NDArray[Any] = np.empty((0, 1), np.float32)
        self.samplerate = self.channels = self.frames = self._position = 0
        self.format, self.subtype = container, "AAC"
        first = next(self._decoded, None)
        if first is not None:
            self.samplerate, self.channels = first.sample_rate, first.layout.nb_channels
            codec = stream.codec_context.name
            self.subtype = f"ALAC_{first.format.bits}" if codec == "alac" else codec.upper()
            self._rest = _samples(first)
            self.frames = self._length(file, stream, first.samples)
        texts = {name: _text(self._av.metadata, key) for name, key in METADATA.items()}
        self.tags = {name: text for name, text in texts.items() if text}
        self.chapters = tuple(
            Chapter(float(each["start"] * each["time_base"]), _text(each["metadata"], "title"))
            for each in self._av.chapters()
        )

    def _length(self, file: Any, stream: Any, packet_samples: int) -> int:
        if self.format == "M4A" and stream.duration is not None:
            length: int = round(stream.duration * stream.time_base * self.samplerate)
            return length
        position = file.tell()
        file.seek(0)
        with _opened(file, self.format) as counted:
            packets = sum(1 for packet in counted.demux(audio=0) if packet.size)
        file.seek(position)
        return packets * packet_samples

    def _frames(self, stream: Any) -> Iterator[Any]:
        yield from self._av.decode(stream)

    def read(self, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Fill an array (frames, channels) of floats and return the part that the file had samples for."""
        done = 0
        while done < len(out):
            if not len(self._rest):
                frame = next(self._decoded, None)
                if frame is None:
                    break
                self._rest = _samples(frame)
            count = min(len(out) - done, len(self._rest))
            out[done : done + count] = self._rest[:count]
            self._rest = self._rest[count:]
            done += count
        self._position += done
        # An edit list in milliseconds may end after the last sample.
        if done < len(out) and self._position + self.samplerate // 1000 >= self.frames:
            out[done:] = 0
            done = len(out)
        return out[:done]

    def close(self) -> None:
        """Close the decoder."""
        self._av.close()


def _opened(file: Any, container: str) -> Any:
    """Return PyAV's reader, which keeps bytes of metadata that are no UTF-8 as surrogates: from PyAV 19 on always."""
    import av

    options = {"metadata_errors": "surrogateescape"} if int(av.__version__.partition(".")[0]) < 19 else {}
    return av.open(file, format=DEMUXERS[container], **options)


def _text(metadata: Mapping[str, str], key: str) -> str:
    """Return an entry, with question marks for what is no UTF-8."""
    return metadata.get(key, "").encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _samples(frame: Any) -> npt.NDArray[Any]:
    """Return a decoded frame as (frames, channels), floats."""
    ys: npt.NDArray[Any] = frame.to_ndarray()
    ys = ys.T if frame.format.is_planar else ys.reshape(-1, frame.layout.nb_channels)
    return ys if ys.dtype.kind == "f" else ys * np.float32(2.0 ** (1 - 8 * ys.itemsize))


class AACWriter:
    """An .m4a or .aac that is encoded block by block.

    Args:
        path: the file to write.
        container: "M4A" or "AAC".
        rate: sample rate, Hz.
        channels: 1 or 2.
        bitrate: bits per second on average, or None for the encoder's own choice.
        tags: texts of `METADATA`.
        chapters: of an .m4a.

    Attributes:
        frames: how many were written so far.
    """

    def __init__(
        self, path: str, container: str, rate: int, channels: int, bitrate: int | None, tags: Mapping[str, str],
        chapters: Sequence[Chapter],
    ) -> None:  # fmt: skip
        """Open the encoder; the header is written with the first samples."""
        from fractions import Fraction

        import av

        self._file = open(path, "wb")  # noqa: SIM115, PTH123  (closed with the writer)
        options = {"movie_timescale": str(rate)} if container == "M4A" else {}  # the edit list's unit
        self._av = av.open(self._file, "w", format=MUXERS[container], container_options=options)
        self._layout = "mono" if channels == 1 else "stereo"
        self._stream: Any = self._av.add_stream("aac", rate=rate, layout=self._layout)
        if bitrate is not None:
            self._stream.bit_rate = bitrate
        self._av.metadata.update({METADATA[name]: text for name, text in tags.items()})
        starts = [round(1000 * each.start_s) for each in chapters]
        ends = [*starts[1:], *starts[-1:]]
        self._av.set_chapters(
            [
                {
                    "id": i,
                    "start": start,
                    "end": end,
                    "time_base": Fraction(1, 1000),
                    "metadata": {"title": chapter.title},
                }
                for i, (start, end, chapter) in enumerate(zip(starts, ends, chapters, strict=True))
            ]
        )
        self._time_base = Fraction(1, rate)
        self.frames = 0

    def write(self, frames: npt.NDArray[Any]) -> None:
        """Encode samples (frames, channels)."""
        import av

        planes = np.ascontiguousarray(frames.T, np.float32)
        frame = av.AudioFrame.from_ndarray(planes, "fltp", self._layout)
        frame.sample_rate, frame.pts, frame.time_base = self._stream.rate, self.frames, self._time_base
        self.frames += len(frames)
        self._av.mux(self._stream.encode(frame))

    def close(self) -> None:
        """Encode what is left, and end the file."""
        if self._file.closed:
            return
        with self._file, closing(self._av):  # PyAV 17 crashes later where a container is left open
            if self.frames:
                self._av.mux(self._stream.encode(None))


assert set(DEMUXERS) == set(MUXERS) == AAC_FORMATS
