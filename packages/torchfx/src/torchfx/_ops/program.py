"""Native programs: steps of a plan as one call of the C interface (csrc/program), states included.

A program is an array of 64-bit integers. Steps read and write numbered buffers of one tile: 0 is the signal, 1 the
result, the others are temporary. States are changed in place, in the tensors whose addresses the program holds.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite, check_stable
from torchfx._ops.memory import coefficient_rows, empty, packed, raise_for, signal_rows
from torchfx._ops.observers import profiler_enabled
from torchfx._ops.state_space.cpu import saturation_tables
from torchfx.errors import TorchFXError

__all__ = ["Oversampling", "Program"]

KINDS = native.numbers("step_names")
CURVES = native.numbers("curve_names")
"""Those of the step `curve`; csrc/torchfx_dsp.h says what each step and curve does."""

THRESHOLD = 1024
PARTITIONED = 1024
"""Taps from which on blocks of any size take less time by partitions."""
SIGNAL, RESULT = 0, 1


class Record(NamedTuple):
    """One step: a kind, the buffers it reads, the one it writes, whether its samples are doubles, its arguments."""

    kind: str
    sources: tuple[int, ...]
    target: int
    double: bool
    arguments: tuple[int, ...]


class Oversampling(NamedTuple):
    """How a curve gets to a multiple of the rate and back.

    Attributes:
        there, back: phases (up, n) and (1, n) of the low-passes, as `_ops.resample_forward` takes them.
        middle: the middle tap of both.
        past: (..., 2 wait): the last inputs; the output comes 2 wait samples late.
        shaped: (..., 2 wait up): what the curve made of the last ones.
    """

    there: Tensor
    back: Tensor
    middle: int
    past: Tensor
    shaped: Tensor


class Program:
    """Native steps in a row, for blocks of one shape and type.

    Methods append a step and return the buffer it writes. `finish` makes the program; more steps may follow and another
    `finish`.

    Args:
        shape: the signal's leading dimensions.
        dtype: the signal's type.
        works: where partitioned responses keep their sums, by the address of their state. A program with another one's
            states needs that one's sums too.

    Attributes:
        sums: what steps keep from block to block beside their state: zeros at rest, and after `settle`.
    """

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, works: dict[int, Tensor] | None = None) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.double = dtype is torch.float64
        self.channels = math.prod(shape)
        self.works: dict[int, Tensor] = {} if works is None else works
        self.sums: list[Tensor] = []
        self._records: list[Record] = []
        self._buffers = RESULT
        self._kept: list[Tensor] = []
        self._words = array("q")

    # --- steps ----------------------------------------------------------------------------------------------

    def sos(self, source: int, sos: Tensor, state: Tensor) -> int:
        """Append sections (..., sections, 6) with their state (sections, ..., 2)."""
        check_stable(sos)
        rows = self._rows(sos, 2)
        arguments = (rows.tensor.data_ptr(), sos.shape[-2], rows.rows, rows.repeat, self._address(state))
        return self._append("sos", source, arguments)

    def fir(self, source: int, taps: Tensor, state: Tensor) -> int:
        """Append a response (..., n) with its state (..., n - 1)."""
        check_finite("taps", taps)
        rows = self._rows(taps, 1)
        arguments = (rows.tensor.data_ptr(), taps.shape[-1], rows.rows, rows.repeat, self._address(state))
        return self._append("fir", source, arguments)

    def partitioned(self, source: int, taps: Tensor, state: Tensor, width: int = 1) -> int:
        """Append a response for block after block: a long one costs hardly more than for a whole signal.

        The state holds what it says after `settle` only.

        Args:
            source: the buffer to read.
            taps: (..., n), or (..., width, width, n) for groups of so many channels, each from input i to output o.
            state: (..., n - 1), or (..., width, width, n - 1).
            width: channels of a group.
        """
        if width == 1 and taps.shape[-1] < PARTITIONED:
            return self.fir(source, taps, state)
        check_finite("taps", taps)
        rows = coefficient_rows(taps.detach(), 1, state.shape[:-1])
        sizes = array("q", [0, 0])
        size = sizes.buffer_info()[0]
        pack, run = native.call["fir_partitioned_size"]
        run(pack(self.channels, width, taps.shape[-1], rows.rows, size, size + sizes.itemsize))
        work = self.works.get(state.data_ptr())
        if work is None or work.numel() != sizes[0]:
            work = self.works[state.data_ptr()] = torch.zeros(sizes[0], dtype=torch.float64)
        self._kept += [rows.tensor, work]
        self.sums.append(work[sizes[1] :])
        coefficients = (rows.tensor.data_ptr(), taps.shape[-1], rows.rows, rows.repeat)
        return self._append("partitioned", source, (width, *coefficients, self._address(state), work.data_ptr()))

    def delay(self, source: int, line: Tensor) -> int:
        """Append a delay by as many samples as its line (..., samples) holds."""
        return self._append("delay", source, (line.shape[-1], self._address(line)))

    def delay_network(
        self,
        source: int,
        delays: Sequence[int],
        system: Tensor,
        sos: Tensor | None,
        lines: Tensor,
        state: Tensor | None = None,
    ) -> int:
        """Append delay lines with as many outputs as inputs; arguments are those of `_ops.delay_network_forward`."""
        check_finite("system", system)
        leading, inputs = tuple(lines.shape[:-1]), system.shape[-1] - len(delays)
        lengths, systems = torch.tensor(delays), coefficient_rows(system.detach(), 2, leading)
        self._kept += [lengths, systems.tensor]
        filters = (0, 0, 1, 1, self._address(lines), 0)
        if sos is not None and state is not None:
            check_stable(sos.flatten(-3, -2))
            sections = coefficient_rows(sos.detach(), 3, leading)
            self._kept.append(sections.tensor)
            filters = (
                sections.tensor.data_ptr(), sos.shape[-2], sections.rows, sections.repeat,
                self._address(lines), self._address(state),
            )  # fmt: skip
        network = (lengths.data_ptr(), len(delays), inputs, systems.tensor.data_ptr(), systems.rows, systems.repeat)
        return self._append("delay_network", source, (*network, *filters))

    def dynamics(self, source: int, settings: Tensor, state: Tensor, key: int | None = None) -> int:
        """Append a factor that follows the level; arguments are those of `_ops.dynamics_forward`.

        Args:
            source: the buffer to read.
            settings: (..., 8).
            state: (...): as many values as there are signals, or one for several channels that share their gain.
            key: the buffer whose level it is: of channels that share their gain, that of the first.
        """
        check_finite("settings", settings)
        rows = coefficient_rows(settings.detach(), 1, state.shape)
        self._kept.append(rows.tensor)
        linked = self._sharing(state.shape)
        arguments = (linked, rows.tensor.data_ptr(), rows.rows, rows.repeat, self._address(state))
        return self._append("dynamics", (source, source if key is None else key), arguments)

    def lfilter(self, source: int, b: Tensor, a: Tensor, state: Tensor) -> int:
        """Append a transfer function, (..., order + 1) each with a0 = 1, with SciPy's zi (..., order)."""
        arguments = [b.shape[-1] - 1]
        for name, each in (("b", b), ("a", a)):
            check_finite(name, each)
            rows = self._rows(each, 1)
            arguments += [rows.tensor.data_ptr(), rows.rows, rows.repeat]
        return self._append("lfilter", source, (*arguments, self._address(state)))

    def limiter(
        self, source: int, settings: Tensor, past: Tensor, state: Tensor, ramp: Tensor, peaks: int | None = None
    ) -> int:
        """Append a limiter; arguments are those of `_ops.limiter_forward`.

        Args:
            source: the buffer to read.
            settings: (..., 2).
            past: (..., delay): what the output has yet to give.
            state: (...), one for several channels that share their reduction.
            ramp: (..., ahead), likewise.
            peaks: the buffer with the largest peak that each sample has to make room for: of channels that share their
                reduction, that of the first. Else peaks are the magnitudes of the last `delay` samples.
        """
        check_finite("settings", settings)
        rows = coefficient_rows(settings.detach(), 1, state.shape)
        self._kept.append(rows.tensor)
        arguments = (
            self._sharing(state.shape), past.shape[-1], ramp.shape[-1],
            rows.tensor.data_ptr(), rows.rows, rows.repeat,
            self._address(past), self._address(state), self._address(ramp),
        )  # fmt: skip
        return self._append("limiter", (source, source if peaks is None else peaks), arguments)

    def maximum(self, source: int, past: Tensor) -> int:
        """Append the largest magnitude of the last samples, of channels that share it in the first of them.

        Args:
            source: the buffer to read.
            past: (..., before): the magnitudes of so many samples before, one for several channels that share theirs.
        """
        linked = self._sharing(past.shape[:-1])
        return self._append("maximum", source, (linked, past.shape[-1], self._address(past)))

    def true_peak(self, source: int, taps: Tensor, middle: int, past: Tensor) -> int:
        """Append the largest magnitude of a sample and of what lies between it and the next one.

        Args:
            source: the buffer to read.
            taps: phases (up, n) of a low-pass, as `_ops.resample_forward` takes them.
            middle: the low-pass's middle tap.
            past: (..., 2 wait): the last samples; peaks come `wait` samples late.
        """
        check_finite("taps", taps)
        taps = taps.contiguous()
        self._kept.append(taps)
        arguments = (taps.data_ptr(), *taps.shape, middle, past.shape[-1] // 2, self._address(past))
        return self._append("true_peak", source, arguments)

    def saturated(self, source: int, system: Tensor, feedback: Tensor, drive: Tensor, state: Tensor) -> int:
        """Append a system with a saturating amplifier; arguments are those of `_ops.saturated_forward`.

        Args:
            source: the buffer to read.
            system: (..., 1, n + 1, n + 1).
            feedback, drive: (...).
            state: (..., n).
        """
        check_finite("system", system)
        rows = coefficient_rows(system.detach(), 3, self.shape)
        own = [packed(values.detach().expand(self.shape)) for values in (feedback, drive)]
        loops = packed((feedback * system[..., 0, -1, -1]).detach())
        found = coefficient_rows(saturation_tables(loops), 1, self.shape)
        self._kept += [rows.tensor, *own, found.tensor]
        arguments = (
            rows.tensor.data_ptr(), system.shape[-1] - 1, rows.rows, rows.repeat,
            *(values.data_ptr() for values in own), found.tensor.data_ptr(), found.rows, found.repeat,
            self._address(state),
        )  # fmt: skip
        return self._append("saturated", source, arguments)

    def curve(self, source: int, name: str, parameters: Tensor, oversampling: Oversampling | None = None) -> int:
        """Append a curve that maps each sample by itself.

        Args:
            source: the buffer to read.
            name: one of `CURVES`.
            parameters: (..., 1), or a table (..., n).
            oversampling: the higher rate at which it does; None: the signal's own.
        """
        check_finite("parameters", parameters)
        rows = coefficient_rows(parameters.detach(), 1, self.shape)
        self._kept.append(rows.tensor)
        higher = (1, 0, 0, 0, 0, 0, 0, 0, 0)
        if oversampling is not None:
            there, back, middle, past, shaped = oversampling
            there, back = packed(there), packed(back)
            self._kept += [there, back]
            wait = past.shape[-1] // 2
            higher = (
                there.shape[0], there.data_ptr(), there.shape[-1], back.data_ptr(), back.shape[-1], middle, wait,
                self._address(past), self._address(shaped),
            )  # fmt: skip
        arguments = (CURVES[name], rows.tensor.data_ptr(), parameters.shape[-1], rows.rows, rows.repeat, *higher)
        return self._append("curve", source, arguments)

    def transient(self, source: int, peaks: int, settings: Tensor, rising: Tensor, falling: Tensor) -> int:
        """Append a gain that follows how far the level lies from two envelopes of it.

        Args:
            source: the buffer to read.
            peaks: the buffer whose level it is: of channels that share their gain, that of the first.
            settings: (..., 6): gains in dB at a beginning and in a decay, the envelopes' coefficients for these, and in
                dB the lowest level and the distance that gives all of the gain.
            rising, falling: (...): the envelopes, in dB above the lowest level.
        """
        check_finite("settings", settings)
        rows = coefficient_rows(settings.detach(), 1, rising.shape)
        self._kept.append(rows.tensor)
        linked = self._sharing(rising.shape)
        states = (self._address(rising), self._address(falling))
        arguments = (linked, rows.tensor.data_ptr(), rows.rows, rows.repeat, *states)
        return self._append("transient", (source, peaks), arguments)

    def modulated_gain(self, source: int, settings: Tensor, phase: Tensor) -> int:
        """Append a gain that swings; arguments are those of `_ops.modulated_gain_forward`."""
        return self._append("modulated_gain", source, self._oscillators(settings, phase))

    def modulated_delay(self, source: int, settings: Tensor, phase: Tensor, past: Tensor) -> int:
        """Append a delay that swings; arguments are those of `_ops.modulated_delay_forward`."""
        oscillators = self._oscillators(settings, phase)
        return self._append("modulated_delay", source, (*oscillators, past.shape[-1], self._address(past)))

    def phaser(self, source: int, settings: Tensor, phase: Tensor, state: Tensor) -> int:
        """Append all-pass filters whose corner swings; arguments are those of `_ops.phaser_forward`."""
        oscillators = self._oscillators(settings, phase)
        return self._append("phaser", source, (*oscillators, state.shape[0], self._address(state)))

    def gain(self, source: int, gain: float | Tensor) -> int:
        """Append a factor, or one for each row (...)."""
        rows = self._rows(torch.as_tensor(gain, dtype=torch.float64), 0)
        return self._append("gain", source, (rows.tensor.data_ptr(), rows.rows, rows.repeat))

    def mix(self, source: int, weights: Tensor) -> int:
        """Append sums of channels: weights (..., outputs, inputs), as many of each as channels side by side."""
        check_finite("weights", weights)
        rows = coefficient_rows(weights.detach(), 2, self.shape[:-1])
        self._kept.append(rows.tensor)
        return self._append("mix", source, (weights.shape[-1], rows.tensor.data_ptr(), rows.rows, rows.repeat))

    def clamp(self, source: int, low: float, high: float) -> int:
        """Append limits."""
        return self._append("clamp", source, (_bits(low), _bits(high)))

    def add(self, first: int, second: int) -> int:
        """Append the sum of two buffers."""
        return self._append("add", (first, second), ())

    def crossfade(self, first: int, second: int, passed: Tensor, waiting: int, length: int) -> int:
        """Append a crossfade: `waiting` samples of the first buffer, then `length` from one to the other.

        `passed`, int64 (1,), counts the samples.
        """
        return self._append("crossfade", (first, second), (self._address(passed), waiting, length))

    def widen(self, source: int) -> int:
        """Append the change to float64, if there is one."""
        return source if self.double else self._append("widen", source, ())

    def narrow(self, source: int) -> int:
        """Append the change back to the signal's type, if there is one."""
        return source if self.double else self._append("narrow", source, ())

    def attempt(self, emit: Callable[..., int | None], source: int, state: Sequence[Tensor]) -> int | None:
        """Let a step append itself; where it cannot, return None and forget what it appended."""
        records, buffers, kept, sums = len(self._records), self._buffers, len(self._kept), len(self.sums)
        target = emit(self, source, state)
        if target is None:
            del self._records[records:], self._kept[kept:], self.sums[sums:]
            self._buffers = buffers
        return target

    # --- the program ----------------------------------------------------------------------------------------

    def finish(self, result: int) -> None:
        """Make the program that returns this buffer."""
        last_use = {source: i for i, record in enumerate(self._records) for source in record.sources}
        places, count = {SIGNAL: SIGNAL, result: RESULT}, RESULT + 1
        free: list[int] = []
        words: list[int] = []
        for i, record in enumerate(self._records):
            if record.target not in places:
                if not free:
                    free.append(count)
                    count += 1
                places[record.target] = free.pop()
            first, *others = (places[source] for source in record.sources)
            arguments = (*others, *record.arguments)
            words += [KINDS[record.kind], 5 + len(arguments), first, places[record.target], record.double, *arguments]
            free += [
                places[source] for source in set(record.sources) if last_use[source] == i and places[source] > RESULT
            ]
        self._words = array("q", [self.double, len(self._records), count, *words])
        self._address_of_words, self._length = self._words.buffer_info()

    @property
    def words(self) -> array[int]:
        """The program that `finish` made, as the C interface takes it."""
        return self._words

    def run(self, x: Tensor, y: Tensor | None = None, threshold: int = THRESHOLD) -> Tensor:
        """Process a block (..., time); states go on. `y` is written if given, contiguous.

        Profilers see an operator of the kinds of its steps, such as "torchfx_ext::maximum+transient".
        """
        time = x.shape[-1]
        if y is None:
            y = empty((*self.shape, time), x.dtype, x)
        if time == 0 or self.channels == 0:
            return y
        signal, row_stride, time_stride, repeat = signal_rows(x, self.shape)
        if repeat != 1:
            signal, row_stride, time_stride, _ = signal_rows(x.expand(y.shape).contiguous(), self.shape)
        pack, run = native.call["program_run"]
        arguments = pack(
            self._address_of_words, self._length, signal.data_ptr(), row_stride, time_stride, y.data_ptr(), time,
            self.channels, time, threshold, torch.get_num_threads(),
        )  # fmt: skip
        if profiler_enabled():
            kinds = dict.fromkeys(record.kind for record in self._records)
            with torch._C._profiler._RecordFunctionFast("torchfx_ext::" + "+".join(kinds), [x]):
                status = run(arguments)
        else:
            status = run(arguments)
        if status:
            raise_for(status, "program_run")
        return y

    def settle(self) -> None:
        """Make all states what they are after the blocks so far."""
        pack, run = native.call["fir_settle"]
        for record in self._records:
            if record.kind == "partitioned":
                width, *arguments = record.arguments
                status = run(pack(self.channels, width, *arguments, torch.get_num_threads()))
                if status:
                    raise_for(status, "fir_settle")

    def _append(self, kind: str, source: int | tuple[int, ...], arguments: tuple[int, ...]) -> int:
        self._buffers += 1
        sources = source if isinstance(source, tuple) else (source,)
        self._records.append(Record(kind, sources, self._buffers, self._double(sources[0]), arguments))
        return self._buffers

    def _double(self, source: int) -> bool:
        """Return whether a buffer holds doubles."""
        for record in self._records:
            if record.target == source:
                return record.kind == "widen" or (record.double and record.kind != "narrow")
        return self.double

    def _sharing(self, shape: tuple[int, ...]) -> int:
        """Return how many channels share each of the values of a shape."""
        return self.channels // max(1, math.prod(shape))

    def _oscillators(self, settings: Tensor, phase: Tensor) -> tuple[int, ...]:
        check_finite("settings", settings)
        rows = coefficient_rows(settings.detach(), 1, self.shape)
        self._kept.append(rows.tensor)
        return rows.tensor.data_ptr(), rows.rows, rows.repeat, self._address(phase)

    def _rows(self, coefficients: Tensor, core: int) -> Any:
        rows = coefficient_rows(coefficients.detach(), core, self.shape)
        self._kept.append(rows.tensor)
        return rows

    def _address(self, state: Tensor) -> int:
        if not state.is_contiguous():
            raise TorchFXError(f"a program's state must be contiguous, got strides {state.stride()}")
        self._kept.append(state)
        return state.data_ptr()


def _bits(value: float) -> int:
    found: int = struct.unpack("q", struct.pack("d", value))[0]
    return found
