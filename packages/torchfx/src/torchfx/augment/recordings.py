"""Augmentations from files: background noise, and rooms by their impulse responses."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx import _ops, audio_io
from torchfx.audio_io import FORMATS
from torchfx.augment.augmentation import SNR_DB, Augmentation, Distribution, Drawn, extremes_of, values_of
from torchfx.augment.time import rate_of
from torchfx.checks import finite_number, number_text
from torchfx.core.resample import Resample
from torchfx.errors import ArgumentError
from torchfx.functional.noise import add_noise
from torchfx.parameters import named
from torchfx.parameters import sample_rate as sample_rate_of

__all__ = ["BackgroundNoise", "Convolve", "Recordings"]

FS = named("fs", sample_rate_of(default=None))
MIB = 1 << 20
Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Recordings:
    """Audio files that are decoded on first use and cached up to a memory limit.

    The least recently used files are dropped first; a file larger than the limit is decoded each time. Copies do not
    share the cache: each worker of a DataLoader has a separate cache.

    Args:
        name: name of the argument, for errors.
        files: a folder, which is searched recursively, or paths of files and folders.
        memory_mib: limit of the decoded samples, in MiB, >= 0.

    Raises:
        ArgumentError: a path does not exist or has no audio files.
    """

    def __init__(self, name: str, files: Files, memory_mib: float) -> None:
        """Find the files."""
        given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        self.paths: list[Path] = []
        for path in map(Path, given):
            if not path.exists():
                raise ArgumentError(f"{name} must name files and folders that exist, got {str(path)!r}")
            inside = sorted(each for each in path.rglob("*") if each.suffix.lower() in FORMATS and each.is_file())
            self.paths += inside if path.is_dir() else [path]
        if not self.paths:
            shown = ", ".join(repr(str(path)) for path in given) or "no paths"
            raise ArgumentError(f"{name} must hold at least one audio file ({', '.join(FORMATS)}), got none in {shown}")
        memory = finite_number("memory_mib", memory_mib)
        if memory < 0:
            raise ArgumentError(f"memory_mib must lie in [0, inf), got {number_text(memory)}")
        self.memory_mib = memory
        self._forget()

    def _forget(self) -> None:
        self._kept: OrderedDict[tuple[int, float], Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def samples(self, index: int, fs: float) -> Tensor:
        """Return a file's samples at a rate (Hz): float32, (channels, time). They are shared; do not modify them.

        Raises:
            AudioFileError: the file cannot be read.
        """
        key = (index, fs)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found, rate = audio_io.load(self.paths[index])
        found = found.float()
        if rate != fs:
            found = Resample(fs).whole(found, rate)
        with self._lock:
            self._kept[key] = found
            while self._kept and self.size() > self.memory_mib * MIB:
                self._kept.popitem(last=False)
        return found

    def size(self) -> int:
        """Return the size of the cached samples in bytes."""
        return sum(each.numel() * each.element_size() for each in self._kept.values())

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes except the samples."""
        return {"paths": self.paths, "memory_mib": self.memory_mib}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the pickled attributes."""
        self.__dict__.update(state)
        self._forget()


class BackgroundNoise(Augmentation):
    """Add a random part of a random recording to each example at a signal-to-noise ratio.

    The part begins at a random position in the recording, which is repeated if it is shorter than the signal. A
    recording with as many channels as the signal is added channel by channel; otherwise the mean of its channels is
    added to all channels. The ratio compares the power of the example, over all channels, with the power of the part;
    silent recordings add nothing.

    Args:
        noises: a folder, which is searched recursively, or paths of files and folders.
        snr_db: signal-to-noise ratio, dB: a number or a distribution.
        fs: sample rate of the signals, Hz; recordings are resampled to it. None uses the wave's rate or
            `torchfx.sample_rate`.
        memory_mib: limit of the cache of decoded recordings, in MiB.
        p, generator: as in `Augmentation`.

    Raises:
        ArgumentError: no files are found. AudioFileError, when it runs: a file cannot be read.

    Examples:
        >>> import tempfile
        >>> import torchfx as fx
        >>> folder = tempfile.TemporaryDirectory()
        >>> fx.Wave(torch.randn(1, 8000), 8000).save(f"{folder.name}/hiss.wav")
        >>> noisy = BackgroundNoise(folder.name, snr_db=10.0, fs=16_000, generator=0)
        >>> x = torch.randn(4, 1, 16_000)
        >>> noise = noisy(x) - x
        >>> (10 * torch.log10(x.square().mean((1, 2)) / noise.square().mean((1, 2)))).round()
        tensor([10., 10., 10., 10.])
        >>> folder.cleanup()
    """

    def __init__(
        self,
        noises: Files,
        snr_db: float | Distribution,
        *,
        fs: float | None = None,
        memory_mib: float = 256.0,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Find the files and check the ratio."""
        super().__init__(p, generator)
        for extreme in extremes_of(snr_db):
            SNR_DB.check(extreme, None)
        self.recordings, self.snr_db = Recordings("noises", noises, memory_mib), snr_db
        self.fs: float | None = FS.check(fs, None)

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator, examples = self._generator(around), len(among)
        return {
            "applied": self._applied(among, generator),
            "snr_db": values_of(self.snr_db, examples, generator),
            "file": torch.randint(len(self.recordings.paths), (examples,), generator=generator),
            "place": torch.rand(examples, generator=generator, dtype=torch.float64),
        }

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        rows = drawn["applied"].nonzero().flatten()
        if not len(rows):
            return x
        fs, files, places = rate_of(self), drawn["file"].tolist(), drawn["place"].tolist()
        parts = [_part(self.recordings.samples(files[i], fs), places[i], x) for i in rows.tolist()]
        noise, ratio = torch.stack(parts).to(x), drawn["snr_db"][rows, None]
        if len(rows) == len(x):
            return add_noise(x, noise, ratio)
        there = rows.to(x.device)
        return x.index_copy(0, there, add_noise(x[there], noise, ratio))

    def extra_repr(self) -> str:
        """Return the number of files, the ratio and the probability."""
        return f"{len(self.recordings.paths)} files, {self.snr_db!r}, {super().extra_repr()}"


class Convolve(Augmentation):
    """Convolve each example with a random room impulse response, keeping its length and, by default, its level.

    The result is aligned with the input at the response's largest sample over all channels. A response with as many
    channels as the signal is applied channel by channel; otherwise its first channel is used.

    Args:
        responses: a folder of impulse responses, which is searched recursively, or paths.
        keep_level: whether the result is scaled to the example's power, over all channels.
        fs, memory_mib: as in `BackgroundNoise`.
        p, generator: as in `Augmentation`.

    Raises:
        ArgumentError: no files are found. AudioFileError, when it runs: a file cannot be read.

    Examples:
        >>> import tempfile
        >>> import torchfx as fx
        >>> folder = tempfile.TemporaryDirectory()
        >>> fx.Wave(torch.tensor([[0.0, 0.5, 0.25]]), 8000).save(f"{folder.name}/room.wav")
        >>> room = Convolve(folder.name, keep_level=False, fs=8000)
        >>> room(torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
        tensor([[0.5000, 0.2500, 0.0000, 0.0000]])
        >>> folder.cleanup()
    """

    def __init__(
        self,
        responses: Files,
        keep_level: bool = True,
        *,
        fs: float | None = None,
        memory_mib: float = 256.0,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Find the files."""
        super().__init__(p, generator)
        self.recordings, self.keep_level = Recordings("responses", responses, memory_mib), keep_level
        self.fs: float | None = FS.check(fs, None)

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator = self._generator(around)
        applied = self._applied(among, generator)
        return {
            "applied": applied,
            "file": torch.randint(len(self.recordings.paths), (len(among),), generator=generator),
        }

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        fs, files, changed = rate_of(self), drawn["file"], []
        y = x
        for file in files[drawn["applied"]].unique().tolist():
            rows = (drawn["applied"] & (files == file)).nonzero().flatten().to(x.device)
            changed.append(
                (rows, self._heard(x if len(rows) == len(x) else x[rows], self.recordings.samples(file, fs)))
            )
        for rows, part in changed:
            y = part if len(rows) == len(x) else y.index_copy(0, rows, part)
        return y

    def _heard(self, x: Tensor, response: Tensor) -> Tensor:
        """Return signals (examples, channels, time) in the room of a response (channels, n)."""
        taps = (response if len(response) == x.shape[-2] else response[:1]).to(x.device, torch.float64)
        arrival = int(taps.abs().amax(0).argmax())
        y = _ops.fir_forward(pad(x, (0, arrival)), taps)[0][..., arrival:]
        if not self.keep_level:
            return y
        before, after = (each.double().square().sum((-2, -1), keepdim=True) for each in (x, y))
        return y * torch.where(after > 0, before / after.where(after > 0, 1.0), 0.0).sqrt().to(x.dtype)

    def extra_repr(self) -> str:
        """Return the number of files and the probability."""
        return f"{len(self.recordings.paths)} files, {super().extra_repr()}"


def _part(recording: Tensor, place: float, x: Tensor) -> Tensor:
    """Return a part of a recording (channels, n) that is as long as signals (..., channels, time), or broadcasts."""
    found = recording if len(recording) == x.shape[-2] else recording.mean(0, keepdim=True)
    spare, time = found.shape[-1] - x.shape[-1], x.shape[-1]
    if spare >= 0:
        first = int(place * (spare + 1))
        return found[..., first : first + time].expand(x.shape[-2], time)
    first = int(place * found.shape[-1])
    times = -(-(first + time) // found.shape[-1])
    return found.repeat(1, times)[..., first : first + time].expand(x.shape[-2], time)
