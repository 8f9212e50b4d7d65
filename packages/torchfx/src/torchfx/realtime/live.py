"""Live audio: a chain between a sound device's input and output; parameters can change while it runs."""

from __future__ import annotations

import math
import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from torchfx import audio_io
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError, TorchFXError
from torchfx.parameters import Declaration
from torchfx.plan import FeatureStep, Plan, plan_of
from torchfx.realtime.backends import Backend, DeviceError, SoundDevice, Target, blocks_of, check_ends
from torchfx.realtime.config import RealtimeConfig
from torchfx.realtime.engine import COUNTERS, Engine, LiveProgram
from torchfx.realtime.stream import Stream

__all__ = ["RealtimeProcessor", "RealtimeStats", "parameter_key", "parameters_of"]

POLL_S = 0.005
"""How often assigned parameters are looked for."""

RETRY_S = 0.1
"""How long until what could not run is tried again."""

SHARE_S, SHARE, SHARE_BLOCKS = 1.0, 0.01, 20
"""Late or lost blocks are reported from this share of the last second's blocks on, and from at least 20 blocks."""

LOST = {
    "late_results": "the steps in Python do not keep up: {} were not done in time, the dry signal was output instead",
    "deadline_misses": "the chain does not keep up: {} took longer than they last",
    "dropped": "the target does not keep up: {} are missing there",
    "starved": "the source does not keep up: {} were silence instead",
}
"""The fate of blocks, by counter; of several, the first is reported: it may cause the others."""

BUFFERED_S = 0.5
"""Length of the rings between the engine and the threads of a source and a target."""

FIRST_S = 0.5
"""A device is started when the source's ring is full, or after this time (s)."""


SILENT_S = 2.0
"""A device that makes no call for this time (s) has disappeared, whatever state it reports."""


@dataclass(frozen=True)
class RealtimeStats:
    """Counters of a live chain since its start.

    Attributes:
        blocks: calls of the device.
        xruns: overflows and underflows that the device reported.
        deadline_misses: calls that took longer than a block lasts.
        late_results: blocks that Python steps did not finish in time; the dry signal was output.
        starved: blocks that the source did not deliver in time.
        dropped: blocks for which the target, or the steps in Python, had no room.
        sheds: overloads; each switched to the dry signal for half a second.
        failures: blocks that could not be processed.
        changes: changes of parameters or presets.
        mutes: how often the output was muted because of samples that were not finite or above the ceiling
            (`RealtimeConfig.ceiling_db`).
        block_us: duration of a block, microseconds.
        p50_us, p99_us, p999_us, max_us: call times: median, 99th and 99.9th percentile, maximum, microseconds.
        latency_samples: latency of the chain, including Python steps.
        latency_s: total latency in seconds, including the block and the device.
        input_peaks, output_peaks: largest magnitude per channel since the last call of `stats`.
        has_priority: whether the clock's thread has a real-time priority.
        problem: the reason why the chain does not run properly, or "": an error that ended it, a change that cannot
            run, a muted output, or at least 1 % late or lost blocks in the last second.
    """

    blocks: int
    xruns: int
    deadline_misses: int
    late_results: int
    starved: int
    dropped: int
    sheds: int
    failures: int
    changes: int
    mutes: int
    block_us: float
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float
    latency_samples: int
    latency_s: float
    input_peaks: tuple[float, ...]
    output_peaks: tuple[float, ...]
    has_priority: bool
    problem: str


class RealtimeProcessor:
    """A filter, an effect or a chain between a sound device's input and output.

    If the whole chain is native, the device's thread runs it, and neither Python's global lock nor its garbage
    collector can interrupt the sound. Otherwise a Python thread runs it, `config.worker_blocks` blocks later.

    Parameters may be assigned from any thread (`chain[0].cutoff = 500`, or `live.set("cutoff", 500)`). Within a few
    milliseconds the changed steps are replaced with a crossfade, and all other steps continue, as in `Stream`. `switch`
    changes to another chain in the same way. If several consecutive blocks take too long, the dry signal is faded in
    for half a second, and `stats` counts this. Samples that are not finite or too large mute the output
    (`RealtimeConfig.ceiling_db`).

    A change that cannot run does not affect the sound. `stats().problem` gives the reason until the change is
    corrected. The next `set` or `switch` raises the error once, unless its value corrects it; this value is assigned in
    any case.

    Args:
        chain: a processor, as for `torchfx.realtime.Stream`.
        backend: a `SoundDevice` or `FileClock`; None: the system's sound device.
        config: rate, block size, channels, devices.

    Attributes:
        is_native: whether the whole chain is native.
        latency_samples: latency of the output in samples, without the device's latency.

    Raises:
        StreamError: a part of the chain needs the whole signal, or changes the number of channels or the sample rate.
        DeviceError: the device cannot be opened, or has disappeared.

    Examples:
        >>> import torch, torchfx as fx
        >>> chain = fx.filter.LoButterworth(1000) | fx.effect.Compressor(-20)
        >>> clock = fx.realtime.FileClock(torch.randn(2, 9600))  # instead of a sound device
        >>> with fx.realtime.RealtimeProcessor(chain, clock, fx.realtime.RealtimeConfig(block_size=64)) as live:
        ...     live.set("cutoff", 500)
        ...     live.wait()
        True
        >>> live.stats().blocks, live.stats().failures
        (150, 0)
    """

    def __init__(self, chain: nn.Module, backend: Backend | None = None, config: RealtimeConfig | None = None) -> None:
        if not isinstance(chain, nn.Module):
            raise ArgumentTypeError(f"chain must be an nn.Module, got {type(chain).__name__}")
        self.config = RealtimeConfig() if config is None else config
        self.backend = SoundDevice() if backend is None else backend
        check_ends(self.backend.source, self.backend.target)
        self._chain = FilterChain(OrderedDict(chain=chain))  # laid flat, one could not be exchanged
        plan = self._plan()
        self.is_native = LiveProgram.supports(plan, self.config.channels)
        delay = 0 if self.is_native else self.config.worker_blocks
        self.latency_samples = plan.latency + delay * self.config.block_size
        self._engine: Engine | None = None
        self._last: RealtimeStats | None = None
        self._threads: list[Thread] = []
        self._stop, self._fed, self._drained = Event(), Event(), Event()
        self._problem = self._refusal = ""
        self._error: BaseException | None = None
        self._frames: int | None = None  # of the source, once it has ended
        self._program: LiveProgram | None = None  # what runs: this,
        self._stream: Stream | None = None  # or this
        self._followed = plan
        self._changes = 0
        self._untold: Exception | None = None  # why a change cannot run, until `set` or `switch` has raised it
        self._notes: dict[str, str] = {}
        self._marks = ((0.0, dict.fromkeys(COUNTERS, 0)),) * 2  # what was counted when, some seconds ago
        self._seen: tuple[int, float] = (0, 0.0)  # how many blocks there were at the last look, and since when

    # --- running ----------------------------------------------------------------------------------------------

    def start(self) -> RealtimeProcessor:
        """Open the device and start."""
        if self._engine is not None:
            raise StreamError("this processor runs already: stop() it first")
        config, backend = self.config, self.backend
        rings = max(16, math.ceil(BUFFERED_S / config.block_s))
        delay = 0 if self.is_native else config.worker_blocks
        fade = max(1, round(config.sample_rate * config.crossfade_ms / 1000))
        for event in (self._stop, self._fed, self._drained):
            event.clear()
        self._problem = self._refusal = ""
        self._notes.clear()
        self._error, self._untold, self._frames, self._last, self._changes = None, None, None, None, 0
        self._marks = ((time.monotonic(), dict.fromkeys(COUNTERS, 0)),) * 2
        self._seen = (0, 0.0)
        engine = self._engine = Engine(
            config.sample_rate, config.channels, config.block_size, backend.interleaved,
            rings if backend.source is not None else 0, rings if backend.target is not None else 0, delay, fade,
            self.latency_samples, config.ceiling,
        )  # fmt: skip
        try:
            self._followed = self._plan()
            if self.is_native:
                self._program = LiveProgram(self._followed.frozen(), config.channels, config.block_size)
                engine.post(self._program)
            backend.open(engine, config)
            self._begin(self._follow if self.is_native else self._work)
            if backend.source is not None:
                self._begin(self._feed)
                self._fed.wait(FIRST_S)
            if backend.target is not None:
                self._begin(self._drain)
            else:
                self._drained.set()
            backend.start()
        except BaseException:
            self._close()
            raise
        return self

    def stop(self) -> None:
        """Stop, and raise errors that occurred in the meantime."""
        if self._engine is None:
            return
        self._last, problem = self.stats(), self._trouble()
        self._close()
        if self._error is not None:
            raise self._error
        if problem:
            raise DeviceError(problem)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the source has ended and its output is complete; return whether this happened.

        Raises:
            DeviceError: the device has disappeared.
            ArgumentError: the processor has no source, so it has no end.
        """
        if self.backend.source is None and timeout_s is None:
            raise ArgumentError("wait needs timeout_s without a source: a device's input has no end")
        end = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self._engine is not None and time.monotonic() < end:
            if self._error is not None or self._trouble():
                self.stop()
            if self._engine is not None and self._engine.counters()["finished"] and self._drained.is_set():
                return True
            time.sleep(min(POLL_S, max(0.0, end - time.monotonic())))
        return False

    def __enter__(self) -> RealtimeProcessor:
        """Start."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; an error inside the `with` block takes precedence over errors of the device."""
        if error is None:
            self.stop()
        else:
            self._close()

    # --- changes ----------------------------------------------------------------------------------------------

    @property
    def chain(self) -> nn.Module:
        """The running chain; its parameters may be assigned."""
        found: nn.Module = self._chain[0]
        return found

    def set(self, name: str, value: Any) -> None:
        """Assign a parameter by name, or by position and name: "cutoff", "1.cutoff"; see `parameters_of`.

        Raises:
            ArgumentError: the name matches no parameter or several, or the value is out of range; nothing is assigned.
            StreamError: an earlier change cannot run, or the chain has ended; the value is assigned.
        """
        module, declaration = parameters_of(self.chain)[parameter_key(self.chain, name)]
        setattr(module, declaration.name, declaration.check(value, self.config.sample_rate))
        self._tell()

    def switch(self, chain: nn.Module) -> None:
        """Crossfade to another chain, such as a preset.

        Raises:
            StreamError: the other chain cannot run live, or is not native although the present chain is. Or an earlier
                change cannot run, or the chain has ended; the switch itself takes place.
        """
        if not isinstance(chain, nn.Module):
            raise ArgumentTypeError(f"chain must be an nn.Module, got {type(chain).__name__}")
        plan = self._checked(plan_of(FilterChain(chain), self.config.sample_rate))
        delay = self.latency_samples - self._followed.latency
        native = LiveProgram.supports(plan, self.config.channels)
        if self.is_native and not native:
            raise StreamError("switch needs a fully native chain, like the running chain; restart to run this chain")
        if plan.latency + delay != self.latency_samples:
            raise StreamError(
                f"switch needs a chain with the latency of the running chain, {self._followed.latency} samples, "
                f"got {plan.latency}: start again with this one"
            )
        self._chain[0] = chain
        self._tell()

    def note(self, source: str, problem: str) -> None:
        """Show a problem of another part, such as a thread that calls `set`, in `stats().problem`; "" clears it."""
        self._notes[source] = problem

    def bypass(self, wanted: bool = True) -> None:
        """Crossfade to the dry signal, or back to the processed signal."""
        if self._engine is not None:
            self._engine.bypass(bool(wanted))

    # --- what was counted -------------------------------------------------------------------------------------

    def stats(self) -> RealtimeStats:
        """Return the counters so far; after the end, the final values."""
        engine = self._engine
        if engine is None:
            if self._last is None:
                raise StreamError("stats are counted from start() on")
            return self._last
        counters, counts, edges = engine.snapshot()
        heard, played = engine.peaks()
        self._histogram = (counts, edges)
        longest_us = counters["longest_ns"] / 1000
        return RealtimeStats(
            blocks=counters["blocks"],
            xruns=counters["underflows"] + counters["overflows"],
            **{
                name: counters[name]
                for name in (
                    "deadline_misses", "late_results", "starved", "dropped", "sheds", "failures", "mutes",
                )
            },
            changes=self._changes,
            block_us=self.config.block_s * 1e6,
            p50_us=min(longest_us, _quantile(counts, edges, 0.5)),
            p99_us=min(longest_us, _quantile(counts, edges, 0.99)),
            p999_us=min(longest_us, _quantile(counts, edges, 0.999)),
            max_us=longest_us,
            latency_samples=self.latency_samples,
            latency_s=self.latency_samples / self.config.sample_rate + self.config.block_s + self.backend.latency_s,
            input_peaks=tuple(map(float, heard)),
            output_peaks=tuple(map(float, played)),
            has_priority=bool(counters["priority"]),
            problem="; ".join(filter(None, self._problems(counters))),
        )  # fmt: skip

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Save a histogram of call times, with the duration of a block, as PNG, SVG or PDF.

        Raises:
            TorchFXError: matplotlib is not installed.
        """
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise TorchFXError("no picture without matplotlib: pip install matplotlib") from error
        stats = self.stats()
        counts, edges = self._histogram
        figure = Figure(figsize=(8, 5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.stairs(counts, edges, fill=True)
        axes.set(xscale="log", yscale="log", xlabel="time of a call, microseconds", ylabel="calls")
        for name, value in (("block", stats.block_us), ("p50", stats.p50_us), ("p99.9", stats.p999_us)):
            axes.axvline(value, color="C3" if name == "block" else "C1", label=f"{name}: {value:.0f} us")
        axes.set_title(f"{stats.blocks} blocks, {stats.deadline_misses} deadline misses, {stats.xruns} xruns")
        axes.legend()
        figure.savefig(Path(path))

    # --- threads ----------------------------------------------------------------------------------------------

    def _begin(self, task: Any) -> None:
        thread = Thread(target=self._guarded, args=(task,), name=f"torchfx live {task.__name__}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _guarded(self, task: Any) -> None:
        """Run a thread's task; what it raises is raised by `wait` and `stop`."""
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
            self._error = self._error or error
            self._problem = self._problem or f"{type(error).__name__}: {error}"

    def _close(self) -> None:
        self._stop.set()
        engine, self._engine = self._engine, None
        self.backend.close()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._program = None
        if engine is not None:
            engine.close()

    def _trouble(self) -> str:
        """Return what is wrong, or ""."""
        engine = self._engine
        if self._problem or engine is None:
            return self._problem
        counters = engine.counters()
        if counters["finished"]:
            return ""
        problem = self.backend.problem()
        now, blocks = time.monotonic(), counters["blocks"]
        if blocks != self._seen[0] or self._seen[1] == 0:
            self._seen = (blocks, now)
        if not problem and isinstance(self.backend, SoundDevice) and now - self._seen[1] > SILENT_S:
            problem = f"the sound device is gone: no callback for {SILENT_S:g} s"
        return problem

    def _problems(self, counters: dict[str, int]) -> Iterator[str]:
        """Yield what is wrong, in sentences."""
        yield self._trouble() or self._refusal
        if counters["muted"]:
            ceiling = f"{self.config.ceiling_db:g} dBFS"
            yield f"the output is muted: the chain gives samples that are not finite or above {ceiling}"
        yield self._lost(counters)
        yield from tuple(self._notes.values())  # other threads write there

    def _lost(self, counters: dict[str, int]) -> str:
        """Return which blocks of the last second or so were late or lost, "" if hardly any were."""
        now, (before, last) = time.monotonic(), self._marks
        if now - last[0] >= SHARE_S:
            before = last
            self._marks = before, (now, counters)
        blocks = counters["blocks"] - before[1]["blocks"]
        for name, text in LOST.items():
            share = (counters[name] - before[1][name]) / max(blocks, 1)
            if share >= SHARE and blocks >= SHARE_BLOCKS:
                return text.format(f"{min(1.0, share):.0%} of the last {blocks} blocks")
        return ""

    def _refuse(self, error: Exception) -> None:
        """Keep why a change cannot run; the sound continues as it was."""
        found = str(error) if isinstance(error, TorchFXError) else f"{type(error).__name__}: {error}"
        refusal = f"what was assigned last cannot run live: {found}"
        if refusal != self._refusal:
            self._untold, self._refusal = error, refusal

    def _accept(self, plan: Plan) -> None:
        """Keep what runs from now on."""
        self._followed, self._untold, self._refusal = plan, None, ""

    def _tell(self) -> None:
        """Raise the error of an earlier change once, if it still stands, and that of a chain that has ended always."""
        if self._engine is None:
            return
        if self._error is not None:
            raise StreamError(f"the live chain has ended: {self._problem}") from self._error
        error, self._untold = self._untold, None
        if error is None:
            return
        refusal = self._refusal
        try:
            plan = self._checked_change()
            if self._stream is not None and plan is not self._followed:
                self._stream.check_change(plan)
            running = self._program
            program = self._program_of(plan) if running is not None and running.is_settled else None
        except Exception:  # noqa: BLE001 - any module's
            raise StreamError(refusal) from error
        if program is not None:
            program.free()

    def _checked_change(self) -> Plan:
        """Return the chain's present plan, or raise if it cannot replace the running one."""
        plan = self._plan()
        if plan is self._followed:
            return plan
        if self.is_native and not LiveProgram.supports(plan, self.config.channels):
            raise StreamError("a fully native chain must stay native; restart to run this chain")
        if plan.latency != self._followed.latency:
            raise StreamError(
                f"the latency has to stay {self._followed.latency} samples, start again with {plan.latency}"
            )
        return plan

    def _program_of(self, plan: Plan) -> LiveProgram | None:
        """Return the program on the way to a plan, or the one at its end; None where nothing would change."""
        running, config = self._program, self.config
        assert running is not None
        if plan is self._followed and not running.has_old_steps:
            return None
        fade_s = config.crossfade_ms / 1000
        program = LiveProgram(plan, config.channels, config.block_size, running, fade_s)
        if program.has_old_steps or running.has_old_steps:
            return program
        program.free()  # other numbers that mean the same
        return None

    def _follow(self) -> None:
        """Let new parameters take over, again and again."""
        engine, pause = self._engine, POLL_S
        assert engine is not None
        while not self._stop.wait(pause):
            pause = POLL_S
            running = self._program
            assert running is not None
            if engine.changing() or not running.is_settled:
                continue
            try:
                plan = self._checked_change()
                program = self._program_of(plan)
                if program is not None:
                    engine.post(program)
                    self._program = program
                    self._changes += running.has_old_steps
                self._accept(plan)
            except Exception as error:  # noqa: BLE001 - whatever a module raises, this thread continues
                self._refuse(error)
                pause = RETRY_S

    def _work(self) -> None:
        """Run the steps in Python, block by block."""
        engine, config = self._engine, self.config
        assert engine is not None
        stream = self._stream = Stream(self._chain, config.sample_rate, config.channels)
        block = np.zeros((config.channels, config.block_size), np.float32)
        pause = min(0.001, config.block_s / 4)
        while not self._stop.is_set():
            number = engine.take_work(block)
            if number < 0:
                time.sleep(pause)
                continue
            y = self._stepped(stream, torch.from_numpy(block)).float().contiguous().numpy()
            while not engine.give_work(y, number) and not self._stop.wait(pause):
                pass

    def _stepped(self, stream: Stream, block: Tensor) -> Tensor:
        """Return what the stream makes of a block, with new parameters if they can run."""
        try:
            plan = self._checked_change()
            y = stream.process(block)
            self._accept(plan)
        except Exception as error:
            if stream._runner is None:
                raise
            y = stream.continued(block)  # raises as well if it is the steps that cannot run
            self._refuse(error)
        ceiling = self.config.ceiling
        if ceiling < math.inf and not float(y.abs().amax()) <= ceiling:  # NaNs too
            stream.rest()
        return y

    def _feed(self) -> None:
        """Bring the source to the engine."""
        engine, source, frames = self._engine, self.backend.source, 0
        assert engine is not None
        assert source is not None
        try:
            for block, count in blocks_of(source, self.config):
                while not engine.write_source(block):
                    self._fed.set()
                    if self._stop.wait(self.config.block_s):
                        return
                frames += count
        finally:
            self._frames = frames
            engine.end_source(math.ceil(self.latency_samples / self.config.block_size))
            self._fed.set()

    def _drain(self) -> None:
        """Bring the result to the target: as long as the source where there is one, its latency left out."""
        engine, config, target = self._engine, self.config, self.backend.target
        assert engine is not None
        assert target is not None
        aligned = self.backend.source is not None
        skip, written = (self.latency_samples if aligned else 0), 0
        block = np.zeros((config.channels, config.block_size), np.float32)
        with ExitStack() as stack:
            put = _put(target, config, stack)
            while True:
                is_last = self._stop.is_set() or bool(engine.counters()["finished"])
                if not engine.read_sink(block):
                    if is_last:
                        break
                    time.sleep(min(POLL_S, config.block_s))
                    continue
                y, skip = block[:, skip:], max(0, skip - config.block_size)
                if aligned and self._frames is not None:
                    y = y[:, : max(0, self._frames - written)]
                if y.shape[1]:
                    put(torch.from_numpy(y.copy()))
                    written += y.shape[1]
            if aligned and self._error is not None:
                raise StreamError("the source failed: the result is incomplete")
        self._drained.set()

    def _plan(self) -> Plan:
        return self._checked(plan_of(self._chain, self.config.sample_rate))

    def _checked(self, plan: Plan) -> Plan:
        if plan.refusal:
            raise StreamError(plan.refusal)
        shape = (self.config.channels,)
        if plan.gives == "features":
            raise StreamError("a live chain must return samples, but this chain ends in features; use torchfx.Stream")
        if any(isinstance(step, FeatureStep) for step in plan.steps):
            raise StreamError("a live chain must return one sample per input sample, but features return frames")
        if not plan.keeps_rate:
            raise StreamError("a live chain cannot change the sample rate of the device")
        if tuple(plan.leading(shape)) != shape:
            raise StreamError(f"a live chain must keep the channels, {shape[0]}, got {tuple(plan.leading(shape))}")
        return plan


def parameters_of(module: nn.Module) -> dict[str, tuple[nn.Module, Declaration]]:
    """Return the declared parameters of a processor and its parts, by position and name.

    Examples:
        >>> import torchfx as fx
        >>> list(parameters_of(fx.filter.LoButterworth(1000) | fx.effect.Gain(0.5)))[:2]
        ['0.cutoff', '0.order']
    """
    found: dict[str, tuple[nn.Module, Declaration]] = {}
    for place, each in module.named_modules():
        for name, declaration in getattr(type(each), "declarations", {}).items():
            found[f"{place}.{name}" if place else name] = (each, declaration)
    return found


def parameter_key(module: nn.Module, name: str) -> str:
    """Return position and name of the parameter with a name, given with or without its position.

    Raises:
        ArgumentError: the name matches no parameter, or several.
    """
    every = parameters_of(module)
    found = [key for key in every if key == name] or [key for key in every if key.rpartition(".")[2] == name]
    if len(found) != 1:
        what = "several parameters are" if found else "no parameter is"
        raise ArgumentError(f"{what} called {name!r}: there are {', '.join(found or every) or 'none'}")
    return found[0]


def _put(target: Target, config: RealtimeConfig, stack: ExitStack) -> Any:
    """Return what takes the result's blocks; a file appears when the stack ends."""
    if callable(target):
        return target
    return stack.enter_context(audio_io.Writer(target, config.sample_rate, config.channels)).write


def _quantile(counts: npt.NDArray[np.int64], edges: npt.NDArray[np.float64], share: float) -> float:
    """Return the upper edge of the bin in which a share of all counts is reached; 0 without any."""
    total = int(counts.sum())
    if total == 0:
        return 0.0
    return float(edges[1 + int(np.searchsorted(np.cumsum(counts), math.ceil(share * total)))])
