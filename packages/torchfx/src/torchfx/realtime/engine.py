"""Python interface of the live engine (csrc/torchfx_live.h): rings, counters, and plans as programs."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.memory import raise_for
from torchfx._ops.program import Program
from torchfx.errors import StreamError, TorchFXError
from torchfx.plan import LateStep, Plan
from torchfx.plan.transition import Copy, Transition, settled, transition
from torchfx.realtime.runner import works_of

__all__ = ["Engine", "LiveProgram", "Snapshot", "in_full"]

Block = npt.NDArray[np.float32]

FULL, EMPTY = 100, 101
BINS, BINS_PER_OCTAVE, FIRST_OCTAVE = 32 * 26, 32, 8
COUNTERS = (
    "blocks", "underflows", "overflows", "deadline_misses", "late_results", "starved", "dropped", "sheds",
    "shed_blocks", "failures", "changes", "longest_ns", "priority", "finished", "allocated",
    "mutes", "muted",
)  # fmt: skip
ROOM = 1 << 16
"""Bytes of working memory beyond twice what a block of silence takes."""

_P, _I, _N = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "create": (_P, (ctypes.c_double, _N, _N, _I, _N, _N, _N, _N, _N, ctypes.c_double)),
    "free": (None, (_P,)),
    "clock_start": (_I, (_P, _I)),
    "clock_stop": (None, (_P,)),
    "program_create": (_P, (_P, _N, _N, _N, _N, _P, _N, _P, _N)),
    "program_free": (None, (_P,)),
    "program_measure": (_N, (_P,)),
    "post": (_I, (_P, _P)),
    "changing": (_I, (_P,)),
    "retired": (_P, (_P,)),
    "bypass": (None, (_P, _I)),
    "end": (None, (_P, _N)),
    "write_source": (_I, (_P, _P)),
    "read_sink": (_I, (_P, _P)),
    "take_work": (_I, (_P, _P, _P)),
    "give_work": (_I, (_P, _P, _N)),
    "counters": (None, (_P, _P)),
    "histogram": (None, (_P, _P)),
    "peaks": (None, (_P, _P, _P)),
}


def _function(name: str) -> Any:
    """Return a function of the C interface; calls let other Python threads run."""
    if native.library is None:
        raise TorchFXError(f"live audio needs the native library: {native.why_missing}")
    found = getattr(native.library, f"torchfx_live_{name}")
    found.restype, found.argtypes = _FUNCTIONS[name]
    return found


class Snapshot(NamedTuple):
    """Counters of an engine by name, and the histogram of call times (`edges` in microseconds)."""

    counters: dict[str, int]
    counts: npt.NDArray[np.int64]
    edges: npt.NDArray[np.float64]


class LiveProgram:
    """A plan that an engine runs, with its state.

    Args:
        plan: frozen, for blocks (channels, block) of float32.
        channels: number of channels.
        block: samples per block.
        before: the running program. Steps that both plans share continue; other steps run in parallel with the steps
            that they replace until the crossfade has ended.
        fade_s: length of the crossfade, seconds.

    Attributes:
        plan: the plan that runs: `plan`, or the transition to it.
        state: all tensors of the state. Steps that continue share them with the previous program.
    """

    plan: Plan
    state: list[Tensor]
    program: Program

    def __init__(
        self, plan: Plan, channels: int, block: int, before: LiveProgram | None = None, fade_s: float = 0.0
    ) -> None:
        shape, device = (channels,), torch.device("cpu")
        self._way: Transition | None = None
        self._shape = shape
        self.plan, self.state = in_full(plan), []
        copies: Sequence[Copy] = ()
        works: dict[int, Tensor] | None = None
        if before is None:
            rest = self.plan.init_state(shape, torch.float32, device)
            self.state = [value.clone().contiguous() for value in rest]
        else:
            works = works_of(before.program.works, before.state)
            running, state = settled(before.plan, tuple(before.state), shape, torch.float32, device)
            self._way = transition(running, state, self.plan, shape, torch.float32, device, fade_s)
            if self._way is not None:
                running, state, copies = self._way.plan, self._way.state, self._way.copies
            self.plan, self.state = running, list(state)
        self.program = _program(self.plan, shape, self.state, works)
        self._copies = [record for each in copies for record in _records(each)]
        self.handle = self._create(channels, block)

    @property
    def is_settled(self) -> bool:
        """Whether all crossfades have ended."""
        return self._way is None or self._way.is_done

    @property
    def has_old_steps(self) -> bool:
        """Whether replaced steps still run, even if their crossfades have ended."""
        return self._way is not None

    @staticmethod
    def supports(plan: Plan, channels: int) -> bool:
        """Return whether the whole plan runs natively for a number of channels."""
        shape, device = (channels,), torch.device("cpu")
        if native.library is None or not plan.keeps_rate or tuple(plan.leading(shape)) != shape:
            return False
        plan = in_full(plan)
        state = [value.contiguous() for value in plan.init_state(shape, torch.float32, device)]
        return Program(shape, torch.float32).attempt(plan.emit, 0, state) is not None

    def free(self) -> None:
        """Free the program's memory in the engine, once no engine runs it."""
        if self.handle:
            _function("program_free")(self.handle)
            self.handle = None

    def _create(self, channels: int, block: int) -> Any:
        """Make it: with as much memory as a block of silence takes, and more."""
        bytes_needed = self._measured(channels, block)
        if bytes_needed < 0:
            raise_for(-bytes_needed, "program_run")
        rest = self._rest()
        kept = [(value, before.data_ptr()) for value, before in zip(self.state, rest, strict=True)]
        kept += [(value, 0) for value in self.program.sums]
        states = [each for value, at in kept for each in (value.data_ptr(), value.nbytes, at) if value.nbytes]
        copies = [each for copy in self._copies for each in copy[:5]]
        return self._made(self.program, channels, block, 2 * bytes_needed + ROOM, copies, states)

    def _measured(self, channels: int, block: int) -> int:
        """The bytes that a block of silence takes, or minus an error's number.

        The states may be running: memory is measured with others, which live as long as what runs on them.
        """
        state = self._rest()
        program = _program(self.plan, self._shape, state, None)
        handle = self._made(program, channels, block, 0, [], [])
        bytes_needed: int = _function("program_measure")(handle)
        _function("program_free")(handle)
        del program, state
        return bytes_needed

    def _rest(self) -> list[Tensor]:
        state = self.plan.init_state(self._shape, torch.float32, torch.device("cpu"))
        return [value.contiguous() for value in state]

    @staticmethod
    def _made(
        program: Program, channels: int, block: int, bytes_needed: int, copies: list[int], states: list[int]
    ) -> Any:
        words, of_copies, of_states = program.words, array("q", copies), array("q", states)
        found = _function("program_create")(
            words.buffer_info()[0], len(words), channels, block, bytes_needed,
            of_copies.buffer_info()[0], len(of_copies) // 5, of_states.buffer_info()[0], len(of_states) // 3,
        )  # fmt: skip
        if not found:
            raise MemoryError("no memory for a live program")
        return found


def in_full(plan: Plan) -> Plan:
    """Return a plan whose steps with latency return as many samples as they get, from the first block on."""
    return replace(plan, steps=tuple(step.inner if isinstance(step, LateStep) else step for step in plan.steps))


def _program(plan: Plan, shape: tuple[int, ...], state: Sequence[Tensor], works: dict[int, Tensor] | None) -> Program:
    program = Program(shape, torch.float32, works)
    target = program.attempt(plan.emit, 0, state)
    if target is None:
        raise StreamError("a fully native chain must stay native; restart to run this chain")
    program.finish(program.gain(target, 1.0) if target == 0 else target)
    return program


BYTES, MATRICES, RAMP_FLOAT, RAMP_DOUBLE = range(4)


def _records(copy: Copy) -> list[tuple[Any, ...]]:
    """Return a copy for the C interface: kind, source, target, number, argument, and then what must be kept alive."""
    source, target, move = copy.source, copy.target, copy.move
    if target.numel() == 0:
        return []
    if move.matrices is not None:
        matrices = move.matrices.expand(*target.shape, 2).contiguous()
        return [(MATRICES, source.data_ptr(), target.data_ptr(), target.numel() // 2, matrices.data_ptr(), matrices)]
    if move.parts is None:
        return [(BYTES, source.data_ptr(), target.data_ptr(), target.nbytes, 0, source)]
    size, before, after = target.element_size(), source.shape[-1], target.shape[-1]
    found: list[tuple[Any, ...]] = []
    for row in range(target.numel() // after):
        old = row if move.rows is None else move.rows[row]
        for begin, to, count in move.parts:
            place = target.data_ptr() + (row * after + to) * size
            found.append((BYTES, source.data_ptr() + (old * before + begin) * size, place, count * size, 0, source))
            if move.ramp:
                kind, ramp = RAMP_DOUBLE if target.dtype is torch.float64 else RAMP_FLOAT, min(move.ramp, count)
                found += [(kind, 0, place, ramp, 0), (kind, 0, place + (count - ramp) * size, ramp, 1)]
    return found


class Engine:
    """A live engine.

    One thread posts programs, and one thread is at each end of a ring. Any thread may read the counters.

    Args:
        rate: Hz.
        channels, block: shape of a block.
        interleaved: whether the device's samples have the layout (time, channels).
        source, sink: capacity of the additional input and output rings, in blocks; 0 for no ring.
        delay: blocks until a worker's results are due; 0: the engine runs programs itself.
        fade: length of a crossfade in samples.
        latency: delay of the dry signal in samples.
        ceiling: the output is muted if a sample exceeds this magnitude or is not finite; inf: never.
    """

    def __init__(
        self, rate: float, channels: int, block: int, interleaved: bool, source: int, sink: int, delay: int, fade: int,
        latency: int, ceiling: float,
    ) -> None:  # fmt: skip
        self.channels, self.block = channels, block
        self._calls = {name: _function(name) for name in _FUNCTIONS}
        self.handle = self._calls["create"](
            rate, channels, block, interleaved, source, sink, delay, fade, latency, ceiling
        )
        if not self.handle:
            raise MemoryError(f"no memory for a live engine of {channels} channels and blocks of {block} samples")
        self._programs: dict[int, LiveProgram] = {}
        self.number = ctypes.c_int64()

    @property
    def callback(self) -> int:
        """The address of the function that a device calls, with `handle` as its user's data."""
        assert native.library is not None
        address = ctypes.cast(native.library.torchfx_live_callback, ctypes.c_void_p).value
        assert address is not None
        return address

    def close(self) -> None:
        """Free all memory; clock and device must have stopped."""
        if self.handle:
            self._calls["free"](self.handle)
            self.handle = None
        for program in self._programs.values():
            program.free()
        self._programs.clear()

    # --- clock ----------------------------------------------------------------------------------------------

    def start_clock(self, real_time: bool) -> None:
        """Start a thread of the library that calls the engine instead of a device."""
        status = self._calls["clock_start"](self.handle, real_time)
        if status:
            raise_for(status, "live_clock_start")

    def stop_clock(self) -> None:
        """Stop that thread."""
        self._calls["clock_stop"](self.handle)

    # --- programs -------------------------------------------------------------------------------------------

    def post(self, program: LiveProgram) -> None:
        """Post the next program; no other change may be pending."""
        status = self._calls["post"](self.handle, program.handle)
        if status:
            raise_for(status, "live_post")
        self._programs[program.handle] = program

    def changing(self) -> bool:
        """Return whether a change is pending, and free the program before the last."""
        old = self._calls["retired"](self.handle)
        if old:
            self._programs.pop(old).free()
        return bool(self._calls["changing"](self.handle))

    def bypass(self, wanted: bool) -> None:
        """Output the dry signal, or the processed signal again."""
        self._calls["bypass"](self.handle, wanted)

    # --- rings ----------------------------------------------------------------------------------------------

    def write_source(self, block: Block) -> bool:
        """Write a block (channels, block); False if there is no room."""
        return bool(self._calls["write_source"](self.handle, block.ctypes.data) != FULL)

    def end_source(self, tail: int) -> None:
        """Mark the end of the source, followed by a number of silent blocks."""
        self._calls["end"](self.handle, tail)

    def read_sink(self, block: Block) -> bool:
        """Read a block; return False if no block is available."""
        return bool(self._calls["read_sink"](self.handle, block.ctypes.data) != EMPTY)

    def take_work(self, block: Block) -> int:
        """Read a block for the worker and return its number, or -1 if no block is available."""
        status = self._calls["take_work"](self.handle, block.ctypes.data, ctypes.byref(self.number))
        return -1 if status == EMPTY else self.number.value

    def give_work(self, block: Block, number: int) -> bool:
        """Write a worker's result; False if there is no room."""
        return bool(self._calls["give_work"](self.handle, block.ctypes.data, number) != FULL)

    # --- counters -------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        """Return the counters by name."""
        values = (ctypes.c_int64 * len(COUNTERS))()
        self._calls["counters"](self.handle, values)
        return dict(zip(COUNTERS, values, strict=True))

    def snapshot(self) -> Snapshot:
        """Return counters and histogram."""
        counts = np.zeros(BINS, np.int64)
        self._calls["histogram"](self.handle, counts.ctypes.data)
        edges = 2.0 ** (FIRST_OCTAVE + np.arange(BINS + 1) / BINS_PER_OCTAVE) / 1000
        return Snapshot(self.counters(), counts, edges)

    def peaks(self) -> tuple[Block, Block]:
        """Return the largest magnitudes of input and output (channels,) since the last call."""
        found = np.zeros((2, self.channels), np.float32)
        self._calls["peaks"](self.handle, found[0].ctypes.data, found[1].ctypes.data)
        return found[0], found[1]
