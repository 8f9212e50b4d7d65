"""How loud a file is at each time and frequency: measured without PyTorch, drawn with matplotlib or characters."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torchfx import audio_io
from torchfx.errors import TorchFXError

__all__ = ["Spectrogram", "as_text", "plot", "spectrogram"]

SIZE = 2048  # samples of a spectrum
COLUMNS = 1200
BATCH = 64  # spectra made at once
RANGE_DB = 100.0
RAMPS = {False: " .:-=+*#%@", True: " ░▒▓█"}
TITLED_ROWS = 4  # of a drawing with characters: every so many-th row says its frequency


@dataclass(frozen=True)
class Spectrogram:
    """Levels over time and frequency.

    Attributes:
        levels_db: (frequencies, times); 0 dB is a sine of amplitude 1.
        fs: sample rate, Hz; frequencies reach from 0 to half of it.
        duration_s: length of the file.
    """

    levels_db: npt.NDArray[np.float64]
    fs: int
    duration_s: float


def spectrogram(source: str | os.PathLike[str], columns: int = COLUMNS, size: int = SIZE) -> Spectrogram:
    """Measure a file, in memory that does not grow with it.

    Args:
        source: the file; of several channels the mean power is taken.
        columns: how many times at most; each holds the mean power of the spectra that begin in it.
        size: samples of a spectrum under a Hann window; it overlaps with the next one by half at least.

    Raises:
        AudioFileError: the file cannot be read.
    """
    with audio_io.Reader(source) as reader:
        hop = max(1, min(size // 2, reader.frames // columns))
        spectra = -(-reader.frames // hop)
        columns = min(columns, spectra)
        power, count = np.zeros((columns, size // 2 + 1)), np.zeros(columns)
        window = np.hanning(size + 1)[:-1]
        ahead = np.zeros((reader.channels, size // 2))  # the first spectrum's middle is the first sample
        done = 0
        while done < spectra:
            block = np.zeros((reader.channels, BATCH * hop))
            read = reader.read_array(BATCH * hop)
            block[:, : read.shape[1]] = read
            block = np.concatenate([ahead, block], axis=1)
            if block.shape[1] < size:
                ahead = block
                continue
            frames = np.lib.stride_tricks.sliding_window_view(block, size, axis=1)[:, ::hop]
            ahead = block[:, frames.shape[1] * hop :]
            found = (np.abs(np.fft.rfft(frames[:, : spectra - done] * window)) ** 2).mean(0)
            place = np.arange(done, done + len(found)) * columns // spectra
            np.add.at(power, place, found)
            np.add.at(count, place, 1)
            done += len(found)
        amplitude = np.sqrt(power / count[:, None]) * (2 / window.sum())
        levels = 20 * np.log10(np.maximum(amplitude, 1e-10)).T
        return Spectrogram(levels, reader.fs, reader.frames / reader.fs)


def plot(found: Spectrogram, title: str = "") -> Any:
    """Draw levels over time and frequency; return the `matplotlib` figure.

    Raises:
        TorchFXError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TorchFXError("a picture needs matplotlib: pip install matplotlib") from error
    figure = Figure(figsize=(11, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    image = axes.imshow(
        found.levels_db, origin="lower", aspect="auto", cmap="magma", vmin=-RANGE_DB, vmax=0, interpolation="nearest",
        extent=(0, found.duration_s, 0, found.fs / 2000),
    )  # fmt: skip
    axes.set(xlabel="time, s", ylabel="frequency, kHz")
    axes.set_title(title, fontsize=9)
    figure.colorbar(image, ax=axes, label="level, dB (0: a sine of amplitude 1)")
    return figure


def as_text(found: Spectrogram, width: int = 80, height: int = 20, unicode: bool = False) -> str:
    """Draw with characters: the denser, the louder, from 100 dB below full scale.

    Args:
        found: what `spectrogram` measured.
        width: columns of the text.
        height: rows of the picture; below them stands the time.
        unicode: draw with shaded blocks in the place of ASCII characters.
    """
    ramp, room = RAMPS[unicode], width - 10
    rows, columns = found.levels_db.shape
    heights, widths = (_parts(rows, height), _parts(columns, min(room, columns)))
    power = 10 ** (found.levels_db / 10)
    mean = np.stack([np.stack([power[a:b, c:d].mean() for c, d in widths]) for a, b in heights])
    shade = np.clip((10 * np.log10(mean) + RANGE_DB) / RANGE_DB, 0, 1) * (len(ramp) - 1)
    lines = []
    for i in reversed(range(height)):
        khz = heights[i][0] / (rows - 1) * found.fs / 2000
        label = f"{khz:5.1f} kHz " if i % TITLED_ROWS == 0 else ""
        lines.append(f"{label:>10}" + "".join(ramp[level] for level in np.rint(shade[i]).astype(int)))
    end = f"{found.duration_s:.2f} s"
    return "\n".join([*lines, " " * 10 + "0" + end.rjust(len(widths) - 1)])


def _parts(count: int, parts: int) -> list[tuple[int, int]]:
    edges = [i * count // parts for i in range(parts + 1)]
    return [(a, max(b, a + 1)) for a, b in itertools.pairwise(edges)]
