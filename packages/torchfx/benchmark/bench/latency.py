"""The suite latency: time per call on small blocks, with the state carried as a live stream does, and from rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import chains, signals
from bench.process import ContenderError, Peer
from bench.report import LatencyRow, Refusal
from bench.seats import FLOORS, Seat, check, take_seats
from bench.timing import interleave

__all__ = ["BLOCKS", "NOTES", "QUICK_BLOCKS", "LatencySettings", "MeasuredLatency", "check_blocks", "run", "summarise"]

BLOCKS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
QUICK_BLOCKS = (16, 256, 4096)

CHAIN = chains.IIR
CONTENDERS = (
    "torch.mul", "torchfx", "torchfx Stream", "torchfx chain(x)", "torchfx wave | chain", "scipy sosfilt",
)  # fmt: skip
FROM_REST = frozenset({"torchfx chain(x)", "torchfx wave | chain"})
"""Contenders that carry no state: only their first block equals that of a stream."""

NOTES = (
    "torchfx is the operator with its state, torchfx Stream is Stream.process",
    "chain(x) and wave | chain filter each block from rest: their deviation is that of the first block",
    "torch.mul(block, 2) filters nothing: it shows what a call costs at least",
)

SAMPLES = 1 << 16  # per channel: a whole number of blocks of every size
EDGES_US = np.geomspace(1, 1e5, 51)  # ten bins a decade
TURNS = 10


@dataclass(frozen=True)
class LatencySettings:
    """How the suite is run.

    Attributes:
        blocks: block sizes, samples per channel.
        channels: how many.
        calls: timed calls per contender and block size, in ten turns.
        threads: PyTorch's threads in every contender.
        peers: other Pythons that take part.
    """

    blocks: tuple[int, ...]
    channels: int
    calls: int
    threads: int
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True)
class MeasuredLatency:
    """What one block size gave."""

    rows: list[LatencyRow]
    refused: list[Refusal]


def run(settings: LatencySettings) -> Iterator[MeasuredLatency]:
    """Measure block size by block size and yield each one's rows; first of all, what cannot take part."""
    with take_seats("streams", CONTENDERS, settings.peers) as (seats, refused, folder):
        yield MeasuredLatency([], refused)
        path = folder / "signal.npy"
        signals.write_noise(path, settings.channels, SAMPLES)
        for block in settings.blocks:
            yield _measure(settings, seats, path, block)


def _measure(settings: LatencySettings, seats: list[Seat], path: Path, block: int) -> MeasuredLatency:
    x = np.load(path)[:, : SAMPLES // block * block]
    deviations: dict[str, float | None] = {}
    times: dict[str, list[int]] = {}
    refused = []
    for seat in list(seats):
        job = CHAIN.job(seat.device, settings.channels)
        arguments = {"contender": seat.contender, "job": job, "signal": str(path), "threads": settings.threads}
        try:
            answer = seat.process.ask("prepare_stream", block=block, **arguments)
            deviations[seat.label] = check_blocks(seat, x, answer, block, path.parent)
            times[seat.label] = []
        except ContenderError as error:
            refused.append(Refusal(seat.label, seat.device, f"blocks of {block}", str(error)))
            seats.remove(seat)

    calls = -(-settings.calls // TURNS)
    interleave({seat.label: partial(_take_turn, seat, calls, times[seat.label]) for seat in seats}, TURNS)
    rows = [
        summarise(seat.label, seat.device, settings.channels, block, times[seat.label], deviations[seat.label])
        for seat in seats
    ]
    return MeasuredLatency(rows, refused)


def check_blocks(
    seat: Seat, x: npt.NDArray[np.float32], answer: dict[str, Any], block: int, folder: Path
) -> float | None:
    """Return how far a seat's blocks are from the truth, None for what filters nothing; see `seats.check`."""
    if seat.contender in FLOORS:
        return None
    if seat.contender in FROM_REST:
        return check(seat, CHAIN, x[:, :block], {**answer, "samples": block}, folder)
    return check(seat, CHAIN, x, answer, folder)


def _take_turn(seat: Seat, calls: int, collected: list[int]) -> float:
    found: list[int] = seat.process.ask("latency", calls=calls)["ns"]
    collected += found
    return sum(found) / 1e9


def summarise(
    contender: str, device: str, channels: int, block: int, ns: Sequence[int], deviation: float | None
) -> LatencyRow:
    """Turn times in nanoseconds into a row; percentiles are times that were measured, never between two."""
    us = np.asarray(ns) / 1e3
    p50, p99, p999 = np.percentile(us, [50, 99, 99.9], method="higher").tolist()
    counts, _ = np.histogram(np.clip(us, EDGES_US[0], EDGES_US[-1]), EDGES_US)
    return LatencyRow(
        contender=contender,
        device=device,
        channels=channels,
        block=block,
        calls=len(ns),
        p50_us=p50,
        p99_us=p99,
        p999_us=p999,
        max_us=float(us.max()),
        deadline_us=block / CHAIN.fs * 1e6,
        deviation=deviation,
        edges_us=EDGES_US.tolist(),
        counts=counts.tolist(),
    )
