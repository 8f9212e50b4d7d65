"""Every suite by name: what its options mean, how many steps it takes, and the report it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from bench import chains, latency, targets, threshold, throughput
from bench.hardware import hardware, watch_others
from bench.process import Peer, parse_peer
from bench.report import Refusal, Report, Row
from torchfx.errors import ArgumentError

__all__ = ["NAMES", "Options", "run"]

NAMES = ("api", "fir", "iir", "latency", "threshold", "targets")

ROUNDS, QUICK_ROUNDS = 50, 7
LIMIT_S = 60.0
CALLS, QUICK_CALLS = 10_000, 2_000
TARGET_ROUNDS, QUICK_TARGET_ROUNDS = 15, 5
THRESHOLD_ROUNDS, QUICK_THRESHOLD_ROUNDS = 15, 5


@dataclass(frozen=True)
class Options:
    """Options of a run; None means the suite's default.

    Attributes:
        quick: fewer and smaller signals, fewer rounds.
        rounds: turns per contender; for latency, timed calls.
        limit_s: no further round on a signal after this time.
        durations_s: lengths of the signals, seconds; for iir, fir and api.
        samples: lengths in samples; for latency (block sizes) and threshold.
        channels: numbers of channels.
        threads: PyTorch's threads.
        peers: other Pythons that take part, as NAME=PYTHON; for iir, fir, api and latency.
        only: a regular expression that promises must hold; for targets.
    """

    quick: bool = False
    rounds: int | None = None
    limit_s: float = LIMIT_S
    durations_s: tuple[float, ...] | None = None
    samples: tuple[int, ...] | None = None
    channels: tuple[int, ...] | None = None
    threads: int | None = None
    peers: tuple[str, ...] = ()
    only: str | None = None


@dataclass
class _Collected:
    rows: list[Row] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Step = Callable[[int, int], None]


def run(name: str, options: Options, step: Step) -> Report:
    """Run a suite.

    Args:
        name: one of `NAMES`.
        options: of the command.
        step: called with (steps done, steps in all) as the suite runs.

    Raises:
        ArgumentError: an option the suite does not have, or one out of range.
        ContenderError: a peer that does not exist.
    """
    _check(name, options)
    others = watch_others()
    report = _run(name, options, options.threads or torch.get_num_threads(), step)
    return replace(report, hardware={**report.hardware, "others": others()})


def _run(name: str, options: Options, threads: int, step: Step) -> Report:
    if name == "targets":
        return _targets(options, step)
    if name == "threshold":
        return _threshold(options, threads, step)
    peers = tuple(parse_peer(text) for text in options.peers)
    if name == "latency":
        return _latency(options, threads, peers, step)
    return _throughput(name, options, threads, peers, step)


def _throughput(name: str, options: Options, threads: int, peers: tuple[Peer, ...], step: Step) -> Report:
    suite = throughput.SUITES[name]
    settings = throughput.Settings(
        options.durations_s or (suite.quick_durations_s if options.quick else suite.durations_s),
        options.channels or (suite.quick_channels if options.quick else suite.channels),
        options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS),
        options.limit_s,
        threads,
        peers,
    )
    collected = _Collected()
    for done, measured in enumerate(throughput.run(suite, settings)):
        collected.rows += measured.rows
        collected.refused += measured.refused
        collected.notes += measured.notes
        step(done, len(settings.sizes()))
    return Report(
        suite=name,
        title=suite.title,
        work=str(suite.chain),
        baseline=f"{suite.baseline} = 1",
        hardware=hardware(threads),
        rows=collected.rows,
        refused=collected.refused,
        notes=collected.notes,
    )


def _latency(options: Options, threads: int, peers: tuple[Peer, ...], step: Step) -> Report:
    settings = latency.LatencySettings(
        options.samples or (latency.QUICK_BLOCKS if options.quick else latency.BLOCKS),
        (options.channels or (2,))[0],
        options.rounds or (QUICK_CALLS if options.quick else CALLS),
        threads,
        peers,
    )
    collected = _Collected()
    for done, measured in enumerate(latency.run(settings)):
        collected.rows += measured.rows
        collected.refused += measured.refused
        step(done, len(settings.blocks))
    return Report(
        suite="latency",
        title="time per call on small blocks",
        work=f"{latency.CHAIN}, {settings.channels} channels, {settings.calls} calls a block size",
        baseline="the block's own length",
        hardware=hardware(threads),
        rows=collected.rows,
        refused=collected.refused,
        notes=latency.NOTES,
    )


def _threshold(options: Options, threads: int, step: Step) -> Report:
    lengths = options.samples or (threshold.LENGTHS[::2] if options.quick else threshold.LENGTHS)
    channels = options.channels or threshold.CHANNELS
    rounds = options.rounds or (QUICK_THRESHOLD_ROUNDS if options.quick else THRESHOLD_ROUNDS)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    collected = _Collected()
    sizes = len(lengths) * len(channels) * len(threshold.DTYPES)
    step(0, sizes)
    for done, measured in enumerate(threshold.run(lengths, channels, rounds, threads, device), 1):
        collected.rows += measured.rows
        collected.refused += measured.refused
        step(done, sizes)
    return Report(
        suite="threshold",
        title="where splitting a signal along time begins to pay",
        work=f"{threshold.CHAIN} on {device}",
        baseline="the signal in one piece",
        hardware=hardware(threads),
        rows=collected.rows,
        refused=collected.refused,
    )


def _targets(options: Options, step: Step) -> Report:
    rounds = options.rounds or (QUICK_TARGET_ROUNDS if options.quick else TARGET_ROUNDS)
    rows: list[Row] = []
    claims = targets.possible(options.only)
    if not claims:
        raise ArgumentError(f"--only must be found in a promise that can be measured here, got {options.only!r}")
    step(0, len(claims))
    for done, row in enumerate(targets.run(rounds, claims), 1):
        rows.append(row)
        step(done, len(claims))
    return Report(
        suite="targets",
        title="the ratios this library promises on two cores",
        work=f"IIR: {chains.IIR}; FIR: {chains.FIR}",
        baseline="named in each claim",
        hardware=hardware(targets.THREADS),
        rows=rows,
        notes=targets.NOTES,
    )


def _check(name: str, options: Options) -> None:
    if name not in NAMES:
        raise ArgumentError(f"SUITE must be one of {', '.join(NAMES)}, got {name!r}")
    of_throughput = name in throughput.SUITES
    takes = {
        "durations": (options.durations_s, of_throughput),
        "samples": (options.samples, name in {"latency", "threshold"}),
        "channels": (options.channels, name != "targets"),
        "threads": (options.threads, name != "targets"),
        "only": (options.only, name == "targets"),
        "peer": (options.peers, of_throughput or name == "latency"),
    }
    for option, (given, taken) in takes.items():
        if given and not taken:
            raise ArgumentError(f"--{option} means nothing to the suite {name}")
    numbers = (*(options.durations_s or ()), *(options.samples or ()), *(options.channels or ()), options.limit_s)
    counts = [number for number in (options.rounds, options.threads) if number is not None]
    if min([*numbers, *counts]) <= 0:
        raise ArgumentError("durations, samples, channels, repetitions, threads and the limit must be above 0")
    if name == "latency" and max(options.samples or (1,)) > latency.SAMPLES:
        raise ArgumentError(f"--samples must lie in [1, {latency.SAMPLES}] for latency")
