"""A short recording of a small band, made from nothing: plucked guitar, bass, electric piano, drums, and the flaws
a live recording has (stage rumble, mains hum, tape hiss), so that filtering has something to do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["recording"]

Signal = npt.NDArray[np.float64]

TEMPO_BPM = 96
CHORDS = (("A2", "C4 E4 A4 C5"), ("F2", "C4 F4 A4 C5"), ("C3", "C4 E4 G4 C5"), ("G2", "B3 D4 G4 B4"))
NOTES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}


def recording(seconds: float = 30.0, fs: int = 44_100, seed: int = 1) -> npt.NDArray[np.float32]:
    """Return a stereo recording, float32, (2, seconds * fs), peaking near 0.9."""
    rng = np.random.default_rng(seed)
    total = int(seconds * fs)
    mix = np.zeros((2, total + 4 * fs))
    beat = 60 / TEMPO_BPM
    for bar in range(int(np.ceil(seconds / (4 * beat)))):
        start = bar * 4 * beat
        root, chord = CHORDS[bar % len(CHORDS)]
        voices = [_frequency(note) for note in chord.split()]
        for i in range(8):
            at = start + i * beat / 2
            _add(mix, at, _plucked(voices[(i * 3) % 4], 1.2, fs, rng) * 0.35, pan=-0.5, fs=fs)
            _add(mix, at, _hat(fs, rng) * (0.12 if i % 2 else 0.2), pan=0.4, fs=fs)
        for offset in (0, 1.5, 2, 3.5):
            _add(mix, start + offset * beat, _bass(_frequency(root), 0.9 * beat, fs) * 0.45, pan=0.0, fs=fs)
        for voice in voices:
            _add(mix, start, _piano(voice, 4 * beat, fs) * 0.07, pan=0.5, fs=fs)
        for i in range(4):
            drum = _snare(fs, rng) * 0.4 if i % 2 else _kick(fs) * 0.8
            _add(mix, start + i * beat, drum, pan=0.05, fs=fs)
    mix = mix[:, :total]
    mix *= 0.85 / np.abs(mix).max()
    return (mix + _flaws(total, fs, rng)).astype(np.float32)


def _frequency(note: str) -> float:
    """Return the frequency (Hz) of a note such as A4 = 440 Hz, equal temperament."""
    return float(440 * 2 ** ((NOTES[note[0]] + 12 * (int(note[1]) - 4) - 9) / 12))


def _add(mix: Signal, at: float, sound: Signal, pan: float, fs: int) -> None:
    """Mix a mono sound in at a time (s), panned from -1 (left) to 1 (right) at constant power."""
    start = int(at * fs)
    length = min(sound.size, mix.shape[1] - start)
    angle = (pan + 1) * np.pi / 4
    mix[0, start : start + length] += np.cos(angle) * sound[:length]
    mix[1, start : start + length] += np.sin(angle) * sound[:length]


def _time(seconds: float, fs: int) -> Signal:
    return np.arange(int(seconds * fs)) / fs


def _plucked(frequency: float, seconds: float, fs: int, rng: np.random.Generator) -> Signal:
    """A string after Karplus and Strong (1983): a burst of noise runs round a loop that averages neighbours."""
    from scipy.signal import lfilter

    period = int(fs / frequency)
    burst = np.zeros(int(seconds * fs))
    burst[:period] = rng.uniform(-1, 1, period)
    loop = np.zeros(period + 2)
    loop[0], loop[period], loop[period + 1] = 1, -0.4975, -0.4975
    sound: Signal = lfilter([1.0], loop, burst)
    return sound * np.minimum(1, (seconds - _time(seconds, fs)) / 0.05)


def _bass(frequency: float, seconds: float, fs: int) -> Signal:
    t = _time(seconds, fs)
    harmonics: Signal = sum((np.sin(2 * np.pi * k * frequency * t) / k**1.5 for k in range(1, 9)), np.zeros_like(t))
    return harmonics * np.exp(-2.5 * t) * np.minimum(1, t / 0.008) * np.minimum(1, (seconds - t) / 0.03)


def _piano(frequency: float, seconds: float, fs: int) -> Signal:
    """An electric piano: one sine modulates the phase of another (Chowning, 1973)."""
    t = _time(seconds, fs)
    modulator = np.exp(-4 * t) * np.sin(2 * np.pi * 14 * frequency * t) * 0.4
    tone: Signal = np.sin(2 * np.pi * frequency * t + modulator)
    return tone * np.exp(-0.9 * t) * np.minimum(1, t / 0.005) * np.minimum(1, (seconds - t) / 0.1)


def _kick(fs: int) -> Signal:
    t = _time(0.35, fs)
    phase = 2 * np.pi * (48 * t + 110 * (1 - np.exp(-30 * t)) / 30)
    sound: Signal = np.sin(phase) * np.exp(-9 * t)
    return sound


def _snare(fs: int, rng: np.random.Generator) -> Signal:
    t = _time(0.25, fs)
    sound: Signal = rng.standard_normal(t.size) * 0.35 * np.exp(-18 * t) + np.sin(2 * np.pi * 190 * t) * np.exp(-25 * t)
    return sound


def _hat(fs: int, rng: np.random.Generator) -> Signal:
    t = _time(0.08, fs)
    noise: Signal = np.diff(rng.standard_normal(t.size + 2), 2)  # twice differenced: bright
    return noise * np.exp(-60 * t) * 0.3


def _flaws(total: int, fs: int, rng: np.random.Generator) -> Signal:
    """Rumble around 22 Hz, hum at 50 Hz, hiss: each channel its own rumble and hiss."""
    t = np.arange(total) / fs
    wander = np.cumsum(rng.standard_normal((2, total)), axis=1) / np.sqrt(fs) * 2
    rumble = 0.05 * np.sin(2 * np.pi * 22 * t + wander)
    hum = 0.01 * np.sin(2 * np.pi * 50 * t)
    hiss: Signal = 0.003 * np.diff(rng.standard_normal((2, total + 1)), axis=1)
    flaws: Signal = hiss + hum + rumble
    return flaws
