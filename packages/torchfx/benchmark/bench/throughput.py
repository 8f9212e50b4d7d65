"""The suites iir, fir and api: whole signals, from a second to ten minutes, through every contender in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bench import chains, signals
from bench.chains import Chain
from bench.process import ContenderError, Peer
from bench.report import Refusal, ThroughputRow
from bench.seats import FLOORS, Seat, check, take_seats
from bench.timing import calls_per_turn, interleave, ratio, spread

__all__ = ["SUITES", "Measured", "Settings", "Suite", "run"]

MEMORY = 4 << 30  # bytes that a suite may take in all
OVERHEAD = 1 << 30  # of which this much goes to the processes themselves
HELD = {
    "torchfx unfused": 3,
    "torchfx class": 3,
    "torchfx pipe": 3,
    "torchaudio lfilter": 5,
    "torchaudio fftconvolve": 5,
}
"""Signals that a contender holds at once: the input, the output, and what lies between filters; 2 unless named."""

BYTES_PER_SAMPLE = 8  # float32, read once and written once


@dataclass(frozen=True)
class Suite:
    """A comparison: a chain, who runs it, and on which signals.

    Attributes:
        title: what it measures.
        chain: the filters.
        contenders: who takes part where it is installed; "copy" is the bound.
        baseline: the contender that speed-ups refer to.
        durations_s, channels: the signals' sizes, all combinations.
        quick_durations_s, quick_channels: those of a quick run.
    """

    title: str
    chain: Chain
    contenders: tuple[str, ...]
    baseline: str
    durations_s: tuple[float, ...]
    channels: tuple[int, ...]
    quick_durations_s: tuple[float, ...]
    quick_channels: tuple[int, ...]


SUITES: Mapping[str, Suite] = {
    "iir": Suite(
        "recursive filters",
        chains.IIR,
        ("copy", "torchfx", "torchfx unfused", "scipy lfilter", "scipy sosfilt", "torchaudio lfilter"),
        "scipy sosfilt",
        (1, 5, 180, 300, 600),
        (1, 2, 4, 8, 12),
        (1, 5),
        (1, 2, 8),
    ),
    "fir": Suite(
        "finite impulse responses",
        chains.FIR,
        ("copy", "torchfx", "torchfx unfused", "scipy lfilter", "scipy oaconvolve", "torchaudio fftconvolve"),
        "scipy lfilter",
        (5, 60, 180, 300, 600),
        (1, 2, 4, 8, 12),
        (1, 5),
        (1, 2, 8),
    ),
    "api": Suite(
        "ways of writing one chain",
        chains.API,
        ("copy", "torchfx class", "torchfx unfused", "torchfx pipe", "torchfx", "torchfx chain", "scipy lfilter"),
        "scipy lfilter",
        (120,),
        (8,),
        (5,),
        (8,),
    ),
}


@dataclass(frozen=True)
class Settings:
    """How a suite is run.

    Attributes:
        durations_s, channels: the signals' sizes.
        rounds: turns per contender and signal.
        limit_s: no further round for a signal after this many seconds, three rounds being the least.
        threads: PyTorch's threads in every contender.
        peers: other Pythons that take part.
    """

    durations_s: tuple[float, ...]
    channels: tuple[int, ...]
    rounds: int
    limit_s: float
    threads: int
    peers: tuple[Peer, ...] = ()

    def sizes(self) -> list[tuple[float, int]]:
        """Return every combination of duration and channels."""
        return [(duration, count) for duration in self.durations_s for count in self.channels]


@dataclass(frozen=True)
class Measured:
    """What one signal gave."""

    rows: list[ThroughputRow]
    refused: list[Refusal]
    notes: list[str] = field(default_factory=list)


def run(suite: Suite, settings: Settings) -> Iterator[Measured]:
    """Measure signal by signal and yield each one's rows; first of all, what cannot take part."""
    with take_seats("whole", suite.contenders, settings.peers) as (seats, refused, folder):
        yield Measured([], refused)
        for duration, channels in settings.sizes():
            yield _measure(suite, settings, seats, folder, duration, channels)


def _measure(
    suite: Suite, settings: Settings, seats: list[Seat], folder: Path, duration: float, channels: int
) -> Measured:
    case = f"{channels} x {duration:g} s"
    path = folder / "signal.npy"
    x = signals.write_noise(path, channels, round(duration * suite.chain.fs))
    ready: dict[str, tuple[Seat, int, int, float | None]] = {}
    refused, notes = [], []
    for seat in list(seats):
        if not _fits(seat, x.nbytes):
            notes.append(f"left out: {seat.label}, {case}: it would take more than {MEMORY >> 30} GiB")
            continue
        job = suite.chain.job(seat.device, channels)
        arguments = {"contender": seat.contender, "job": job, "signal": str(path), "threads": settings.threads}
        try:
            answer = seat.process.ask("prepare", **arguments)
            off = None if seat.contender in FLOORS else check(seat, suite.chain, x, answer, folder)
            seat.process.ask("drop")
            calls = calls_per_turn(seat.process.ask("time", number=1)["seconds"])
        except ContenderError as error:
            refused.append(Refusal(seat.label, seat.device, case, str(error)))
            seats.remove(seat)
            continue
        ready[seat.label] = (seat, answer["channels"] * answer["samples"], calls, off)
    del x

    turns = {label: partial(_take_turn, seat, calls) for label, (seat, _, calls, _) in ready.items()}
    times = interleave(turns, settings.rounds, settings.limit_s)
    rows = [
        _row(seat, times[label], times.get(suite.baseline), size, calls, off, duration, channels)
        for label, (seat, size, calls, off) in ready.items()
    ]
    return Measured(_with_share_of_copy(rows), refused, notes)


def _fits(seat: Seat, signal_bytes: int) -> bool:
    held = HELD.get(seat.contender, 3 if seat.process.peer.name else 2)
    return signal_bytes * held + OVERHEAD <= MEMORY


def _take_turn(seat: Seat, calls: int) -> float:
    seconds: float = seat.process.ask("time", number=calls)["seconds"]
    return seconds


def _row(
    seat: Seat,
    times: Sequence[float],
    baseline: Sequence[float] | None,
    size: int,
    calls: int,
    off: float | None,
    duration: float,
    channels: int,
) -> ThroughputRow:
    time = spread(times)
    faster = None if baseline is None or off is None else ratio(baseline, times)
    return ThroughputRow(
        contender=seat.label,
        device=seat.device,
        channels=channels,
        duration_s=duration,
        time_s=time.median,
        low_s=time.low,
        high_s=time.high,
        rounds=time.count,
        calls=calls,
        deviation=off,
        ns_per_sample=time.median / size * 1e9,
        gb_per_s=BYTES_PER_SAMPLE * size / time.median / 1e9,
        of_copy=None,
        speedup=None if faster is None else faster.median,
        speedup_low=None if faster is None else faster.low,
        speedup_high=None if faster is None else faster.high,
    )


def _with_share_of_copy(rows: list[ThroughputRow]) -> list[ThroughputRow]:
    bound = {row.device: row.gb_per_s for row in rows if row.deviation is None}
    return [replace(row, of_copy=row.gb_per_s / bound[row.device]) if row.device in bound else row for row in rows]
