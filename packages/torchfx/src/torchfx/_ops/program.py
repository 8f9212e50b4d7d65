"""Native programs: steps of a plan as one call of the C interface (csrc/program), states included.

A program is an array of 64-bit integers. Steps read and write numbered buffers of one tile: 0 is the signal, 1 the
result, the others are temporary. States are changed in place, in the tensors whose addresses the program holds.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchfx._ops import native, splitting
from torchfx._ops.again import Again, again
from torchfx._ops.checks import check_finite, check_stable
from torchfx._ops.memory import HUGE, coefficient_rows, empty, packed, raise_for, signal_rows
from torchfx._ops.modulation.cpu import complete
from torchfx._ops.modulation.schema import DELAY, PHASER
from torchfx._ops.observers import profiler_enabled
from torchfx._ops.state_space.cpu import saturation_tables
from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = ["KINDS", "Field", "Kind", "Oversampling", "Program"]

CURVES = native.numbers("curve_names")
"""The curves of the step `curve`; csrc/torchfx_program.h defines them."""

PARTITIONED = 1024
"""Taps from which on blocks of any size take less time by partitions."""
SIGNAL, RESULT = 0, 1
PROGRAM_HEADER, STEP_HEADER = 3, 5
"""Integers in front of the first step, and of each step's fields."""
CACHE_LINE = 64
KEPT, KEPT_FOR_TERM = 4096, 12
"""Doubles in which a single delay network keeps what follows from its coefficients, and more for each of them."""


class Field(NamedTuple):
    """A field of a step, as csrc/torchfx_program.h declares it: types, roles and sizes are explained there."""

    name: str
    type: str
    role: str
    size: str

    @property
    def is_state(self) -> bool:
        """Whether it is the address of memory that the step changes."""
        return self.role.endswith("state")

    @property
    def encoded(self) -> str:
        """The expression of its integer, in terms of the fields, `channels` and `samples`."""
        if self.type in {"integer", "buffer"}:
            return self.name
        if self.type == "real":
            return f"bits({self.name!r}, {self.name})"
        name, fits = self.name, [f"isinstance({self.name}, Tensor)", f"{self.name}.dtype is {self.type}"]
        fits += [f"{name}.is_cpu", f"{name}.is_contiguous()"]
        size = "-1" if self.size == "unchecked" else self.size.replace("/", "//")
        fits += [] if size == "-1" else [f"{name}.numel() == {size}"]
        address = f"{name}.data_ptr() if {' and '.join(fits)} else refused({name!r}, {name}, {self.type}, {size})"
        return f"0 if {name} is None else {address}" if self.role.startswith("optional") else address


class Kind:
    """A kind of step.

    Attributes:
        name, number: its name, and its number in programs.
        fields: its fields, in the order of the native record.
        buffers: the places of those that are buffers, by name.
        encode: (channels, samples, *, a value for each field) -> the fields' integers: of the signal's channels and the
            dtype of the samples that the step reads. Values are tensors, ints and floats. It raises `ArgumentTypeError`
            for a wrong type, `ArgumentError` for memory of another size or layout, TypeError where a field is missing
            or unknown. Compiled on first use.
    """

    def __init__(self, number: int, declaration: str) -> None:
        self.name, *fields = declaration.split(";")
        self.number = number
        self.fields = tuple(Field(*field.split(",")) for field in fields)
        self.buffers = {field.name: place for place, field in enumerate(self.fields) if field.type == "buffer"}

    @cached_property
    def encode(self) -> Callable[..., tuple[int, ...]]:
        names = [field.name for field in self.fields]
        integers = [field.name for field in self.fields if field.type in {"integer", "buffer"}]
        checked = "".join(f"type({name}) is " for name in integers)
        found: dict[str, Any] = {"Tensor": Tensor, "bits": self._bits, "refused": self._refused, **DTYPES}
        found["refused_number"] = self._refused_number
        exec(  # the native library's own text, made a function once instead of read at every step
            f"def {self.name}(channels, samples{', *, ' if names else ''}{', '.join(names)}):\n"
            f"    if not ({checked}int): refused_number({', '.join(f'{name}={name}' for name in integers)})\n"
            f"    return ({''.join(f'{field.encoded}, ' for field in self.fields)})",
            found,
        )
        encode: Callable[..., tuple[int, ...]] = found[self.name]
        return encode

    def _bits(self, name: str, value: Any) -> int:
        if type(value) is not float:
            raise ArgumentTypeError(f"step {self.name}: {name} must be a float, got {type(value).__name__}")
        found: int = struct.unpack("q", struct.pack("d", value))[0]
        return found

    def _refused_number(self, **integers: Any) -> None:
        name, value = next((name, value) for name, value in integers.items() if type(value) is not int)
        raise ArgumentTypeError(f"step {self.name}: {name} must be an int, got {type(value).__name__}")

    def _refused(self, name: str, value: Any, dtype: torch.dtype, size: int) -> None:
        if not isinstance(value, Tensor) or value.dtype is not dtype:
            got = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise ArgumentTypeError(f"step {self.name}: {name} must be a tensor of {dtype}, got {got}")
        if not (value.is_cpu and value.is_contiguous()):
            where = f"strides {value.stride()} on {value.device}"
            raise ArgumentError(f"step {self.name}: {name} must be contiguous on the CPU, got {where}")
        raise ArgumentError(f"step {self.name}: {name} must hold {size} elements, got {value.numel()}")


DTYPES = {"float64": torch.float64, "int64": torch.int64}
KINDS = {
    kind.name: kind
    for kind in (Kind(number, line) for number, line in enumerate(native.text("step_fields").splitlines()))
}
"""The kinds of steps by name, as the native library declares them; empty without one."""


class Record(NamedTuple):
    """One step: the buffers it reads, the one it writes, whether its samples are doubles, its fields."""

    kind: Kind
    sources: tuple[int, ...]
    target: int
    double: bool
    values: tuple[int, ...]


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


NO_OVERSAMPLING = {
    "taps": None, "up": 1, "n_taps": 0, "taps_back": None, "n_taps_back": 0, "middle": 0, "wait": 0,
    "past": None, "shaped": None,
}  # fmt: skip


class Program:
    """Native steps in a row, for blocks of one shape and type.

    Methods append a step and return the buffer it writes. `finish` makes the program; more steps may follow and another
    `finish`.

    Args:
        shape: the signal's leading dimensions.
        dtype: the signal's type.
        works: where partitioned responses keep their sums, and delay networks how far their lines' rings have turned,
            by the address of their state. A program with another one's states needs that one's, too.
        in_rings: whether delay lines are rings in their state, which then holds what it says after `settle` only. It
            saves moving them at every block.

    Attributes:
        sums: what steps keep from block to block besides their state: zeros at rest, and after `settle`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        works: dict[int, Tensor] | None = None,
        in_rings: bool = False,
    ) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.double = dtype is torch.float64
        self.channels = math.prod(shape)
        self.works: dict[int, Tensor] = {} if works is None else works
        self.sums: list[Tensor] = []
        self._in_rings = in_rings
        self._records: list[Record] = []
        self._doubles = [self.double, self.double]  # of each buffer
        self._kept: list[Any] = []
        self._words = array("q")
        self._last_shape: tuple[int, ...] = ()
        self._is_huge = False

    # --- steps ----------------------------------------------------------------------------------------------

    def sos(self, source: int, sos: Tensor, state: Tensor) -> int:
        """Append sections (..., sections, 6) with their state (sections, ..., 2)."""
        check_stable(sos)
        return self._append("sos", source, **self._rows("sos", sos, 2), sections=sos.shape[-2], state=state)

    def fir(self, source: int, taps: Tensor, state: Tensor) -> int:
        """Append a response (..., n) with its state (..., n - 1)."""
        check_finite("taps", taps)
        return self._append("fir", source, **self._rows("taps", taps, 1), n_taps=taps.shape[-1], state=state)

    def partitioned(self, source: int, taps: Tensor, state: Tensor, width: int = 1) -> int:
        """Append a response for block after block: a long one costs hardly more than for a whole signal.

        The state holds what it says after `settle` only.

        Args:
            source: the buffer to read.
            taps: (..., n), or (..., width, width, n) for groups of `width` channels, each from input i to output o.
            state: (..., n - 1), or (..., width, width, n - 1).
            width: channels of a group.
        """
        if width == 1 and taps.shape[-1] < PARTITIONED:
            return self.fir(source, taps, state)
        check_finite("taps", taps)
        rows = self._rows("taps", taps, 1, state.shape[:-1])
        sizes = array("q", [0, 0])
        size = sizes.buffer_info()[0]
        pack, run = native.call["fir_partitioned_size"]
        run(pack(self.channels, width, taps.shape[-1], rows["rows"], size, size + sizes.itemsize))
        work = self.works.get(state.data_ptr())
        if work is None or work.numel() != sizes[0]:
            work = self.works[state.data_ptr()] = torch.zeros(sizes[0], dtype=torch.float64)
        self.sums.append(work[sizes[1] :])
        return self._append("partitioned", source, width=width, **rows, n_taps=taps.shape[-1], state=state, work=work)

    def delay(self, source: int, line: Tensor) -> int:
        """Append a delay by as many samples as its line (..., samples) holds."""
        return self._append("delay", source, delay=line.shape[-1], state=line)

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
        leading = tuple(lines.shape[:-1])
        if sos is None or state is None:
            filters: dict[str, Any] = {"sos": None, "sos_rows": 1, "sos_repeat": 1, "sections": 0, "state": None}
        else:
            check_stable(sos.flatten(-3, -2))
            sections = self._rows("sos", sos, 3, leading, ("sos_rows", "sos_repeat"))
            filters = {**sections, "sections": sos.shape[-2], "state": state}
        passed = None
        if self._in_rings:
            passed = self.works.setdefault(lines.data_ptr(), torch.zeros(1, dtype=torch.int64))
        room = KEPT + KEPT_FOR_TERM * system.shape[-1] ** 2 if math.prod(leading) == 1 else 0
        kept = torch.zeros(room, dtype=torch.float64) if room else None
        return self._append(
            "delay_network", source,
            delays=torch.tensor(delays), lines=len(delays), inputs=system.shape[-1] - len(delays),
            **self._rows("systems", system, 2, leading), **filters, length=sum(delays), held=lines,
            passed=passed, kept=kept, kept_size=room,
        )  # fmt: skip

    def dynamics(self, source: int, settings: Tensor, state: Tensor, key: int | None = None) -> int:
        """Append a factor that follows the level; arguments are those of `_ops.dynamics_forward`.

        Args:
            source: the buffer to read.
            settings: (..., 8).
            state: (...): as many values as there are signals, or one for several channels that share their gain.
            key: the buffer whose level it is: of channels that share their gain, that of the first.
        """
        check_finite("settings", settings)
        return self._append(
            "dynamics", source, key=source if key is None else key, linked=self._sharing(state.shape),
            **self._rows("settings", settings, 1, state.shape), state=state,
        )  # fmt: skip

    def compand(self, source: int, settings: Tensor, state: Tensor, key: int | None = None) -> int:
        """Append a factor that follows the smoothed level by a curve of straight lines.

        Args:
            source: the buffer to read.
            settings: (..., 3 + 4 points), as csrc/torchfx_dsp.h explains them.
            state: (...): as many magnitudes as there are signals, or one for several channels that share their gain.
            key: the buffer whose level it is: of channels that share their gain, that of the first.
        """
        check_finite("settings", settings)
        return self._append(
            "compand", source, key=source if key is None else key, linked=self._sharing(state.shape),
            **self._rows("settings", settings, 1, state.shape), points=settings.shape[-1] // 4, state=state,
        )  # fmt: skip

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
        return self._append(
            "limiter", source, peaks=source if peaks is None else peaks, linked=self._sharing(state.shape),
            delay=past.shape[-1], ahead=ramp.shape[-1], **self._rows("settings", settings, 1, state.shape),
            past=past, state=state, ramp=ramp,
        )  # fmt: skip

    def maximum(self, source: int, past: Tensor) -> int:
        """Append the largest magnitude of the last samples, of channels that share it in the first of them.

        Args:
            source: the buffer to read.
            past: (..., before): the magnitudes of the samples before, one for several channels that share theirs.
        """
        linked = self._sharing(past.shape[:-1])
        return self._append("maximum", source, linked=linked, before=past.shape[-1], past=past)

    def true_peak(self, source: int, taps: Tensor, middle: int, past: Tensor) -> int:
        """Append the largest magnitude of a sample and of what lies between it and the next one.

        Args:
            source: the buffer to read.
            taps: phases (up, n) of a low-pass, as `_ops.resample_forward` takes them.
            middle: the low-pass's middle tap.
            past: (..., 2 wait): the last samples; peaks come `wait` samples late.
        """
        check_finite("taps", taps)
        up, n_taps = taps.shape
        wait = past.shape[-1] // 2
        return self._append(
            "true_peak", source, taps=packed(taps), up=up, n_taps=n_taps, middle=middle, wait=wait, past=past
        )

    def saturated(
        self, source: int, system: Tensor, output: Tensor, feedback: Tensor, drive: Tensor, state: Tensor
    ) -> int:
        """Append a system with a saturating amplifier; arguments are those of `_ops.saturated_forward`.

        Args:
            source: the buffer to read.
            system: (..., 1, n + 1, n + 1).
            output: (..., n + 1): the row for what is put out, whatever is fed back.
            feedback, drive: (...).
            state: (..., n).
        """
        check_finite("system", system)
        values = {"feedback": feedback, "drive": drive}
        own = {name: packed(each.detach().expand(self.shape)) for name, each in values.items()}
        own["outputs"] = packed(output.detach().expand(*system.shape[:-3], -1))
        loops = packed((feedback * system[..., 0, -1, -1]).detach())
        tables = self._rows("tables", saturation_tables(loops), 1, names=("table_rows", "table_repeat"))
        return self._append(
            "saturated", source, **self._rows("systems", system, 3), states=system.shape[-1] - 1, **own, **tables,
            state=state,
        )  # fmt: skip

    def curve(self, source: int, name: str, parameters: Tensor, oversampling: Oversampling | None = None) -> int:
        """Append a curve that maps each sample by itself.

        Args:
            source: the buffer to read.
            name: one of `CURVES`.
            parameters: (..., 1), or a table (..., n).
            oversampling: the higher rate at which it does; None: the signal's own.
        """
        check_finite("parameters", parameters)
        higher: dict[str, Any] = NO_OVERSAMPLING
        if oversampling is not None:
            there, back, middle, past, shaped = oversampling
            higher = {
                "taps": packed(there), "up": there.shape[0], "n_taps": there.shape[-1],
                "taps_back": packed(back), "n_taps_back": back.shape[-1], "middle": middle, "wait": past.shape[-1] // 2,
                "past": past, "shaped": shaped,
            }  # fmt: skip
        rows = self._rows("parameters", parameters, 1)
        return self._append("curve", source, curve=CURVES[name], **rows, length=parameters.shape[-1], **higher)

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
        return self._append(
            "transient", source, peaks=peaks, linked=self._sharing(rising.shape),
            **self._rows("settings", settings, 1, rising.shape), rising=rising, falling=falling,
        )  # fmt: skip

    def modulated_gain(self, source: int, settings: Tensor, phase: Tensor) -> int:
        """Append a gain that swings; arguments are those of `_ops.modulated_gain_forward`."""
        return self._append("modulated_gain", source, **self._oscillators(settings), phase=phase)

    def modulated_delay(self, source: int, settings: Tensor, phase: Tensor, past: Tensor) -> int:
        """Append a delay that swings; arguments are those of `_ops.modulated_delay_forward`."""
        kept = past.shape[-1]
        oscillators = self._oscillators(complete(settings, DELAY))
        return self._append("modulated_delay", source, **oscillators, phase=phase, kept=kept, past=past)

    def phaser(self, source: int, settings: Tensor, phase: Tensor, state: Tensor) -> int:
        """Append all-pass filters whose corner swings; arguments are those of `_ops.phaser_forward`."""
        stages = state.shape[0]
        oscillators = self._oscillators(complete(settings, PHASER))
        return self._append("phaser", source, **oscillators, phase=phase, stages=stages, state=state)

    def gain(self, source: int, gain: float | Tensor) -> int:
        """Append a factor, or one for each row (...)."""
        factors = torch.as_tensor(gain, dtype=torch.float64)
        return self._append("gain", source, **self._rows("factors", factors, 0))

    def mix(self, source: int, weights: Tensor) -> int:
        """Append sums of channels: weights (..., outputs, inputs), as many of each as channels side by side."""
        check_finite("weights", weights)
        rows = self._rows("weights", weights, 2, self.shape[:-1])
        return self._append("mix", source, width=weights.shape[-1], **rows)

    def clamp(self, source: int, low: float, high: float) -> int:
        """Append limits."""
        return self._append("clamp", source, low=float(low), high=float(high))

    def add(self, first: int, second: int) -> int:
        """Append the sum of two buffers."""
        return self._append("add", first, second=second)

    def crossfade(self, first: int, second: int, passed: Tensor, waiting: int, length: int) -> int:
        """Append a crossfade: `waiting` samples of the first buffer, then `length` from one to the other.

        `passed`, int64 (1,), counts the samples.
        """
        return self._append("crossfade", first, second=second, passed=passed, waiting=waiting, length=length)

    def widen(self, source: int) -> int:
        """Append the change to float64, if there is one."""
        return source if self.double else self._append("widen", source)

    def narrow(self, source: int) -> int:
        """Append the change back to the signal's type, if there is one."""
        return source if self.double else self._append("narrow", source)

    def attempt(self, emit: Callable[..., int | None], source: int, state: Sequence[Tensor]) -> int | None:
        """Let a step append itself; where it cannot, return None and forget what it appended."""
        lists: tuple[list[Any], ...] = (self._records, self._doubles, self._kept, self.sums)
        lengths = [len(each) for each in lists]
        target = emit(self, source, state)
        if target is None:
            for each, length in zip(lists, lengths, strict=True):
                del each[length:]
        return target

    # --- the program ----------------------------------------------------------------------------------------

    def finish(self, result: int, late: int | None = None) -> None:
        """Make the program that returns this buffer.

        Args:
            result: the buffer.
            late: None: `run` takes blocks. Else it takes whole signals, adds `late` samples of silence, and leaves out
                as many at the beginning of the output. It begins with copies of the states, which are not needed then,
                and any number of threads may call it.
        """
        last_use = {source: i for i, record in enumerate(self._records) for source in record.sources}
        places, count = {SIGNAL: SIGNAL, result: RESULT}, RESULT + 1
        free: list[int] = []
        words: list[int] = []
        for i, (kind, sources, target, double, values) in enumerate(self._records):
            if target not in places:
                if not free:
                    free.append(count)
                    count += 1
                places[target] = free.pop()
            words += (kind.number, STEP_HEADER + len(values), places[sources[0]], places[target], double, *values)
            for field, buffer in zip(kind.buffers.values(), sources[1:], strict=True) if kind.buffers else ():
                words[field - len(values)] = places[buffer]
            free += [places[source] for source in set(sources) if last_use[source] == i and places[source] > RESULT]
        self._words = array("q", [self.double, len(self._records), count, *words])
        of_program = tuple(self._words.buffer_info())
        function, self._lasting = native.call["program_run"], (*of_program, 0, 0, -1)
        if late is not None:
            function = native.call["program_run_copied"]
            of_program += (*self._states_together(late), late)
            self._lasting = of_program
        self._pack, self._run = partial(function.pack, *of_program), function.run

    def _states_together(self, late: int) -> tuple[int, int]:
        """Copy the states into one piece of memory, and return where it lies and how long it is in bytes.

        A signal that is `late` runs in several parts. What a step takes for rest is left out, where the step runs once.
        """
        moved: list[tuple[int, Tensor]] = []  # places in the words, and states
        place, once = PROGRAM_HEADER, len(self._records) == 1 and not late
        for record, values in zip(self._records, self._kept, strict=True):
            place += STEP_HEADER
            for field in record.kind.fields:
                state = values[field.name] if field.is_state else None
                if state is not None and once and field.role == "optional_resting_state" and not state.any():
                    self._words[place] = 0
                elif state is not None and state.numel():
                    moved.append((place, state))
                if state is not None:
                    values[field.name] = None
                place += 1
        size, begins = 0, []
        for _, state in moved:
            begins.append(size)
            size += -(-state.nbytes // CACHE_LINE) * CACHE_LINE
        self._states = torch.zeros(size, dtype=torch.uint8)
        address = self._states.data_ptr()
        for begin, (place, state) in zip(begins, moved, strict=True):
            # A single number may have any stride; bytes are seen where it is 1.
            dense = state.clone(memory_format=torch.contiguous_format).reshape(-1)
            self._states[begin : begin + state.nbytes].copy_(dense.view(torch.uint8))
            self._words[place] = address + begin
        self.works, self.sums = {}, []
        return address, size

    @property
    def words(self) -> array[int]:
        """The program that `finish` made, as the C interface takes it."""
        return self._words

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the steps, each once, in the order of their first use."""
        return tuple(dict.fromkeys(record.kind.name for record in self._records))

    def run(self, x: Tensor, y: Tensor | None = None, threshold: int | None = None) -> Tensor:
        """Process a block (..., time), and states go on; or a whole signal, if so finished. `y` is written if given.

        Profilers see an operator of the kinds of its steps, such as "torchfx_ext::maximum+transient".

        Args:
            x: (..., time).
            y: as long, contiguous.
            threshold: samples from which on recursions are split in time.
        """
        shape = x.shape
        time = shape[-1]
        if shape != self._last_shape and shape[:-1] == self.shape:
            self._last_shape = shape  # the comparison of whole shapes takes half as long
            self._is_huge = x.nbytes >= HUGE
        if shape == self._last_shape and x.is_contiguous():
            signal, row_stride, time_stride = x, time, 1
            if y is None:
                y = empty(shape, x.dtype, x) if self._is_huge else torch.empty_like(x)
        else:
            signal, row_stride, time_stride, repeat = signal_rows(x, self.shape)
            if repeat != 1:
                signal = x.expand(*self.shape, time).contiguous()
                row_stride, time_stride = time, 1
            if y is None:
                y = empty((*self.shape, time), x.dtype, x)
        if time == 0 or self.channels == 0:
            return y
        arguments = self._pack(
            signal.data_ptr(), row_stride, time_stride, y.data_ptr(), time, self.channels, time,
            splitting.THRESHOLD if threshold is None else threshold, torch.get_num_threads(),
        )  # fmt: skip
        if profiler_enabled():
            with torch._C._profiler._RecordFunctionFast("torchfx_ext::" + "+".join(self.kinds), [x]):
                status = self._run(arguments)
        else:
            status = self._run(arguments)
        if status:
            raise_for(status, "program_run")
        return y

    def again(self, x: Tensor) -> Again | None:
        """Return what `run` does with signals like this one, contiguous ones for half of the cost in Python."""
        if native.program_again is None or x.numel() == 0 or x.shape[:-1] != self.shape:
            return None
        call = struct.pack("8q", *self._lasting, self.channels, x.shape[-1], splitting.THRESHOLD)
        return again(x, native.program_again, call, "program_again", self.run)

    def serves(self, x: Tensor) -> bool:
        """Return whether a signal has the program's leading dimensions and type."""
        return (x.shape == self._last_shape or x.shape[:-1] == self.shape) and x.dtype is self.dtype

    def settle(self) -> None:
        """Make all states what they are after the blocks so far."""
        pack, run = native.call["fir_settle"]
        for record, values in zip(self._records, self._kept, strict=True):
            if record.kind.name == "delay_network" and values["passed"] is not None:
                _turn_back(values["held"], values["delays"].tolist(), values["passed"])
            if record.kind.name == "partitioned":
                status = run(pack(self.channels, *record.values, torch.get_num_threads()))
                if status:
                    raise_for(status, "fir_settle")

    def _append(self, name: str, source: int, **values: Any) -> int:
        kind, double = KINDS[name], self._doubles[source]
        encoded = kind.encode(self.channels, torch.float64 if double else torch.float32, **values)
        sources = (source, *[values[buffer] for buffer in kind.buffers]) if kind.buffers else (source,)
        target = len(self._doubles)
        self._kept.append(values)
        self._records.append(Record(kind, sources, target, double, encoded))
        self._doubles.append(name == "widen" or (double and name != "narrow"))
        return target

    def _sharing(self, shape: tuple[int, ...]) -> int:
        """Return how many channels share each of the values of a shape."""
        return max(1, self.channels // max(1, math.prod(shape)))

    def _oscillators(self, settings: Tensor) -> dict[str, Any]:
        check_finite("settings", settings)
        return self._rows("settings", settings, 1)

    def _rows(
        self,
        name: str,
        values: Tensor,
        core: int,
        leading: Sequence[int] | None = None,
        names: tuple[str, str] = ("rows", "repeat"),
    ) -> dict[str, Any]:
        """Return coefficients (..., *core) as three fields: the rows, their number, and how often each repeats."""
        values = values.detach() if values.requires_grad else values
        tensor, rows, repeat = coefficient_rows(values, core, self.shape if leading is None else leading)
        return {name: tensor, names[0]: rows, names[1]: repeat}


def _turn_back(lines: Tensor, delays: Sequence[int], passed: Tensor) -> None:
    """Put the samples of delay lines (..., sum of delays), which are rings, in order, the oldest ones first."""
    turned = int(passed)
    if turned:
        for line in lines.split(delays, dim=-1):
            line.copy_(line.roll(-(turned % line.shape[-1]), dims=-1))
        passed.zero_()
