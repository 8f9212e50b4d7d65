"""How loud a signal is at each time and frequency: measured without PyTorch, drawn with matplotlib or characters."""

from __future__ import annotations

import io
import itertools
import math
import os
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from torchfx import audio_io
from torchfx.checks import callers_level, whole_number
from torchfx.errors import ArgumentError, TorchFXError
from torchfx.not_finite import NotFinite

__all__ = ["ArraySamples", "Samples", "Spectrogram", "as_png", "as_text", "measured", "plot", "spectrogram"]

SIZE = 2048  # samples of a spectrum
COLUMNS = 1200
BATCH = 64  # spectra made at once
SILENCE_DB = -200.0
RANGES_DB = (40.0, 100.0)  # what a picture shows at least and at most
QUIET = 0.1  # a picture begins at the level that this part of all values lies below: the noise
RAMPS = {False: " .:-=+*#%@", True: " ░▒▓█"}
TITLES = 5  # a drawing with characters names at most this number of frequencies


class Samples(Protocol):
    """Samples that are read in order, as from `audio_io.Reader`."""

    @property
    def fs(self) -> float:
        """Sample rate, Hz."""

    @property
    def channels(self) -> int:
        """Number of channels."""

    @property
    def frames(self) -> int:
        """Samples of a channel."""

    def read_array(self, count: int) -> npt.NDArray[Any]:
        """Return the next samples, (channels, at most count)."""


class ArraySamples:
    """Samples in memory.

    Args:
        samples: (channels, time).
        fs: sample rate, Hz.
    """

    def __init__(self, samples: npt.NDArray[Any], fs: float) -> None:
        """Begin at the first sample."""
        self.fs, (self.channels, self.frames) = fs, samples.shape
        self._samples, self._next = samples, 0

    def read_array(self, count: int) -> npt.NDArray[Any]:
        """Return the next samples."""
        start, self._next = self._next, self._next + count
        return self._samples[:, start : self._next]


@dataclass(frozen=True, repr=False)
class Spectrogram:
    """Levels over time and frequency; a notebook shows the picture.

    Attributes:
        levels_db: (frequencies, times); 0 dB is a sine of amplitude 1; NaN where samples are NaN or infinite.
        fs: sample rate, Hz.
        duration_s: length of the signal.
        is_mel: whether rows are bands evenly spaced in mel (`torchfx.design.mel`, htk), else bins evenly spaced in Hz
            from 0 to half the rate.
    """

    levels_db: npt.NDArray[np.float64]
    fs: float
    duration_s: float
    is_mel: bool = False

    @property
    def frequencies_hz(self) -> npt.NDArray[np.float64]:
        """The rows' frequencies, Hz: (frequencies,)."""
        rows = len(self.levels_db)
        if self.is_mel:
            from torchfx.design.mel import hz_to_mel, mel_to_hz  # the package loads PyTorch

            return mel_to_hz(np.linspace(0, float(hz_to_mel(self.fs / 2)), rows + 2)[1:-1])
        return np.linspace(0, self.fs / 2, rows)

    @property
    def times_s(self) -> npt.NDArray[np.float64]:
        """The columns' beginnings, s: (times,)."""
        columns = self.levels_db.shape[1]
        return np.arange(columns, dtype=np.float64) * np.float64(self.duration_s / columns)

    @property
    def range_db(self) -> tuple[float, float]:
        """The lowest and the highest level of a picture, multiples of 10 dB: from the noise to the loudest value.

        The noise is the level below which a tenth of the values lie, silence aside; 40 to 100 dB are shown.
        """
        loudest = self._loudest
        if loudest <= -RANGES_DB[1]:
            return -RANGES_DB[1], 0.0
        top = 10.0 * math.ceil(loudest / 10)
        heard = self.levels_db[self.levels_db > loudest - 1.5 * RANGES_DB[1]]
        noise = 10.0 * math.floor(np.quantile(heard, QUIET) / 10)
        return min(max(noise, top - RANGES_DB[1]), top - RANGES_DB[0]), top

    def plot(self, title: str = "") -> Any:
        """Return a `matplotlib` figure; see `torchfx.spectrogram.plot`."""
        return plot(self, title)

    def __repr__(self) -> str:
        """Return sizes, not levels."""
        rows, columns = self.levels_db.shape
        return (
            f"Spectrogram({rows} frequencies, {columns} times, {self.duration_s:.3f} s, loudest {self._loudest:.1f} dB)"
        )

    @property
    def _loudest(self) -> float:
        return float(np.max(self.levels_db, where=~np.isnan(self.levels_db), initial=SILENCE_DB))

    def _repr_png_(self) -> bytes | None:
        """Return the picture for a notebook; None without matplotlib, where the text is shown."""
        try:
            return as_png(self)
        except TorchFXError:
            return None


def spectrogram(
    source: str | os.PathLike[str], columns: int = COLUMNS, size: int = SIZE, mel: int | None = None
) -> Spectrogram:
    """Measure a file, in memory that does not grow with it; see `measured` for the arguments.

    Raises:
        AudioFileError: the file cannot be read.
        ArgumentError: an argument out of range.
    """
    with audio_io.Reader(source) as reader:
        return measured(reader, columns, size, mel, reader.name)


def measured(
    source: Samples, columns: int = COLUMNS, size: int = SIZE, mel: int | None = None, name: str = ""
) -> Spectrogram:
    """Measure samples.

    Args:
        source: the samples, one at least; of several channels the mean power is taken.
        columns: how many times at most, >= 1; each holds the mean power of the spectra that begin in it.
        size: samples of a spectrum under a Hann window, >= 2; it overlaps with the next one by half at least.
        mel: bands evenly spaced in mel instead of bins, from 1 to size / 2; a band's level is that of a sine of
            its power.
        name: what warnings call the source.

    Raises:
        ArgumentError: an argument out of range.

    Warns:
        UserWarning: samples that are NaN or infinite; the levels of spectra that hold them are NaN.
    """
    columns, size = whole_number("columns", columns, 1), whole_number("size", size, 2)
    if mel is not None and whole_number("mel", mel, 1) > size // 2:
        raise ArgumentError(f"mel must lie in [1, size / 2] = [1, {size // 2}] bands, got {mel}")
    window = np.hanning(size + 1)[:-1]
    bad = NotFinite()
    power = _mean_powers(source, columns, window, bad) * (2 / window.sum()) ** 2
    if bad.found is not None:
        count, first = bad.found
        text = f"{name}: " * bool(name) + f"{count} samples are NaN or infinite, the first in frame {first}"
        warnings.warn(f"{text}; their times have no levels", stacklevel=callers_level())
        power[~np.isfinite(power).all(1)] = np.nan
    if mel is not None:
        from torchfx.design.mel import mel_filters

        # Under a Hann window a sine is in three bins, whose powers add up to 1.5 times the middle one's.
        power = power @ mel_filters(size // 2 + 1, source.fs, mel).T / 1.5
    levels = 10 * np.log10(np.maximum(power, 10 ** (SILENCE_DB / 10))).T
    return Spectrogram(levels, source.fs, source.frames / source.fs, mel is not None)


def _mean_powers(
    source: Samples, columns: int, window: npt.NDArray[np.float64], bad: NotFinite
) -> npt.NDArray[np.float64]:
    """Return squared magnitudes of spectra, averaged over channels and over those in a column: (columns, bins)."""
    size = len(window)
    hop = max(1, min(size // 2, source.frames // columns))
    spectra = -(-source.frames // hop)
    columns = min(columns, spectra)
    power, count = np.zeros((columns, size // 2 + 1)), np.zeros(columns)
    ahead = np.zeros((source.channels, size // 2))  # the first spectrum's middle is the first sample
    done = 0
    while done < spectra:
        block = np.zeros((source.channels, BATCH * hop))
        read = source.read_array(BATCH * hop)
        bad.look(read)
        block[:, : read.shape[1]] = read
        block = np.concatenate([ahead, block], axis=1)
        if block.shape[1] < size:
            ahead = block
            continue
        frames = np.lib.stride_tricks.sliding_window_view(block, size, axis=1)[:, ::hop]
        ahead = block[:, frames.shape[1] * hop :]
        with np.errstate(invalid="ignore"):  # infinite samples
            found = (np.abs(np.fft.rfft(frames[:, : spectra - done] * window)) ** 2).mean(0)
        place = np.arange(done, done + len(found)) * columns // spectra
        np.add.at(power, place, found)
        np.add.at(count, place, 1)
        done += len(found)
    return power / count[:, None]


def plot(found: Spectrogram, title: str = "") -> Any:
    """Draw levels over time and frequency, from the noise up (`Spectrogram.range_db`); return the `matplotlib` figure.

    Raises:
        TorchFXError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter, StrMethodFormatter
    except ImportError as error:
        raise TorchFXError("a picture needs matplotlib: pip install matplotlib") from error
    figure = Figure(figsize=(11, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    low, high = found.range_db
    name, top = EngFormatter("Hz"), found.fs / 2
    if found.is_mel:
        from torchfx.design.mel import hz_to_mel

        round_hz = _mel_titles(top)
        axes.set_yticks(hz_to_mel(np.array(round_hz)), [name(f) for f in round_hz])
        top = float(hz_to_mel(top))
    else:
        axes.yaxis.set_major_formatter(name)
    image = axes.imshow(
        found.levels_db, origin="lower", aspect="auto", cmap="magma", vmin=low, vmax=high, interpolation="nearest",
        extent=(0, found.duration_s, 0, top),
    )  # fmt: skip
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g} s") if found.duration_s >= 1 else EngFormatter("s"))
    axes.set(xlabel="time", ylabel="frequency, evenly spaced in mel" if found.is_mel else "frequency")
    axes.set_title(title, fontsize=9)
    figure.colorbar(image, ax=axes, label="level, dB (0: a sine of amplitude 1)")
    return figure


def as_png(found: Spectrogram, title: str = "") -> bytes:
    """Return the picture of `plot` as a PNG file."""
    picture = io.BytesIO()
    plot(found, title).savefig(picture, format="png", dpi=110)
    return picture.getvalue()


def as_text(found: Spectrogram, width: int = 80, height: int = 20, unicode: bool = False) -> str:
    """Draw with characters: the denser, the louder.

    The last line gives their levels, from `Spectrogram.range_db`. A question mark stands for NaN and infinite samples.

    Args:
        found: what was measured.
        width: columns of the text.
        height: rows of the picture; below them stand the time and the levels of the characters.
        unicode: draw with shaded blocks instead of ASCII characters.
    """
    ramp, room = RAMPS[unicode], width - 10
    rows, columns = found.levels_db.shape
    heights, widths = (_parts(rows, height), _parts(columns, min(room, columns)))
    power = 10 ** (found.levels_db / 10)
    mean = np.stack([np.stack([power[a:b, c:d].mean() for c, d in widths]) for a, b in heights])
    low, high = found.range_db
    shade = np.clip((10 * np.log10(mean) - low) / (high - low), 0, 1) * (len(ramp) - 1)
    places = np.where(np.isnan(shade), len(ramp), np.rint(np.nan_to_num(shade))).astype(int)
    titles = _row_titles(found, heights)
    lines = [
        f"{titles.get(i, ''):>9} " + "".join((ramp + "?")[place] for place in places[i])
        for i in reversed(range(height))
    ]
    seconds = found.duration_s
    end = f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"
    levels = f"{low:g} dB or less '{ramp}' {high:g} dB (0 dB: a sine of amplitude 1)"
    return "\n".join([*lines, " " * 10 + "0" + end.rjust(len(widths) - 1), " " * 10 + levels])


def _row_titles(found: Spectrogram, heights: list[tuple[int, int]]) -> dict[int, str]:
    """Return round frequencies for the rows of a drawing that hold them."""
    most = found.fs / 2
    wanted = _mel_titles(most) if found.is_mel else np.arange(0, most, _round_step(most / TITLES))
    starts = found.frequencies_hz[[min(a, len(found.levels_db) - 1) for a, _ in heights]]
    rows = np.searchsorted(starts, np.asarray(wanted), "right") - 1
    return {max(0, int(row)): _in_hz(f) for row, f in reversed(list(zip(rows, wanted, strict=True)))}


def _in_hz(frequency: float) -> str:
    return f"{frequency / 1000:g} kHz" if frequency >= 1000 else f"{frequency:g} Hz"


def _mel_titles(most: float) -> list[float]:
    """Return 0 and round frequencies (Hz), about evenly spaced in mel, below half a sample rate."""
    decades = range(1, max(2, math.ceil(math.log10(most))))
    return [0.0] + [f for e in decades for f in (10.0**e * n for n in (1, 2, 5)) if 200 <= f <= most]


def _round_step(least: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= least * (1 - 1e-9))


def _parts(count: int, parts: int) -> list[tuple[int, int]]:
    edges = [i * count // parts for i in range(parts + 1)]
    return [(a, max(b, a + 1)) for a, b in itertools.pairwise(edges)]
