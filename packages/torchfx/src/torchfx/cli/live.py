"""`torchfx live`, `torchfx play` and `torchfx record`."""

from __future__ import annotations

import math
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from torchfx import audio_io, spec
from torchfx.checks import quantity
from torchfx.cli.console import complain, say, width
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, TorchFXError
from torchfx.realtime import (
    Backend,
    FileClock,
    MidiMapping,
    RealtimeConfig,
    RealtimeProcessor,
    RealtimeStats,
    SoundDevice,
    parameters_of,
)
from torchfx.realtime.midi import share_of, value_at

__all__ = ["Panel", "Request", "live", "play", "record"]

REFRESH_S = 0.1
STEPS = 50  # of a key, through a parameter's range
BAR, FLOOR_DB = 20, -60.0


@dataclass(frozen=True)
class Request:
    """The arguments of the command line."""

    rate: float | None
    block: int
    channels: int | None
    input_device: str | None = None
    output_device: str | None = None
    midi: tuple[str, ...] = ()
    seconds: float | None = None
    clock: bool = False
    ceiling: str = "12"

    def config(self, rate: float, channels: int) -> RealtimeConfig:
        """Return the engine's configuration; a device that is a number is one."""
        try:
            ceiling_db = None if self.ceiling == "off" else float(quantity("--ceiling", self.ceiling, "dB")[0])
        except ArgumentError:
            raise ArgumentError(f"--ceiling takes a level such as 12 or 12dB, or off, got {self.ceiling!r}") from None
        if self.clock:
            return RealtimeConfig(rate, self.block, channels, ceiling_db=ceiling_db)
        heard, played = (
            int(each) if each and each.isdecimal() else each for each in (self.input_device, self.output_device)
        )
        return RealtimeConfig(rate, self.block, channels, heard, played, ceiling_db=ceiling_db)

    def heard_rate(self) -> float:
        """Return the sample rate requested (Hz), or the input file's rate, or 48000."""
        if self.rate is None and self.clock and self.input_device is not None:
            return audio_io.info(self.input_device).fs
        return self.rate or 48_000

    def backend(self, config: RealtimeConfig, source: str | None = None, target: str | None = None) -> Backend:
        """Return the sound device, or with `clock` one whose input and output are files, or silence and nothing.

        Args:
            config: of the engine.
            source: a file instead of the input; None: no file.
            target: a file that gets the output besides, and the device does not play; None: it plays.
        """
        if not self.clock:
            return SoundDevice(source, target, playback=target is None)
        if target is None and self.output_device is not None and Path(self.output_device).exists():
            raise ArgumentError(f"{self.output_device} exists: with --clock, --output is a new file")
        heard = source or self.input_device
        return FileClock(
            _silence(config) if heard is None else heard,
            target or self.output_device or (lambda block: None),
            real_time=True,
        )


def live(effects: list[str], request: Request) -> int:
    """Run a chain between a device's input and output; return 0, 2 for misuse, 3 where the device fails."""

    def make() -> tuple[Backend, RealtimeConfig]:
        config = request.config(request.heard_rate(), request.channels or 0)
        return request.backend(config), config

    return _run(effects, request, make)


def play(file: str, effects: list[str], request: Request) -> int:
    """Play a file; likewise."""

    def make() -> tuple[Backend, RealtimeConfig]:
        info = audio_io.info(file)
        config = request.config(info.fs, info.channels)
        return request.backend(config, source=file), config

    return _run(effects, request, make)


def record(file: str, effects: list[str], request: Request, force: bool) -> int:
    """Record into a file; likewise."""

    def make() -> tuple[Backend, RealtimeConfig]:
        if Path(file).exists() and not force:
            raise ArgumentError(f"{file} exists; --force overwrites it")
        config = request.config(request.heard_rate(), request.channels or 0)
        return request.backend(config, target=file), config

    return _run(effects, request, make)


def _run(effects: list[str], request: Request, make: Callable[[], tuple[Backend, RealtimeConfig]]) -> int:
    try:
        chain = FilterChain(*(spec.build(text) for text in effects))
        backend, config = make()
        processor = RealtimeProcessor(chain, backend, config)
        mapping = MidiMapping(processor, _controllers(request.midi))
        with ExitStack() as stack:
            if request.midi:
                stack.enter_context(mapping.listening())
            keys = stack.enter_context(_keys())
            stack.enter_context(processor)
            try:
                _show(Panel(processor), keys, request.seconds)
            except KeyboardInterrupt:
                say("")
        _sum_up(processor.stats())
    except (ArgumentError, TypeError) as error:
        return complain(error, 2)
    except TorchFXError as error:
        return complain(error, 3)
    return 0


def _silence(config: RealtimeConfig) -> Iterator[Tensor]:
    """Yield blocks without an end."""
    while True:
        yield torch.zeros(config.channels, config.block_size)


def _controllers(texts: tuple[str, ...]) -> dict[int, str]:
    found = {}
    for text in texts:
        controller, equals, name = text.partition("=")
        if not equals or not controller.strip().isdecimal() or not name.strip():
            raise ArgumentError(f"--midi takes CONTROLLER=PARAMETER, as in 7=cutoff, got {text!r}")
        found[int(controller)] = name.strip()
    return found


class Panel:
    """The line that shows a running processor, and the actions of the keys."""

    def __init__(self, processor: RealtimeProcessor) -> None:
        self.processor = processor
        self.names = [
            name for name, (_, declaration) in parameters_of(processor.chain).items()
            if declaration.number is not None and name.rpartition(".")[2] != "fs"
        ]  # fmt: skip
        self.chosen, self.bypassed = 0, False

    def line(self, stats: RealtimeStats) -> str:
        """Return levels, latency, load, trouble and the chosen parameter."""
        load = stats.p99_us / stats.block_us
        text = (
            f"in {_meter(stats.input_peaks)} out {_meter(stats.output_peaks)}  {1000 * stats.latency_s:.1f} ms  "
            f"load {load:.0%}  xruns {stats.xruns}  misses {stats.deadline_misses + stats.late_results}"
        )
        if stats.sheds:
            text += f"  overloads {stats.sheds}"
        if stats.mutes:
            text += f"  mutes {stats.mutes}"
        if self.bypassed:
            text += "  BYPASS"
        if self.names:
            module, declaration = parameters_of(self.processor.chain)[self.names[self.chosen]]
            text += f"  {self.names[self.chosen]} = {declaration.show(getattr(module, declaration.name))}"
        return text

    def press(self, key: str) -> bool:
        """Do what a key stands for; return whether to go on."""
        if key in {"up", "down"} and self.names:
            self.chosen = (self.chosen + (1 if key == "down" else -1)) % len(self.names)
        elif key in {"left", "right"} and self.names:
            self._step(1 if key == "right" else -1)
        elif key == " ":
            self.bypassed = not self.bypassed
            self.processor.bypass(self.bypassed)
        return key != "q"

    def _step(self, direction: int) -> None:
        name, rate = self.names[self.chosen], self.processor.config.sample_rate
        module, declaration = parameters_of(self.processor.chain)[name]
        value = getattr(module, declaration.name)
        share = 0.5 if value is None else share_of(declaration, float(value), rate)
        share = min(1.0, max(0.0, share + direction / STEPS))
        self.processor.set(name, float(f"{value_at(declaration, share, rate):.4g}"))


def _show(panel: Panel, keys: Callable[[], str], seconds: float | None) -> None:
    """Draw the line again and again until the source ends, the time is over or q is pressed."""
    processor, shown = panel.processor, 0.0
    has_end = processor.backend.source is not None
    while seconds is None or shown < seconds:
        pause = REFRESH_S if seconds is None else min(REFRESH_S, seconds - shown)
        if processor.wait(pause) and has_end:
            break
        shown += pause
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K" + panel.line(processor.stats())[: max(20, width() - 1)])
            sys.stderr.flush()
        if not panel.press(keys()):
            break
    if sys.stderr.isatty():
        sys.stderr.write("\n")


def _sum_up(stats: RealtimeStats) -> None:
    say(
        f"{stats.blocks} blocks of {stats.block_us:.0f} us: p50 {stats.p50_us:.0f}, p99 {stats.p99_us:.0f}, "
        f"p99.9 {stats.p999_us:.0f}, longest {stats.max_us:.0f} us; {stats.deadline_misses} deadline misses, "
        f"{stats.xruns} xruns, {stats.late_results} late results, {stats.sheds} overloads, {stats.mutes} mutes"
    )
    if stats.problem:
        say(stats.problem)


def _meter(peaks: tuple[float, ...]) -> str:
    """Return a bar of the loudest channel, from -60 dB to full scale, and its level."""
    peak = max(peaks, default=0.0)
    level = max(FLOOR_DB, 20 * math.log10(peak)) if peak > 0 else FLOOR_DB
    length = round(BAR * min(1.0, max(0.0, 1 - level / FLOOR_DB)))
    return f"[{'#' * length}{'.' * (BAR - length)}] {level:5.1f} dB"


ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """Give a function that returns the key pressed since the last call, "" for none; outside a terminal always."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield lambda: ""
        return
    if not sys.stdin.isatty():
        yield lambda: ""
        return
    before = termios.tcgetattr(sys.stdin)

    def pressed() -> str:
        if not select.select([sys.stdin], [], [], 0)[0]:
            return ""
        # Past Python's buffer, of which `select` knows nothing.
        found = os.read(sys.stdin.fileno(), 8).decode(errors="replace")
        return ARROWS.get(found[2:3], "") if found.startswith("\033[") else found[:1]

    try:
        tty.setcbreak(sys.stdin)
        yield pressed
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
