"""Process files of any length in constant memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import IO, BinaryIO

import numpy as np
import torch
from torch import Tensor, nn

from torchfx import audio_io
from torchfx.audio_io.messages import file_errors
from torchfx.checks import whole_number
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, StreamError
from torchfx.not_finite import NotFinite
from torchfx.pieces import Pieces
from torchfx.plan import Plan, Step, kind_of, plan_of, runs_children
from torchfx.realtime.runner import Runner

__all__ = ["FileReport", "StreamProcessor", "process_file"]

BLOCK = 1 << 16  # frames: two channels and what lies between steps stay in a second-level cache

File = str | os.PathLike[str] | BinaryIO
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class FileReport:
    """Result of processing a file.

    Attributes:
        frames: samples per channel written.
        fs: sample rate of the result, Hz.
        channels: number of channels.
        passes: number of passes over the signal; 1 if it fits into one block.
        not_finite_in: number of NaN and infinite samples in the source, and the frame of the first.
        not_finite_out: likewise, in the result.
    """

    frames: int
    fs: float
    channels: int
    passes: int
    not_finite_in: tuple[int, int] | None
    not_finite_out: tuple[int, int] | None

    @property
    def duration_s(self) -> float:
        """Length of the result, seconds."""
        return self.frames / self.fs


def process_file(
    processor: nn.Module,
    source: File | audio_io.Reader,
    target: File,
    block: int = BLOCK,
    progress: Progress | None = None,
    format: str | None = None,
    encoding: str | None = None,
    bits_per_sample: int | None = None,
    bitrate: int | None = None,
) -> FileReport:
    """Process a file block by block and write the result, in constant memory.

    The result equals `Wave.from_file(source) | processor`, saved. A file of several blocks needs one more pass for each
    effect that measures the whole signal first, such as `torchfx.effect.Normalize`, or reads it in another order, such
    as `torchfx.effect.Reverse`; a temporary file next to the target then holds the output of the preceding effects.
    Tags and chapters are copied from the source; an effect that stretches time does not move the chapters.

    Args:
        processor: a filter, an effect, a chain.
        source: the file to read: a path, a binary file object, or an `audio_io.Reader`, which stays open.
        target: the file to write: a path or a binary file object. It appears when it is complete, and may be the
            source.
        block: frames per read, >= 1. The result does not depend on it, except for the first 128 frames of Vorbis, whose
            encoder analyses the first block.
        progress: called with (frames done, total frames), over all passes.
        format, encoding, bits_per_sample: as in `torchfx.audio_io.save`; by default the suffix selects the format, and
            the source's encoding or bit depth is kept if the format supports it.
        bitrate: minimum bit rate of MP3, Vorbis and Opus, bits per second; by default at least the bit rate of a lossy
            source.

    Raises:
        StreamError: a part of the processor needs the whole signal in memory; the message names it.
        ArgumentError: the processor is a filter bank, whose bands cannot be saved as a file.
        AudioFileError: a file cannot be read or written.

    Examples:
        >>> import pathlib, tempfile, torch, torchfx as fx
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> fx.Wave(torch.randn(2, 96_000), 48_000).save(folder / "noise.wav")
        >>> chain = fx.filter.LoButterworth(1000) | fx.effect.Normalize("-1dB")
        >>> report = process_file(chain, folder / "noise.wav", folder / "low.flac")
        >>> report.frames, report.passes
        (96000, 2)
    """
    whole_number("block", block, 1)
    with nullcontext(source) if isinstance(source, audio_io.Reader) else audio_io.Reader(source) as reader:
        chain = processor if runs_children(processor, called=True) or kind_of(processor) == "parallel" else None
        plan = plan_of(chain if chain is not None else FilterChain(processor), reader.fs)
        if plan.gives == "features":
            raise ArgumentError(
                "a file of audio holds samples, and the chain ends in features: wave | chain gives them, and "
                "torchfx features writes them"
            )
        channels, *bands = plan.leading((reader.channels,))
        if bands:
            raise ArgumentError(
                f"a bank of filters makes several signals of one, here {(channels, *bands, 'time')}, and a file holds "
                f"one: process a band at a time, or all with bank(wave.ys) under torchfx.sample_rate(wave.fs)"
            )
        for step in plan.steps:
            if step.refusal and not (step.measures or step.reads_pieces):
                raise StreamError(step.refusal)
        if encoding is None and bits_per_sample is None:
            encoding = audio_io.kept_encoding(target, reader.info, format)
        fs = plan.output_rate or reader.fs
        tags = audio_io.kept_tags(target, reader.tags, format)
        if bitrate is None:
            bitrate = audio_io.kept_bitrate(target, reader.info, fs, channels, format)
        folder = os.path.dirname(os.path.abspath(target)) if isinstance(target, (str, os.PathLike)) else None  # noqa: PTH100, PTH120
        work = _Work(plan, reader, block, progress, None if folder is None else os.fsdecode(folder))
        options = (format, encoding, bits_per_sample, tags)
        with audio_io.Writer(target, fs, channels, *options, bitrate=bitrate, chapters=reader.chapters) as writer:
            for y in work.results():
                writer.write(y)
        return FileReport(writer.frames, fs, channels, work.passes, work.bad_in.found, work.bad_out.found)


class StreamProcessor:
    """Process files with a processor, like `process_file`.

    Args:
        processor: a filter, an effect, a chain.
        chunk_size: frames per read.
    """

    def __init__(self, processor: nn.Module, chunk_size: int = BLOCK) -> None:
        """Keep both."""
        self.processor, self.chunk_size = processor, whole_number("chunk_size", chunk_size, 1)

    def process_file(
        self, source: File | audio_io.Reader, target: File, progress: Progress | None = None
    ) -> FileReport:
        """Process a file; see `torchfx.realtime.process_file`."""
        return process_file(self.processor, source, target, self.chunk_size, progress)


class _Work:
    """A plan over a file, as often as its steps want: measuring ones get it first, others read it from anywhere."""

    def __init__(
        self, plan: Plan, reader: audio_io.Reader, block: int, progress: Progress | None, folder: str | None
    ) -> None:
        self.plan, self.reader, self.block, self.progress, self.folder = plan, reader, block, progress, folder
        self.at_once = reader.frames <= block
        self.passes = 1 if self.at_once else 1 + sum(step.measures or step.reads_pieces for step in plan.steps)
        self.bad_in, self.bad_out = NotFinite(), NotFinite()
        self._pass = 0

    def results(self) -> Iterator[Tensor]:
        """Yield the result block by block; that of a single block at once."""
        for y in self._whole() if self.at_once else self._results():
            self.bad_out.look(y)
            yield y

    def _whole(self) -> Iterator[Tensor]:
        for x in self._blocks():
            with torch.no_grad():
                yield self.plan.run(x)

    def _results(self) -> Iterator[Tensor]:
        """Run the steps up to each that reads pieces, give it their result to read, and go on with what it yields."""
        first, again = 0, self._blocks
        with ExitStack() as stack:
            for i, step in enumerate(self.plan.steps):
                if step.reads_pieces:
                    signal = stack.enter_context(self._pieces(self._stretch(self.plan.steps[first:i], again), i == 0))
                    first, again = i + 1, partial(self._counted, partial(step.in_pieces, signal))
            yield from self._stretch(self.plan.steps[first:], again)

    def _stretch(self, steps: Sequence[Step], again: Callable[[], Iterator[Tensor]]) -> Iterator[Tensor]:
        """Measure what has to be measured, then yield what the steps make of the blocks that `again` yields."""
        measured: dict[int, Sequence[Tensor]] = {}
        for i, step in enumerate(steps):
            if not step.measures:
                continue
            state: tuple[Tensor, ...] | None = None
            for x in self._run(steps[:i], again(), measured):
                if state is None:
                    state = step.init_state(tuple(x.shape[:-1]), x.dtype, x.device)
                state = step.measure(x, state)
            measured[i] = state or ()
        yield from self._run(steps, again(), measured)

    def _run(
        self, steps: Sequence[Step], blocks: Iterator[Tensor], measured: dict[int, Sequence[Tensor]]
    ) -> Iterator[Tensor]:
        """Yield what the steps make of blocks, aligned with them."""
        runner: Runner | None = None
        for x in blocks:
            if runner is None:
                runner = Runner(steps, (x.shape[0],), x.dtype, x.device, _start(steps, x, measured))
            y = runner.process(x)
            if y.shape[-1]:
                yield y
        if runner is not None:
            yield from runner.flush()

    @contextmanager
    def _pieces(self, blocks: Iterator[Tensor], source: bool) -> Iterator[Pieces]:
        """Yield blocks to read from anywhere: from the source itself where they are its own, else from the disk."""
        reader = self.reader
        if source and reader.goes_anywhere:
            for _ in blocks:  # NaNs are counted in order
                pass
            yield Pieces((reader.channels, reader.frames), self._fetch)
            return
        with tempfile.TemporaryFile(dir=self.folder) as file:
            yield _kept(blocks, file)

    def _fetch(self, start: int, stop: int) -> Tensor:
        self.reader.seek(start)
        return self.reader.read(stop - start)

    def _blocks(self) -> Iterator[Tensor]:
        """Yield the source from its start; NaNs are counted the first time."""
        reader, look = self.reader, self._pass == 0
        reader.seek(0)
        blocks = (reader.read(self.block) for _ in range(-(-reader.frames // self.block)))
        for x in self._counted(lambda: blocks):
            if look:
                self.bad_in.look(x)
            yield x

    def _counted(self, again: Callable[[], Iterator[Tensor]]) -> Iterator[Tensor]:
        """Yield blocks, and say how far the pass is."""
        frames, self._pass = self.reader.frames, self._pass + 1
        before = (self._pass - 1) * frames
        done = 0
        for x in again():
            yield x
            done += x.shape[-1]
            if self.progress is not None and done < frames:
                self.progress(before + done, self.passes * frames)
        if self.progress is not None:
            self.progress(before + frames, self.passes * frames)


def _kept(blocks: Iterator[Tensor], file: IO[bytes]) -> Pieces:
    """Return blocks (channels, time), one after the other in a file."""
    name = "a temporary file"
    channels = time = 0
    layout = np.dtype(np.float32)
    for x in blocks:
        frames = np.ascontiguousarray(x.numpy().T)
        with file_errors("write", name):
            file.write(frames.data)
        channels, time, layout = x.shape[0], time + x.shape[1], frames.dtype

    def fetch(start: int, stop: int) -> Tensor:
        frames = np.empty((stop - start, channels), layout)
        with file_errors("read", name):
            file.seek(start * channels * layout.itemsize)
            file.readinto(frames.data)  # type: ignore[attr-defined]
        return torch.from_numpy(frames.T)

    return Pieces((channels, time), fetch)


def _start(steps: Sequence[Step], x: Tensor, measured: dict[int, Sequence[Tensor]]) -> list[Tensor]:
    """Return the state that steps start with, for blocks like x."""
    state: list[Tensor] = []
    shape: tuple[int, ...] = (x.shape[0],)
    for i, step in enumerate(steps):
        state += measured[i] if i in measured else step.init_state(shape, x.dtype, x.device)
        shape = step.leading(shape)
    return state
