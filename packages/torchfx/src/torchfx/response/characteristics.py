"""Characteristics of a filter, read from its response: type, edges, ripple, attenuation, delay, stability."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from torchfx.errors import ArgumentTypeError
from torchfx.plan import Plan
from torchfx.response.systems import group_delay, poles, response, zeros

__all__ = ["Characteristics", "characteristics", "decibels", "describe", "grid"]

Array = npt.NDArray[np.float64]

HALF_POWER_DB = 10 * math.log10(2)
STOPPED_DB = 20.0  # an end of the response that lies so far below the pass band is stopped
FAR_STOPPED_DB = 45.0  # likewise, even where the response is level there, as windowed FIR filters are
FALLEN_DB, WIDE = 6.0, 4.0  # an end so far below a peak of this width (ratio of its edges) is beyond a pass band
EVEN_DB = 0.01  # a response that varies by less lets all frequencies pass alike
SILENT_DB = -600.0
POINTS = 4096
BANDS = frozenset(("low-pass", "high-pass", "band-pass", "band-stop", "multi-band"))
"""Kinds that pass some frequencies and stop others."""


@dataclass(frozen=True)
class Characteristics:
    """The properties of one filter at one sample rate.

    Attributes:
        kind: "low-pass", "high-pass", "band-pass", "band-stop", "multi-band", "all-pass", "gain", "peak", "dip",
            "low shelf", "high shelf", "equaliser" or "silence".
        fs: sample rate, Hz.
        gain_db: of the pass band; of a peak, a dip and a shelf, what they do; of others the highest.
        centre_hz: of a peak or dip; else None.
        edges_hz: where the gain is 3.01 dB below the pass band's, or half a peak's or shelf's.
        ripple_db: between the highest and the lowest extreme in the pass band.
        resonance: (Hz, dB over the pass band) of a peak of more than 3 dB at an edge, or None.
        octave_beyond: (Hz, dB relative to the pass band) an octave beyond each edge, if there is one.
        group_delay: least and greatest group delay where the filter passes, samples.
        pole_radius: largest distance of a pole from 0; None without poles.
        decay_ms: in which the slowest pole decays by 60 dB; None without poles.
    """

    kind: str
    fs: float
    gain_db: float
    centre_hz: float | None
    edges_hz: tuple[float, ...]
    ripple_db: float
    resonance: tuple[float, float] | None
    octave_beyond: tuple[tuple[float, float], ...]
    group_delay: tuple[float, float]
    pole_radius: float | None
    decay_ms: float | None

    def __str__(self) -> str:
        """Return the facts as sentences."""
        return " ".join([*self._response(), *self._time()])

    def _response(self) -> list[str]:
        name, gain = self.kind.capitalize(), _signed(self.gain_db)
        shown = [_hertz(edge) for edge in self.edges_hz]
        edges = " and ".join(shown) if len(shown) < 3 else f"{', '.join(shown[:3])}, ... ({len(shown)} edges)"
        if self.kind == "silence":
            return ["Silence: no frequency passes."]
        if self.kind in {"all-pass", "gain"}:
            return [f"{name}: {gain} at every frequency."]
        if self.centre_hz is not None:
            return [f"{name} of {gain} at {_hertz(self.centre_hz)}; half of it at {edges}."]
        if self.kind.endswith("shelf"):
            return [f"{name} of {gain}; half of it at {edges}."]
        if self.kind == "equaliser":
            return [f"Equaliser: gains from {_signed(self.gain_db - self.ripple_db)} to {gain}."]
        said = [f"{name}: -3 dB at {edges}; pass band at {gain}, ripple {self.ripple_db:.2f} dB."]
        if self.resonance is not None:
            said.append(f"Resonance of {_signed(self.resonance[1])} at {_hertz(self.resonance[0])}.")
        if self.octave_beyond:
            levels = ", ".join(f"{db:.1f} dB at {_hertz(hz)}" for hz, db in self.octave_beyond)
            said.append(f"An octave beyond: {levels}.")
        return said

    def _time(self) -> list[str]:
        said, (low, high) = [], self.group_delay
        if self.kind != "silence":
            if high - low < 1e-6 * (1 + abs(high)):
                said.append(f"Linear phase: delay {_samples(high, self.fs)}.")
            else:
                where = " in the pass band" if self.kind in BANDS else ""
                said.append(f"Group delay {_samples(low, self.fs)} to {_samples(high, self.fs)}{where}.")
        if self.pole_radius is None or self.decay_ms is None:
            said.append("No poles: stable.")
        else:
            said.append(
                f"Stable: largest pole radius {self.pole_radius:.6g}, {1 - self.pole_radius:.2g} inside the unit "
                f"circle; it decays by 60 dB in {self.decay_ms:.3g} ms."
            )
        return said


def describe(plan: Plan) -> str:
    """Return what a plan does in sentences; those of several filters (a batch, a bank) on a line each."""
    found = characteristics(plan)
    if len(found) == 1:
        return str(found[0])
    return "\n".join(f"{i + 1} of {len(found)}: {each}" for i, each in enumerate(found))


def characteristics(plan: Plan) -> list[Characteristics]:
    """Return what each filter of a plan does; coefficients with leading dimensions are several filters.

    Raises:
        ArgumentTypeError, ArgumentError: as `response`.
    """
    with torch.no_grad():
        freqs = grid(plan)
        gains, delays = decibels(response(plan, freqs)), group_delay(plan, freqs).cpu().numpy()
        radii = poles(plan).abs().cpu().numpy()
        rows = gains.reshape(-1, len(freqs))
        delays = np.broadcast_to(delays, gains.shape).reshape(rows.shape)
        radii = np.broadcast_to(radii, (*gains.shape[:-1], radii.shape[-1])).reshape(len(rows), -1)

        def at(row: int) -> Callable[[Array], Array]:
            return lambda freqs: decibels(response(plan, freqs)).reshape(len(rows), -1)[row]

        fs = float(plan.fs or 0)
        return [_read(fs, freqs, rows[i], at(i), delays[i], radii[i]) for i in range(len(rows))]


def grid(plan: Plan) -> Array:
    """Return frequencies (Hz) from 0 to fs/2 that show a plan: some for each octave, and those of poles and zeros."""
    response(plan, 0.0)  # raises if the plan has no response
    assert plan.fs is not None
    nyquist = plan.fs / 2
    with torch.no_grad():
        roots = poles(plan).flatten().cpu().numpy()
        near = roots[np.abs(roots) > 0.9]
        width = (1 - np.abs(near))[:, None] * np.array([0, 0.1, 0.3, 1, 3, 10])
        angles = np.concatenate([(np.angle(near)[:, None] + sign * width).flatten() for sign in (-1, 1)])
    special = np.concatenate([np.abs(angles), _notches(plan)]) * nyquist / math.pi
    special = special[(special > 0) & (special < nyquist)]
    lowest = min([nyquist / 4800, *(special / 16)])
    spread = np.geomspace(max(lowest, nyquist * 1e-9), nyquist, POINTS)
    return np.unique(np.concatenate([[0.0], spread, np.linspace(0, nyquist, POINTS // 2), special]))


def _notches(plan: Plan) -> Array:
    """Return the angles of zeros, which are the deepest points of notches."""
    few = all(getattr(step, "settling", 0) < 200 for step in plan.steps)
    try:
        found = zeros(plan).flatten().cpu().numpy() if few else np.zeros(0)
    except ArgumentTypeError:  # a sum
        found = np.zeros(0)
    return np.abs(np.angle(found[np.isfinite(found)]))


def decibels(h: torch.Tensor) -> Array:
    """Return the magnitude of a complex response in dB, at least -6000."""
    found: Array = 20 * np.log10(np.maximum(h.detach().abs().cpu().numpy(), 1e-300))
    return found


def _signed(db: float) -> str:
    return f"{round(db, 2) + 0.0:+.2f} dB"  # no -0.00


def _hertz(freq: float) -> str:
    return f"{float(f'{freq:.4g}'):g} Hz"


def _samples(delay: float, fs: float) -> str:
    return f"{delay:.4g} samples ({1000 * delay / fs:.3g} ms)"


# --- reading a curve --------------------------------------------------------------------------------------------------


def _read(
    fs: float, freqs: Array, gains: Array, gain_at: Callable[[Array], Array], delays: Array, radii: Array
) -> Characteristics:
    curve = Curve(freqs, gains, gain_at)
    kind, gain, centre, level = _kind(curve, delays)
    edges = curve.crossings(level) if level is not None else ()
    passing = gains >= (level if level is not None and kind in BANDS else SILENT_DB)
    ripple, resonance = _ripple(curve, kind, gain, passing)
    heard = delays[passing] if passing.any() else np.zeros(1)
    radius = float(radii.max(initial=0.0))
    decay = 1000 * math.log(1000) / -math.log(radius) / fs if 0 < radius < 1 else 0.0 if radius == 0 else math.inf
    return Characteristics(
        kind=kind,
        fs=fs,
        gain_db=gain,
        centre_hz=centre,
        edges_hz=edges,
        ripple_db=ripple,
        resonance=resonance,
        octave_beyond=_octave_beyond(curve, kind, gain, edges),
        group_delay=(float(heard.min()), float(heard.max())),
        pole_radius=radius if radius else None,
        decay_ms=decay if radius else None,
    )


@dataclass(frozen=True)
class Curve:
    """Gains (dB) over frequencies (Hz), and a way to ask for more of them."""

    freqs: Array
    gains: Array
    at: Callable[[Array], Array]

    def crossings(self, level: float) -> tuple[float, ...]:
        """Return where the gain crosses a level (dB), Hz: to nine digits, by dividing the interval three times."""
        above = self.gains >= level
        i = np.flatnonzero(above[1:] != above[:-1])
        low, high = self.freqs[i], self.freqs[i + 1]
        for _ in range(3):
            if not len(i):
                break
            points = np.linspace(low, high, 65)
            found = self.at(points.flatten()).reshape(points.shape) >= level
            place = (found[1:] != found[:-1]).argmax(axis=0)
            columns = np.arange(len(i))
            low, high = points[place, columns], points[place + 1, columns]
        return tuple(float(each) for each in (low + high) / 2)

    def extreme(self, i: int) -> tuple[float, float]:
        """Return frequency and gain of the extreme at a point of the grid, from ever finer points around it."""
        sign = 1 if self.gains[i] > self.gains[0] else -1
        low, high = self.freqs[max(i - 1, 0)], self.freqs[min(i + 1, len(self.freqs) - 1)]
        for _ in range(3):
            points = np.linspace(low, high, 65)
            gains = self.at(points)
            best = int((sign * gains).argmax())
            low, high = points[max(best - 1, 0)], points[min(best + 1, 64)]
        return float(points[best]), float(gains[best])

    def monotonic(self, start: int, stop: int) -> bool:
        """Return whether the gain only rises or only falls between two points of the grid."""
        steps = np.diff(self.gains[start : stop + 1])
        return bool((steps > -EVEN_DB / 10).all() or (steps < EVEN_DB / 10).all())


def _kind(curve: Curve, delays: Array) -> tuple[str, float, float | None, float | None]:
    """Return the kind of filter, its gain (dB), its centre (Hz), and the level (dB) at which it has edges."""
    gains = curve.gains
    top, bottom, first, last = (float(each) for each in (gains.max(), gains.min(), gains[0], gains[-1]))
    if top < SILENT_DB:
        return "silence", top, None, None
    if top - bottom < EVEN_DB:
        return "gain" if np.ptp(delays) < EVEN_DB else "all-pass", top, None, None
    inside = top > max(first, last) + HALF_POWER_DB  # the highest gain is at neither end
    peak = int(gains.argmax())
    low, high = _stopped(gains[: peak + 1], inside), _stopped(gains[peak:][::-1], inside)
    # Where an end passes, a peak above it that is more than ripple is a resonance.
    ends = [gain for gain, stopped in ((first, low), (last, high)) if not stopped]
    reference = max(ends) if inside and ends else top
    if inside and low != high and top - reference > FALLEN_DB:
        sides = curve.crossings(top - HALF_POWER_DB)
        if len(sides) == 2 and sides[1] > WIDE * sides[0]:  # too wide for a resonance: weighting curves
            return "band-pass", top, None, top - HALF_POWER_DB
    level = reference - HALF_POWER_DB
    bend = int(gains.argmax() if top - max(first, last) > min(first, last) - bottom else gains.argmin())
    single = curve.monotonic(0, bend) and curve.monotonic(bend, len(gains) - 1)
    if low or high or (bottom < min(first, last) - (FAR_STOPPED_DB if single else STOPPED_DB)):
        name = "band-pass" if low and high else "high-pass" if low else "low-pass" if high else "band-stop"
        several = len(curve.crossings(level)) > (1 if low != high else 2)
        return "multi-band" if several else name, reference, None, level
    if single and abs(first - last) < EVEN_DB:
        centre, extreme = curve.extreme(bend)
        change = extreme - first
        return "peak" if change > 0 else "dip", change, centre, first + change / 2
    if curve.monotonic(0, len(gains) - 1):
        middle = (first + last) / 2
        return (
            ("low shelf", first - last, None, middle)
            if abs(last) < abs(first)
            else ("high shelf", last - first, None, middle)
        )
    return "equaliser", top, None, None


def _stopped(gains: Array, inside: bool) -> bool:
    """Return whether the end of a response is stopped that begins these gains; they go on to the highest.

    Far below a peak inside, a level end may still be passed; not where zeros make gaps that are deeper still.
    """
    end, top = float(gains[0]), float(gains[-1])
    if end > top - STOPPED_DB:
        return False
    level = abs(end - gains[1]) < EVEN_DB and end > top - FAR_STOPPED_DB and gains.min() > end - FAR_STOPPED_DB
    return not (inside and level)


def _ripple(
    curve: Curve, kind: str, gain: float, passing: npt.NDArray[np.bool_]
) -> tuple[float, tuple[float, float] | None]:
    """Return the ripple (dB) in the pass band and the resonance, (Hz, dB)."""
    gains = curve.gains
    if kind in {"silence", "equaliser"}:
        return (float(np.ptp(gains)) if kind == "equaliser" else 0.0), None
    if kind not in BANDS:
        return 0.0, None
    place = int(gains.argmax())
    resonance = None
    if gains[place] > gain + HALF_POWER_DB:
        resonance = (float(curve.freqs[place]), float(gains[place]) - gain)
    # Extremes: where both neighbours are lower, or both higher; the ends of the axis are level.
    padded = np.concatenate([gains[1:2], gains, gains[-2:-1]])
    before, after = padded[:-2] - gains, padded[2:] - gains
    extreme = passing & (before * after >= 0) & (gains <= gain + HALF_POWER_DB)
    heights = gains[extreme]
    return float(np.ptp(heights)) if len(heights) else 0.0, resonance


def _octave_beyond(curve: Curve, kind: str, gain: float, edges: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    wanted = {
        "low-pass": [edges[-1] * 2] if edges else [],
        "high-pass": [edges[0] / 2] if edges else [],
        "band-pass": [edges[0] / 2, edges[-1] * 2] if len(edges) == 2 else [],
    }.get(kind, [])
    inside = np.array([freq for freq in wanted if freq <= curve.freqs[-1]])
    if not len(inside):
        return ()
    return tuple((float(freq), float(db) - gain) for freq, db in zip(inside, curve.at(inside), strict=True))
