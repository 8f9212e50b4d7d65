"""Effects and loudness against pedalboard, librosa and pyloudnorm, where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bench.chains import Chain, Design
from torchfx import loudness, spec
from torchfx.core.wave import Wave
from torchfx.realtime import Stream

__all__ = [
    "Effect", "by_librosa", "by_pedalboard", "by_pedalboard_stream", "by_pyloudnorm", "called", "cents_off",
    "loudness_of", "loudness_off", "off", "off_in_blocks", "processed", "streamed",
]  # fmt: skip

Samples = npt.NDArray[np.float32]

CHORD = (261.63, 329.63, 392.0)  # Hz


@dataclass(frozen=True)
class Effect(Chain):
    """One effect.

    Attributes:
        text: as on the command line, of a chain with " | " between; "" for a measurement.
        peer: pedalboard's class and its arguments; of a chain one after the other.
    """

    filters: tuple[Design, ...] = ()
    fs: int = 48_000
    text: str = ""
    peer: tuple[Any, ...] = ()

    def job(self, device: str = "cpu", channels: int = 1) -> dict[str, Any]:
        """Return what the works below want to know."""
        return {"fs": self.fs, "text": self.text, "peer": self.peer}


def build(text: str) -> Any:
    """Return an effect or a chain."""
    return reduce(or_, map(spec.build, text.split(" | ")))


def processed(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return `wave | effect`."""
    wave, module = Wave(x, job["fs"]), build(job["text"])
    return lambda: (wave | module).ys


def called(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return `effect(x)` with the rate that it was built for, if it depends on one."""
    module, samples = build(job["text"]), torch.from_numpy(x)
    if "fs" in module.declarations:
        module.fs = job["fs"]
    return lambda: module(samples)


def off(effect: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return the largest difference from the float64 result, relative to its peak."""
    assert isinstance(effect, Effect)
    exact = (Wave(x.astype(np.float64), effect.fs) | build(effect.text)).ys.numpy()
    return float(np.abs(y - exact).max() / np.abs(exact).max())


def off_in_blocks(effect: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return the largest relative difference from float64 in a stream of ten blocks; the first block gave y."""
    assert isinstance(effect, Effect)
    single, double = (Stream(build(effect.text), effect.fs, len(x)) for _ in range(2))
    samples = torch.from_numpy(x)
    blocks = np.stack([single.process(samples).numpy() for _ in range(10)])
    exact = np.stack([double.process(samples.double()).numpy() for _ in range(10)])
    return float(max(np.abs(blocks - exact).max(), np.abs(blocks[0] - y).max()) / np.abs(exact).max())


def by_pedalboard(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of pedalboard's effect."""
    effect = _peer(job)
    return lambda: effect(x, job["fs"])


def streamed(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return `Stream.process(x)`: the first call starts from rest, later ones continue."""
    stream, samples = Stream(build(job["text"]), job["fs"], len(x)), torch.from_numpy(x)
    return lambda: stream.process(samples)


def by_pedalboard_stream(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of pedalboard's effect that continues the one before."""
    effect = _peer(job)
    return lambda: effect(x, job["fs"], reset=False)


def _peer(job: dict[str, Any]) -> Any:
    import pedalboard

    def built(name: str, *arguments: Any) -> Any:
        return getattr(pedalboard, name)(*arguments)

    peer = job["peer"]
    return built(*peer) if isinstance(peer[0], str) else built("Pedalboard", [built(*each) for each in peer])


def by_librosa(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of librosa's pitch shift."""
    import librosa

    semitones = _semitones(job["text"])
    return lambda: librosa.effects.pitch_shift(x, sr=job["fs"], n_steps=semitones)


def _semitones(text: str) -> float:
    return float(text.partition(":")[2])


def cents_off(effect: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return how far off the partials of a chord as long as the signal are, in cents, after a pitch shift."""
    assert isinstance(effect, Effect)
    if y.shape != x.shape:
        return float("inf")
    shift, t = spec.build(effect.text), np.arange(x.shape[-1]) / effect.fs
    chord = np.sin(2 * np.pi * np.outer(CHORD, t)).sum(0)
    levels = np.log(np.abs(np.fft.rfft(shift(torch.from_numpy(chord)).numpy() * np.hanning(len(t)))))
    errors = []
    for partial in CHORD:
        expected = partial * 2 ** (_semitones(effect.text) / 12) * len(t) / effect.fs
        first = round(expected * 2 ** (-0.5 / 12))
        peak = first + int(levels[first : round(expected * 2 ** (0.5 / 12))].argmax())
        before, at, after = levels[peak - 1 : peak + 2]
        found = peak + (before - after) / (2 * (before - 2 * at + after))
        errors.append(1200 * abs(np.log2(found / expected)))
    return float(max(errors))


def loudness_of(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a measurement of the integrated loudness."""
    samples = torch.from_numpy(x)
    return lambda: loudness.integrated(samples, job["fs"])


def by_pyloudnorm(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the same by pyloudnorm, which takes frames first, with the standard's filters."""
    import pyloudnorm

    meter, frames = pyloudnorm.Meter(job["fs"], filter_class="DeMan"), np.ascontiguousarray(x.T)
    return lambda: meter.integrated_loudness(frames)


def loudness_off(effect: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return the difference from the float64 result, relative to it."""
    exact = float(loudness.integrated(torch.from_numpy(x).double(), effect.fs))
    return abs(float(y) - exact) / abs(exact)
