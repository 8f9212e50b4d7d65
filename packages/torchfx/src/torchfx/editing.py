"""Cut, join and mix audio files in constant memory; PyTorch is loaded only if rates differ.

Samples are copied exactly: integers are bit-identical if the output has at least as many bits. Tags and chapters are
kept if the format supports them, and every output appears only when complete.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from torchfx import audio_io, intervals
from torchfx.audio_io import Chapter
from torchfx.checks import sample_rate, whole_number
from torchfx.errors import ArgumentError
from torchfx.intervals import Interval
from torchfx.parameters import decibels, named, position

__all__ = ["concat", "mix", "split", "trim"]

BLOCK = 1 << 16  # frames
FILE = str | os.PathLike[str]
Time = float | str


def trim(source: FILE, target: FILE, start: Time = 0.0, end: Time | None = None) -> float:
    """Copy a part of a file.

    Args:
        source: the file to read.
        target: the file to write, which may be the source; its suffix decides the format.
        start, end: start and end of the part: seconds, or a string such as "250ms", "1:30" or "480 samples". Without an
            end, or with an end after the file's end, the part extends to the end of the file. A string that begins with
            "-" counts from the end.

    Returns:
        The length of the part in seconds.

    Raises:
        ArgumentError: a time is invalid, the end is not after the start, or the start is after the file's end.
        AudioFileError: a file cannot be read or written.
    """
    with audio_io.Reader(source) as reader:
        first = position("start", start, reader.frames, reader.fs)
        last = reader.frames if end is None else min(position("end", end, reader.frames, reader.fs), reader.frames)
        if not first < last:
            raise ArgumentError(
                f"start must lie before end and before the file's end at {reader.frames / reader.fs:g} s, "
                f"got {first / reader.fs:g} s to {last / reader.fs:g} s"
            )
        _copy(reader, (first, last), target)
        return (last - first) / reader.fs


def concat(sources: Sequence[FILE], target: FILE) -> float:
    """Concatenate files.

    The output uses the sources' encoding with the most bits that its format supports. Tags are copied from the first
    source; chapters are copied from all.

    Args:
        sources: the files, of one sample rate and one number of channels.
        target: the file to write, which may be a source.

    Returns:
        The length of the result in seconds.

    Raises:
        ArgumentError: there are no sources, or they differ in rate or channels.
        AudioFileError: a file cannot be read or written.
    """
    if not sources:
        raise ArgumentError("sources must name at least one file, got none")
    found = [audio_io.info(source) for source in sources]
    for source, other in zip(sources, found, strict=True):
        if (other.fs, other.channels) != (found[0].fs, found[0].channels):
            first, this = (f"{each.fs} Hz and {each.channels} channels" for each in (found[0], other))
            raise ArgumentError(f"sources must be alike: {sources[0]} has {first}, {source} {this}")
    best = max(found, key=lambda each: each.bits or 32)
    with ExitStack() as stack:
        starts = itertools.accumulate((each.frames / each.fs for each in found), initial=0.0)
        chapters = [
            Chapter(start + each.start_s, each.title)
            for start, one in zip(starts, found, strict=False)
            for each in one.chapters
        ]
        writer = stack.enter_context(_writer(target, best, found[0].tags, chapters))
        for source in sources:
            with audio_io.Reader(source) as reader:
                _write(reader, (0, reader.frames), writer)
        return writer.frames / best.fs


def mix(
    sources: Sequence[FILE],
    target: FILE,
    gains_db: Sequence[float | str] = (),
    rate: float | str | None = None,
) -> float:
    """Mix files, all from their beginning.

    Mono files are added to all channels of the output. The output is as long as the longest file. Tags are copied from
    the first source; chapters are omitted. The output uses the sources' encoding with the most bits that its format
    supports.

    Args:
        sources: the files; all files with more than one channel must have the same number of channels.
        target: the file to write, which may be a source.
        gains_db: gain of each source, dB; empty: 0 dB for all.
        rate: sample rate of the output, Hz; by default the highest rate of the sources. Other sources are resampled.

    Returns:
        The length of the result in seconds.

    Raises:
        ArgumentError: there are no sources, the number of gains or the numbers of channels do not match, or a source
            cannot be resampled to the rate.
        AudioFileError: a file cannot be read or written.
    """
    if not sources:
        raise ArgumentError("sources must name at least one file, got none")
    if gains_db and len(gains_db) != len(sources):
        raise ArgumentError(f"gains_db must be one for each of {len(sources)} sources, got {len(gains_db)}")
    declared = named("gains_db", decibels(high=200.0))
    gains = [10 ** (declared.check(each, None) / 20) for each in gains_db or [0.0] * len(sources)]
    with ExitStack() as stack:
        readers = [stack.enter_context(audio_io.Reader(source)) for source in sources]
        channels = max(reader.channels for reader in readers)
        for source, reader in zip(sources, readers, strict=True):
            if reader.channels not in (1, channels):
                raise ArgumentError(f"sources must have 1 or {channels} channels, got {reader.channels} in {source}")
        fs = max(reader.fs for reader in readers) if rate is None else whole_number("rate", sample_rate(rate), 1)
        best = max((reader.info for reader in readers), key=lambda each: each.bits or 32)
        tracks = [_Track(reader, fs) for reader in readers]
        layout = replace(best, fs=fs, channels=channels)
        writer = stack.enter_context(_writer(target, layout, readers[0].tags, ()))
        while True:
            parts = [track.take(BLOCK) for track in tracks]
            total = np.zeros((channels, max(part.shape[1] for part in parts)))
            if not total.size:
                return writer.frames / fs
            for gain, part in zip(gains, parts, strict=True):
                total[:, : part.shape[1]] += gain * part
            writer.write(total)


class _Track:
    """A file's samples at a rate, in pieces of the requested length."""

    def __init__(self, reader: audio_io.Reader, rate: float) -> None:
        self._blocks = _at_rate(reader, rate)
        self._ready = np.zeros((reader.channels, 0))

    def take(self, count: int) -> npt.NDArray[np.float64]:
        """Return the next `count` samples (channels, time), fewer at the end."""
        while self._ready.shape[1] < count:
            more = next(self._blocks, None)
            if more is None:
                break
            self._ready = np.concatenate([self._ready, more], axis=1)
        taken, self._ready = self._ready[:, :count], self._ready[:, count:]
        return taken


def _at_rate(reader: audio_io.Reader, rate: float) -> Iterator[npt.NDArray[Any]]:
    blocks = (reader.read_array(BLOCK, exact=True) for _ in range(0, reader.frames, BLOCK))
    if reader.fs == rate:
        yield from blocks
        return
    import torch

    from torchfx.core.resample import Resample
    from torchfx.realtime import Stream

    stream = Stream(Resample(rate), reader.fs, reader.channels)
    for block in blocks:
        yield stream.process(torch.from_numpy(block).double()).numpy()
    yield stream.flush().numpy()


def split(
    source: FILE,
    folder: FILE,
    every: Time | None = None,
    silence_db: float | None = None,
    least: Time = 0.3,
    keep: Time = 0.1,
    suffix: str | None = None,
    check: Callable[[Sequence[Path]], object] | None = None,
) -> list[Path]:
    """Split a file into parts, "<name>-1.wav" and so on.

    Args:
        source: the file to read.
        folder: folder of the parts; it is created.
        every: duration of a part; the last part may be shorter.
        silence_db: alternatively, split where no channel is louder than this, dB relative to full scale (1.0). Silence
            is removed, except `keep` around each part.
        least: minimum duration of a silence.
        keep: silence that stays at both sides of a part, at most half of the pause.
        suffix: suffix of the parts, such as ".flac"; by default the source's.
        check: called with the paths of the parts before any part is written.

    Returns:
        The paths of the parts.

    Raises:
        ArgumentError: not exactly one of `every` and `silence_db` is given, a value is out of range, or the whole file
            is silent.
        AudioFileError: a file cannot be read or written.
    """
    if (every is None) == (silence_db is None):
        raise ArgumentError(
            f"split needs either every or silence_db, got every={every!r} and silence_db={silence_db!r}"
        )
    with audio_io.Reader(source) as reader:
        if every is not None:
            length = position("every", every, reader.frames, reader.fs)
            if length < 1:
                raise ArgumentError(f"every must be at least one sample long, got {every!r}")
            starts = range(0, reader.frames, length)
            spans = [(start, min(start + length, reader.frames)) for start in starts]
        else:
            threshold = 10 ** (float(named("silence_db", decibels()).check(silence_db, None)) / 20)
            shortest = max(1, position("least", least, reader.frames, reader.fs))
            blocks = (reader.read_array(BLOCK) for _ in range(0, reader.frames, BLOCK))
            wide = position("keep", keep, reader.frames, reader.fs)
            spans = intervals.widened(intervals.loud(blocks, threshold, shortest), wide, reader.frames)
            if not spans:
                raise ArgumentError(f"silence_db must be lower: all of {source} is silent at {silence_db} dB")
        name = Path(source)
        digits = len(str(len(spans)))
        paths = [Path(folder) / f"{name.stem}-{i:0{digits}}{suffix or name.suffix}" for i in range(1, len(spans) + 1)]
        if check is not None:
            check(paths)
        Path(folder).mkdir(parents=True, exist_ok=True)
        for span, path in zip(spans, paths, strict=True):
            _copy(reader, span, path)
        return paths


def _copy(reader: audio_io.Reader, span: Interval, target: FILE) -> None:
    chapters = _chapters_within(reader.chapters, span[0] / reader.fs, span[1] / reader.fs)
    with _writer(target, reader.info, reader.tags, chapters) as writer:
        _write(reader, span, writer)


def _chapters_within(chapters: Sequence[Chapter], start_s: float, end_s: float) -> list[Chapter]:
    """Return the chapters of a part, in its time; one that began before it begins with it."""
    ends = [each.start_s for each in chapters[1:]] + [end_s]
    return [
        Chapter(max(0.0, each.start_s - start_s), each.title)
        for each, end in zip(chapters, ends, strict=False)
        if each.start_s < end_s and end > start_s
    ]


def _writer(
    target: FILE, source: audio_io.AudioInfo, tags: dict[str, str], chapters: Sequence[Chapter]
) -> audio_io.Writer:
    fs, channels, encoding = source.fs, source.channels, audio_io.kept_encoding(target, source)
    bitrate = audio_io.kept_bitrate(target, source, fs, channels)
    tags = audio_io.kept_tags(target, tags)
    return audio_io.Writer(target, fs, channels, None, encoding, None, tags, bitrate=bitrate, chapters=chapters)


def _write(reader: audio_io.Reader, span: Interval, writer: audio_io.Writer) -> None:
    reader.seek(span[0])
    for start in range(*span, BLOCK):
        writer.write(reader.read_array(min(BLOCK, span[1] - start), exact=True))
