"""Make the recording, filter it, time that, compare it with SciPy, and write the files."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch.utils.benchmark import Timer

from torchfx import effect, filter
from torchfx.core.processor import FilterChain
from torchfx.core.wave import Wave
from torchfx.demo import music, picture
from torchfx.demo.spectrum import spectra
from torchfx.errors import AudioFileError
from torchfx.rate import sample_rate

__all__ = ["Report", "run"]

FS = 44_100
SECONDS = 30.0


@dataclass(frozen=True)
class Report:
    """The results of the demonstration.

    Attributes:
        folder: where the files are.
        files: the files' names.
        plan: the lowered chain, as text.
        median_s: median time of one pass over the recording, seconds.
        iqr_s: interquartile range of those times, seconds.
        passes: how many passes were timed, after warming up.
        audio_s: length of the recording, seconds.
        deviation: largest difference from SciPy in float64, relative to the result's peak.
        drawing: the spectra as text where no picture could be drawn, else "".
    """

    folder: Path
    files: tuple[str, ...]
    plan: str
    median_s: float
    iqr_s: float
    passes: int
    audio_s: float
    deviation: float
    drawing: str


def run(parent: Path) -> Report:
    """Run the demonstration and write its files into a new folder below `parent`."""
    folder = _new_folder(parent)
    wave = Wave(music.recording(SECONDS, FS), FS)
    chain = FilterChain(
        filter.HiButterworth(70, order=4),
        filter.LoChebyshev1(11_000, order=6, ripple=0.5),
        effect.Gain("-3dB"),
    )
    with sample_rate(FS):
        plan = str(chain.plan())
    result = wave | chain
    timing = Timer("wave | chain", globals={"wave": wave, "chain": chain}).blocked_autorange(min_run_time=1.0)
    deviation = _deviation(np.asarray(result), _with_scipy(np.asarray(wave)))

    wave.save(folder / "before.wav", bits_per_sample=24)
    result.save(folder / "after.wav", bits_per_sample=24)
    files, drawing = ["before.wav", "after.wav"], ""
    found = spectra(np.asarray(wave), np.asarray(result), chain, FS)
    if importlib.util.find_spec("matplotlib") is not None:
        picture.save_png(found, " | ".join(map(str, chain)), folder / "spectrum.png")
        files.append("spectrum.png")
    else:
        drawing = picture.as_text(found)
    passes = timing.number_per_run * len(timing.times)
    return Report(folder, tuple(files), plan, timing.median, timing.iqr, passes, wave.duration(), deviation, drawing)


def _with_scipy(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Filter the same samples with SciPy in float64, each filter designed and run by SciPy alone."""
    from scipy import signal

    y = signal.sosfilt(signal.butter(4, 70, "highpass", fs=FS, output="sos"), x.astype(np.float64))
    y = signal.sosfilt(signal.cheby1(6, 0.5, 11_000, "lowpass", fs=FS, output="sos"), y)
    scaled: npt.NDArray[np.float64] = y * 10 ** (-3 / 20)
    return scaled


def _deviation(y: npt.NDArray[np.float32], exact: npt.NDArray[np.float64]) -> float:
    return float(np.abs(y - exact).max() / np.abs(exact).max())


def _new_folder(parent: Path) -> Path:
    """Make torchfx-demo, or torchfx-demo-2 and so on where that exists: nothing is overwritten."""
    number = 1
    while True:
        folder = parent / ("torchfx-demo" if number == 1 else f"torchfx-demo-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise AudioFileError(f"cannot write into {parent}: {error.strerror}") from error
        else:
            return folder
