#!/usr/bin/env python3
"""Run a live chain in real time, while its parameters and presets change, or beside a busy Python thread.

An equaliser, a compressor and a reverberator on stereo blocks of 64 samples at 48 kHz. Three parameters change 20 times
a second each, one of them by MIDI messages, and presets 5 times a second. No thread may end, nothing may be raised, no
sample may be above the ceiling, misses must be reported, and when the changes are over the output must be what the last
values give. No deadline may be missed; without changes (--changes 0 --presets 0 --busy), memory may not grow either.

python benchmark/live_soak.py --seconds 600
"""

import argparse
import collections
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import torch

import torchfx as fx

FS, BLOCK = 48_000, 64
TAIL, COMPARED = 8, 1  # seconds after the last change, and those at their end in which the output is compared
TOLERANCE = 1e-4  # what is left of the reverberation, and float32
CONTROLLERS = {1: "compressor.threshold_db"}


def private_bytes() -> int:
    """Return the resident memory that is no file's: pages of libraries come as code first runs, 16 at a time."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split(maxsplit=1)[0]) * 1024


def busy(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(i * i for i in range(10_000))


def preset(bands: int, gain_db: float) -> fx.FilterChain:
    equaliser = fx.FilterChain(*(fx.filter.Peaking(100 * 2**i, 1.0, gain_db) for i in range(bands)))
    parts = {"equaliser": equaliser, "compressor": fx.effect.Compressor(-30), "reverb": fx.effect.Reverb()}
    return fx.FilterChain(collections.OrderedDict(parts))


NOISE = 0.2 * torch.randn(2, FS, generator=torch.Generator().manual_seed(0))


def seconds_of_noise(count: int) -> Iterator[torch.Tensor]:
    for _ in range(count):
        yield NOISE


class Port:
    """A MIDI input, instead of the package mido's."""

    def __init__(self) -> None:
        self.callback: Callable[[object], object] = print
        sys.modules["mido"] = SimpleNamespace(get_input_names=lambda: ["soak"], open_input=self.opened)  # type: ignore[assignment]

    @contextmanager
    def opened(self, name: str, callback: Callable[[object], object]) -> Iterator[None]:
        self.callback = callback
        yield

    def send(self, value: int) -> None:
        self.callback(SimpleNamespace(type="control_change", channel=0, control=1, value=value))


class Target:
    """The output: whether it may be audible, and its end."""

    def __init__(self, ceiling: float) -> None:
        self.ceiling, self.bad = ceiling, 0
        self.blocks: collections.deque[torch.Tensor] = collections.deque(maxlen=COMPARED * FS // BLOCK)

    def __call__(self, block: torch.Tensor) -> None:
        self.bad += not bool(block.abs().max() <= self.ceiling)
        self.blocks.append(block)


class Changes:
    """Threads that change a running chain: what they did, and what was raised there."""

    def __init__(self, live: fx.realtime.RealtimeProcessor, presets: list[fx.FilterChain], port: Port) -> None:
        self.live, self.presets, self.port = live, presets, port
        self.stop, self.counts, self.errors = threading.Event(), collections.Counter[str](), list[str]()
        self.threads: list[threading.Thread] = []

    def start(self, name: str, rate: float, change: Callable[[int], object]) -> None:
        def run() -> None:
            while not self.stop.wait(1 / rate):
                try:
                    change(self.counts[name])
                except Exception as error:  # noqa: BLE001 - counted, whatever it is
                    self.errors.append(f"{name}: {error!r}")
                self.counts[name] += 1

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def begin(self, rate: float, presets_rate: float) -> None:
        def assign(i: int) -> None:
            self.live.chain[2].room_size = 0.2 + i % 50 / 100

        if rate:
            self.start("set", rate, lambda i: self.live.set("equaliser.3.gain_db", (i * 7) % 25 - 12.0))
            self.start("assign", rate, assign)
            self.start("MIDI", rate, lambda i: self.port.send((i * 5) % 128))
        if presets_rate:
            self.start("switch", presets_rate, lambda i: self.live.switch(self.presets[(i + 1) % len(self.presets)]))

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()


def deviation(chain: fx.FilterChain, target: Target, silent: int) -> float:
    """Return how far the end of the output lies from what the chain makes of the same input, from rest."""
    x = NOISE.roll(-silent, dims=-1).repeat(1, TAIL)[:, -TAIL * FS :]
    expected = fx.realtime.Stream(chain, FS, 2).process(x)[:, -COMPARED * FS :]
    found = torch.cat([*target.blocks], dim=-1)
    assert found.shape == expected.shape
    assert found.abs().max() > 0.01
    return float((found - expected).abs().max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--changes", type=float, default=20, help="of each of three parameters, in a second")
    parser.add_argument("--presets", type=float, default=5, help="that are switched to in a second")
    parser.add_argument("--busy", action="store_true", help="beside a Python thread that works all the time")
    parser.add_argument("--untimed", action="store_true", help="do not judge times, as on a machine with other work")
    parser.add_argument("--plot", help="write the histogram of call times as a picture")
    options = parser.parse_args()
    presets = [preset(8, 3.0), preset(5, -3.0), preset(8, 6.0)]
    config = fx.realtime.RealtimeConfig(FS, BLOCK)
    port, target = Port(), Target(config.ceiling)
    clock = fx.realtime.FileClock(seconds_of_noise(options.seconds + TAIL), target, real_time=True)
    live = fx.realtime.RealtimeProcessor(presets[0], clock, config)
    mapping = fx.realtime.MidiMapping(live, CONTROLLERS)
    changes = Changes(live, presets, port)
    stop, dead, problems = threading.Event(), set[str](), collections.Counter[str]()
    thread = threading.Thread(target=busy if options.busy else stop.wait, args=(stop,) if options.busy else ())
    thread.start()
    try:
        with live, mapping.listening():
            memory, count = array("q", [0]) * (2 * options.seconds + 60), 0  # allocated before, so it does not grow
            changes.begin(options.changes, options.presets)
            lost, untold, before = {}, 0, 0
            while not live.wait(1.0):
                memory[count] = private_bytes()
                count += 1
                stats = live.stats()
                problems[stats.problem.partition(":")[0]] += 1
                missed = stats.deadline_misses + stats.dropped + stats.starved
                untold += missed - before > 0.1 * FS / BLOCK and not stats.problem
                before = missed
                dead |= {each.name for each in live._threads if not each.is_alive() and "_feed" not in each.name}
                if stats.blocks * BLOCK >= options.seconds * FS and not changes.stop.is_set():
                    changes.end()
                if stats.blocks * BLOCK < (options.seconds + 3) * FS:
                    lost = {"sheds": stats.sheds, "starved": stats.starved, "dropped": stats.dropped}
            stats = live.stats()
            if options.plot:
                live.plot(options.plot)
    finally:
        changes.end()
        stop.set()
        thread.join()
    undisturbed = lost == {name: getattr(stats, name) for name in lost}
    apart = deviation(live.chain, target, -BLOCK * stats.starved) if undisturbed else float("nan")
    settled = memory[min(60, count // 2) : count] or [0]
    made = ", ".join(f"{name} {number}" for name, number in changes.counts.items()) or "none"
    print(f"real-time priority: {stats.has_priority}; {stats.blocks} blocks of {stats.block_us:.0f} us")
    print(f"p50 {stats.p50_us:.0f}, p99 {stats.p99_us:.0f}, p99.9 {stats.p999_us:.0f}, longest {stats.max_us:.0f} us")
    print(
        f"deadline misses {stats.deadline_misses}, xruns {stats.xruns}, overloads {stats.sheds}, "
        f"starved {stats.starved}, dropped {stats.dropped}"
    )
    print(f"changes: {made}; {stats.changes} crossfades; raised: {len(changes.errors)} {changes.errors[:3]}")
    print(f"threads that ended: {', '.join(dead) or 'none'}; seconds with each problem: {dict(problems)}")
    print(f"seconds in which a tenth of the blocks was late or lost without a report: {untold}")
    print(f"blocks above the ceiling: {target.bad}; mutes {stats.mutes}, failures {stats.failures}")
    print(
        f"last values: {apart:.1e} from a new chain's output" if undisturbed else "last values: disturbed, not compared"
    )
    print(f"private resident memory, settled: {settled[0]} bytes, at the end: {settled[-1]}")
    good = not dead and not changes.errors and untold == 0 and target.bad == stats.mutes == stats.failures == 0
    good = good and not apart > TOLERANCE
    if not options.untimed:
        good = good and stats.deadline_misses == 0 and stats.p999_us < stats.block_us / 2
    if not changes.threads:
        good = good and settled[-1] <= settled[0]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
