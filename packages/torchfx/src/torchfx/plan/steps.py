"""Plans and their steps. Each step runs a whole signal, and a signal block by block with its state; many also natively.

A state is a tuple of tensors on the signal's device; (x, state) -> (y, state), nothing is kept anywhere else.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from torchfx import _ops
from torchfx._ops import native
from torchfx._ops.again import SHORT, Again
from torchfx._ops.checks import leading_dimensions
from torchfx._ops.observers import is_wrapped, transforms_active
from torchfx._ops.operator import is_native
from torchfx._ops.program import PARTITIONED, Program
from torchfx._ops.sos.cpu import sos_forward_each
from torchfx.errors import ArgumentError, StreamError, TorchFXError
from torchfx.pieces import Pieces
from torchfx.plan.handover import (
    UNKNOWN_WAIT_S,
    Handover,
    Move,
    kept,
    memory_samples,
    samples,
    sections_handover,
)
from torchfx.plan.lti import LTI
from torchfx.rate import rate_ratio, resampled_length, sample_rate
from torchfx.tensors import lacks_float64, through_cpu

__all__ = [
    "CausalStep",
    "FeatureStep",
    "LTIStep",
    "LateStep",
    "ModuleStep",
    "ParallelStep",
    "Plan",
    "State",
    "Step",
    "lasting",
    "named_error",
    "plural",
    "shown",
    "wait_of",
]

State = tuple[Tensor, ...]

POINTWISE = (
    nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh, nn.Identity, nn.LeakyReLU,
    nn.LogSigmoid, nn.Mish, nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.Sigmoid, nn.Softplus, nn.Softshrink, nn.Softsign,
    nn.Tanh, nn.Tanhshrink, nn.Threshold,
)  # fmt: skip
"""PyTorch's modules whose every output sample depends on one input sample: a stream may call them block by block."""


class Causal(Protocol):
    """The methods that a step calls on a processor with memory; see `torchfx.Processor`."""

    kind: str
    has_whole: bool

    def _now(self) -> Causal: ...
    def init_state(
        self, shape: tuple[int, ...], rate: float | None, dtype: torch.dtype, device: torch.device
    ) -> State: ...
    def step(self, x: Tensor, state: State, rate: float | None) -> tuple[Tensor, State]: ...
    def measure(self, x: Tensor, state: State, rate: float | None) -> State: ...
    def whole(self, x: Tensor, rate: float | None) -> Tensor | None: ...
    def refusal(self) -> str: ...
    def latency_samples(self, rate: float | None) -> int: ...
    def output_rate(self, rate: float | None) -> float | None: ...
    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]: ...
    def native(self, program: Program, source: int, state: State, rate: float | None) -> int | None: ...
    def take_over(
        self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: float | None
    ) -> Handover: ...


class Running(Protocol):
    """Blocks of a signal, one after the other; the state's tensors are not read nor written in between."""

    def run(self, x: Tensor) -> Tensor:
        """Process a block."""

    def again(self, x: Tensor) -> Again | None:
        """Return a fast call for blocks like this one, which has just been processed; None where nothing is faster."""

    def settle(self) -> None:
        """Write the progress into the state."""

    def resume(self) -> None:
        """Continue from the current state."""


class Step(ABC):
    """One step of a plan.

    Attributes:
        name: the module it runs and its place, for error messages; "" for several modules in one.
        latency: by how many samples a block's output lags behind its input.
        refusal: why the step cannot run in a stream; "" if it can.
        measures: whether a first pass over the whole signal gives the state a stream starts with.
        reads_pieces: whether `in_pieces` does what `run` does, for a signal too long for memory.
        settling: how many samples after a start from rest the output lacks what came before.
        added_dimensions: how many leading dimensions the output has more than the input.
        operator: what runs it where no native program does: an operator, or the method that calls some.
        gives: "samples" (..., time) or "features" (..., bins, frames).
    """

    name = ""
    operator = "PyTorch's operators"
    latency = 0
    refusal = ""
    measures = False
    reads_pieces = False
    settling = 0
    added_dimensions = 0
    gives = "samples"

    @abstractmethod
    def run(self, x: Tensor) -> Tensor:
        """Process a whole signal (..., time) from rest; its latency is compensated."""

    def again(self, x: Tensor) -> Again | None:
        """Return what `run` does with signals like this one, which has just been processed; see `Program.again`."""
        return None

    @abstractmethod
    def lines(self) -> list[str]:
        """Return the step as text: what is called, then what it stands for."""

    def calls(self) -> int:
        """Return how many operator calls the step makes, if that is known before it runs."""
        return 1

    def init_state(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> State:
        """Return the state of rest for a signal with these leading dimensions."""
        return ()

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Process a block (..., time) and return it with the state for the next one."""
        raise StreamError(self.refusal)

    def measure(self, x: Tensor, state: State) -> State:
        """Take a block of the first pass into account."""
        return state

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield what `run` returns, of a signal too long for memory."""
        raise StreamError(self.refusal)

    def leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions for a signal with these."""
        return shape

    def output_rate(self, rate: float | None) -> float | None:
        """Return the output's sample rate."""
        return rate

    def running(self, state: State) -> Running | None:
        """Return what processes one block after the other and keeps the state, where that is faster than `step`."""
        return None

    def frozen(self) -> Step:
        """Return the step with its own values, which later assignments to processors leave alone."""
        return self

    def emit(self, program: Program, source: int, state: State) -> int | None:
        """Append the step to a native program, from a buffer; return the buffer it writes, or None if it cannot.

        The program changes the tensors of the state in place.
        """
        return None

    def kinds(self, shape: tuple[int, ...]) -> str:
        """Return the kinds of native steps that run float32 blocks on the CPU, or ""."""
        if native.library is None:
            return ""
        program, state = Program(shape, torch.float32), self.init_state(shape, torch.float32, torch.device("cpu"))
        target = program.attempt(self.emit, 0, tuple(value.contiguous() for value in state))
        return "" if target is None else ", ".join(program.kinds)

    def blocks_by(self, shape: tuple[int, ...]) -> str:
        """Return in words what runs the blocks of a stream."""
        kinds = self.kinds(shape)
        return f"native program of {kinds} on the CPU, otherwise {self.operator}" if kinds else self.operator

    def by_program(self, shape: tuple[int, ...]) -> str:
        """Return in words what runs whole signals where those are a native program's."""
        return self.blocks_by(shape).replace(" on the CPU,", " on the CPU without gradients,")

    def whole_by(self, shape: tuple[int, ...]) -> list[str]:
        """Return in words what runs whole signals with these leading dimensions."""
        row = next((row for row in _ops.rows if row.operator == self.operator), None)
        served = "" if row is None else "; ".join(f"{device} {row.text(device)}" for device in row.backends)
        return [f"{self.operator}: {served}" if served else self.operator]

    def state_size(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> int:
        """Return how many tensors a state holds."""
        return len(self.init_state(shape, dtype, device))

    def wait_from_rest(self, shape: tuple[int, ...], rate: float | None) -> int:
        """Return how many samples the step runs unheard where it is new in a running signal.

        Args:
            shape: the signal's leading dimensions.
            rate: sample rate of the input, Hz.
        """
        return 0

    def take_over(self, before: Step, shape: tuple[int, ...], old: State, new: State, rate: float | None) -> Handover:
        """Return how this step continues where another one of its kind stopped, with other parameters.

        Args:
            before: the other step.
            shape: the signal's leading dimensions.
            old: its state; the values do not matter.
            new: this step's state of rest.
            rate: sample rate of the input, Hz.
        """
        return kept(old, new, rate)


class LTIStep(Step):
    """A run of linear time-invariant modules as one operator call."""

    def __init__(self, system: LTI, members: Sequence[str]) -> None:
        self.system = system
        self.members = tuple(members)
        self.settling = system.delay + (0 if system.taps is None else system.taps.shape[-1] - 1)
        self.added_dimensions = system.added_dimensions
        if system.sos is not None:
            self.operator = "sos_forward" if system.taps is None else "lti_forward"
        else:
            self.operator = "aten::mul" if system.taps is None else "fir_forward"
        self._placed: dict[torch.device, LTI] = {}
        self._program: Program | None = None  # for signals like the last one

    def on(self, device: torch.device) -> LTI:
        """Return the coefficients on a device; kept there, so that a GPU gets them once."""
        found = self._placed.get(device)
        if found is None:
            with lasting(*self.system.tensors()):
                found = self._placed[device] = self.system.to(device)
        return found

    def run(self, x: Tensor) -> Tensor:
        """Process a whole signal (..., time) from rest."""
        system = self._placed.get(x.device)
        if system is None:
            if lacks_float64(x):
                return through_cpu(self.run, x)
            system = self.on(x.device)
        if system.delay:
            x = pad(x, (system.delay, 0))[..., : x.shape[-1]]
        if system.added_dimensions:
            x = system.spread(x)
        if system.sos is not None:
            if system.taps is not None:
                return _ops.lti_forward(x, system.taps, system.sos)[0]
            return _ops.parallel_iir_forward(x, system.sos)[0]
        if system.taps is not None:
            return _ops.fir_forward(x, system.taps)[0]
        program = self._program
        if program is not None and _may_run(program, x):
            return program.run(x)
        if isinstance(system.gain, Tensor) or not _may_have_program(x):
            return _scaled(x, system.gain)
        program = Program(tuple(x.shape[:-1]), x.dtype)
        program.finish(program.gain(0, system.gain), 0)
        self._program = program  # finished: other threads may see it
        return program.run(x)

    def again(self, x: Tensor) -> Again | None:
        """Return what a program does with signals like this one: a gain, or sections and few taps on a short signal."""
        system, program = self.system, self._program
        if system.delay or system.added_dimensions or self.settling >= PARTITIONED:
            return None
        if program is None or not program.serves(x):
            if (system.sos is None and system.taps is None) or x.numel() > SHORT or not _may_have_program(x):
                return None
            shape = tuple(x.shape[:-1])
            program = Program(shape, x.dtype)
            target = program.attempt(self.emit, 0, self.init_state(shape, x.dtype, x.device))
            if target is None:
                return None
            program.finish(target, 0)
            self._program = program
        return program.again(x)

    def run_each(self, signals: Sequence[Tensor]) -> list[Tensor] | None:
        """Return the result of `run` for each of many signals on the CPU, by one native call; None if no native call
        can do it.
        """
        system = self.system
        is_cascade = system.sos is not None and system.taps is None and not system.delay and system.sos.dim() == 2
        if not is_cascade or native.library is None:
            return None
        sos = self.on(torch.device("cpu")).sos
        assert sos is not None
        return None if sos.requires_grad and torch.is_grad_enabled() else sos_forward_each(signals, sos)

    def init_state(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> State:
        """Return the state of rest: delay line, the response's state, the cascade's state, where they exist."""
        state = []
        system, leading = self.system, self.leading(shape)
        if system.delay:
            state.append(torch.zeros(*shape, system.delay, dtype=dtype, device=device))
        if system.taps is not None:
            state.append(torch.zeros(*leading, system.taps.shape[-1] - 1, dtype=torch.float64, device=device))
        if system.sos is not None:
            state.append(torch.zeros(system.sos.shape[-2], *leading, 2, dtype=torch.float64, device=device))
        return tuple(state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Process a block."""
        system, after = self.on(x.device), []
        found: Sequence[Tensor]
        rest: list[Any] = list(state)
        if system.delay:
            both = torch.cat([rest.pop(0), x], dim=-1)
            x, line = both[..., : x.shape[-1]], both[..., x.shape[-1] :]
            after.append(line)
        if system.added_dimensions:
            x = system.spread(x)
        if system.taps is not None and system.sos is not None:
            x, *found = _ops.lti_forward(x, system.taps, system.sos, *rest)
            after += found
        elif system.taps is not None:
            x, *found = _ops.fir_forward(x, system.taps, *rest)
            after += found
        elif system.sos is not None:
            x, *found = _ops.parallel_iir_forward(x, system.sos, *rest)
            after += found
        else:
            x = _scaled(x, system.gain)
        return x, tuple(after)

    def leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions."""
        return self.system.leading(shape)

    def frozen(self) -> LTIStep:
        """Return the step with its own coefficients."""
        return LTIStep(self.system.frozen(), self.members)

    def emit(self, program: Program, source: int, state: State) -> int | None:
        """Append delay, gain, response and sections."""
        system, rest = self.system, list(state)
        if self.leading(program.shape) != program.shape or any(tensor.requires_grad for tensor in system.tensors()):
            return None
        if system.delay:
            source = program.delay(source, rest.pop(0))
        if system.taps is None and system.sos is None:
            return program.gain(source, system.gain)
        if system.taps is not None and system.sos is not None:
            wide = program.widen(source)
            wide = program.partitioned(wide, system.taps, rest.pop(0))
            return program.narrow(program.sos(wide, system.sos, rest.pop(0)))
        if system.taps is not None:
            return program.partitioned(source, system.taps, rest.pop(0))
        assert system.sos is not None
        return program.sos(source, system.sos, rest.pop(0))

    def state_size(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> int:
        """Return how many of delay, response and cascade there are."""
        return (self.system.delay > 0) + (self.system.taps is not None) + (self.system.sos is not None)

    def wait_from_rest(self, shape: tuple[int, ...], rate: float | None) -> int:
        """Return how long delay and taps are incomplete and the sections remember their start."""
        return self.settling + (0 if self.system.sos is None else memory_samples(self.system.sos, rate))

    def take_over(self, before: Step, shape: tuple[int, ...], old: State, new: State, rate: float | None) -> Handover:
        """Return what of delay line, response and cascade continues, each judged by itself.

        The state of taps is their pending output: other taps start again, and are complete when all have sounded.
        """
        assert isinstance(before, LTIStep)
        own, was = self.system, before.system
        moved = own.delay != was.delay  # the next step gets another signal
        moves: list[Move | None] = []
        waiting, at = 0, 0
        if own.delay:
            count = min(was.delay, own.delay)  # the line holds what the new delay would hold
            line = Move(0, parts=((was.delay - count, own.delay - count, count),)) if was.delay else None
            moves.append(line)
            waiting += own.delay if line is None else max(0, own.delay - was.delay)
        at += was.delay > 0
        if own.taps is not None:
            same = was.taps is not None and own.taps.shape == was.taps.shape and torch.equal(own.taps, was.taps)
            same = (
                same and not moved and own.taps.shape[-1] < PARTITIONED
            )  # of longer ones, what they owe lies elsewhere
            moves.append(Move(at) if same else None)
            waiting += 0 if same else own.taps.shape[-1] - 1
        at += was.taps is not None
        if own.sos is not None:
            state = old[at] if was.sos is not None else None
            move, longer = sections_handover(at, None if moved else was.sos, own.sos, state, rate)
            moves.append(move)
            waiting += longer
        return Handover(tuple(moves), waiting)

    def whole_by(self, shape: tuple[int, ...]) -> list[str]:
        """Return the operator, or for a gain alone what runs blocks."""
        system = self.system
        if system.taps is None and system.sos is None and not isinstance(system.gain, Tensor):
            return [self.by_program(shape)]
        return super().whole_by(shape)

    def lines(self) -> list[str]:
        """Return the operator calls, then the modules they stand for."""
        sos, taps = self.system.sos, self.system.taps
        sizes = [] if taps is None else [plural(taps.shape[-1], "tap")]
        sizes += [] if sos is None else [plural(sos.shape[-2], "section")]
        if sizes:
            head = f"torchfx_ext::{self.operator}  {', '.join(sizes)}"
        elif isinstance(self.system.gain, Tensor):
            head = f"aten::mul  by a tensor {tuple(self.system.gain.shape)}"
        else:
            head = f"aten::mul  by {self.system.gain:.6g}"
        delay = [f"delay of {plural(self.system.delay, 'sample')}"] if self.system.delay else []
        return [head, *delay, *self.members]


class CausalStep(Step):
    """A processor with memory.

    Attributes:
        is_constant: whether all that its native steps are made from is watched while the plan is remembered: the
            program for whole signals is then kept for the next one of the same shape and type.
    """

    def __init__(self, module: Any, rate: float | None, name: str) -> None:
        self.module: Causal = module
        self.rate = rate
        self.name = name
        self.operator = type(module).step.__qualname__
        self.latency = module.latency_samples(rate)
        self.is_constant = False
        self._program: Program | None = None  # kept, for signals like the last one
        self._size: int | None = None
        self.measures = module.kind == "measured"
        why = module.refusal()
        self.refusal = f"{name or shown(module)} {why}" if why else ""
        if self.measures:
            self.refusal = (
                f"{name or type(module).__name__} needs the whole signal before it can begin: "
                f"torchfx.realtime.process_file reads the file twice"
            )

    def run(self, x: Tensor) -> Tensor:
        """Process a whole signal (..., time) from rest, aligned with its input."""
        program = self._program
        if program is not None and _may_run(program, x):
            return program.run(x)
        if not x.is_cpu and lacks_float64(x):
            return through_cpu(self.run, x)
        y, program = CausalStep(self.module._now(), self.rate, self.name)._run_with_these(x)
        if self.is_constant:
            self._program = program
        return y

    def again(self, x: Tensor) -> Again | None:
        """Return what the program that is kept does with signals like this one."""
        program = self._program
        return None if program is None else program.again(x)

    def _run_with_these(self, x: Tensor) -> tuple[Tensor, Program | None]:
        """Do the same if no parameter of the processor is assigned meanwhile; return the program that did it, too."""
        module, rate, time = self.module, self.rate, x.shape[-1]
        shape = tuple(x.shape[:-1])
        module.output_shape(shape)  # raises where parameters hold values for other examples
        found = module.whole(x, rate)
        if found is not None:
            return found, None
        program = self._from_rest(x)
        if program is not None:
            return program.run(x), program
        state = module.init_state(shape, rate, x.dtype, x.device)
        if self.measures:
            state = module.measure(x, state, rate)
        later, (up, down) = self.latency, rate_ratio(rate, module.output_rate(rate))
        if later:
            x = pad(x, (0, resampled_length(later, down, up)))
        y = module.step(x, state, rate)[0]
        return y[..., later : later + resampled_length(time, up, down)] if later else y, None

    def _from_rest(self, x: Tensor) -> Program | None:
        """Return the processor's native steps for signals like x; None where PyTorch has to run.

        That happens if the processor has no program, and if gradients, the compiler or a mode follow the operators.
        """
        module, rate = self.module, self.rate
        shape = tuple(x.shape[:-1])
        if not _may_have_program(x) or self.measures or module.has_whole or 0 in shape:
            return None
        if module.output_shape(shape) != shape or module.output_rate(rate) != rate:
            return None
        program = Program(shape, x.dtype)
        state = tuple(value.contiguous() for value in module.init_state(shape, rate, x.dtype, x.device))
        target = program.attempt(self.emit, 0, state)
        if target is None:
            return None
        program.finish(target, self.latency)
        return program

    def init_state(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> State:
        """Return the state of rest."""
        return self.module.init_state(shape, self.rate, dtype, device)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Process a block."""
        return self.module.step(x, state, self.rate)

    def measure(self, x: Tensor, state: State) -> State:
        """Take a block of the first pass into account."""
        return self.module.measure(x, state, self.rate)

    def state_size(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> int:
        """Return how many tensors a state holds."""
        if self._size is None:
            self._size = len(self.init_state(shape, dtype, device))
        return self._size

    def wait_from_rest(self, shape: tuple[int, ...], rate: float | None) -> int:
        """Return the latency, and some time where there is a state."""
        state = self.init_state(shape, torch.float32, torch.device("cpu"))
        return self.latency + (samples(UNKNOWN_WAIT_S, rate) if any(value.numel() for value in state) else 0)

    def take_over(self, before: Step, shape: tuple[int, ...], old: State, new: State, rate: float | None) -> Handover:
        """Return what the processor says."""
        assert isinstance(before, CausalStep)
        return self.module.take_over(before.module, shape, old, new, self.rate)

    def leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions."""
        return self.module.output_shape(shape)

    def output_rate(self, rate: float | None) -> float | None:
        """Return the output's sample rate."""
        return self.module.output_rate(rate)

    def frozen(self) -> CausalStep:
        """Return the step with a copy of the processor."""
        return CausalStep(_copied(self.module), self.rate, self.name)

    def emit(self, program: Program, source: int, state: State) -> int | None:
        """Append the processor's own native steps, if it has any."""
        return self.module.native(program, source, state, self.rate)

    def lines(self) -> list[str]:
        """Return the processor."""
        return [shown(self.module)]

    def whole_by(self, shape: tuple[int, ...]) -> list[str]:
        """Return the processor's method for whole signals, or what runs blocks."""
        if self.module.has_whole:
            return [type(self.module).whole.__qualname__]
        return [self.by_program(shape)]


class ModuleStep(Step):
    """A module that is called as it is: PyTorch's own, one with hooks, one that needs the whole signal."""

    def __init__(
        self, module: nn.Module, rate: float | None, name: str, reason: str, reads_pieces: bool = False
    ) -> None:
        self.module = module
        self.rate = rate
        self.name = name
        self.reads_pieces = reads_pieces
        self.operator = type(module).forward.__qualname__
        self.refusal = reason
        if not reason and not isinstance(module, POINTWISE):
            self.refusal = (
                f"{name or shown(module)} may need samples before or after the block it is given: wrap it in "
                f"torchfx.Memoryless(module) if each output sample depends on one input sample, or in "
                f"torchfx.WithContext(module, past_samples=..., future_samples=...)"
            )

    def run(self, x: Tensor) -> Tensor:
        """Call the module; filters in it know the sample rate."""
        if self.rate is None or torch.compiler.is_compiling():
            y: Tensor = self.module(x)
            return y
        with sample_rate(self.rate):
            result: Tensor = self.module(x)
            return result

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield what the module makes of a long signal; it knows the sample rate, and takes no gradients."""
        module: Any = self.module
        results: Iterator[Tensor] = module.in_pieces(x)
        while True:
            with nullcontext() if self.rate is None else sample_rate(self.rate), torch.no_grad():
                y = next(results, None)
            if y is None:
                return
            yield y

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Call the module on a block, if that is the same as calling it on the whole."""
        if self.refusal:
            raise StreamError(self.refusal)
        return self.module(x), state

    def output_rate(self, rate: float | None) -> float | None:
        """Return the output's sample rate."""
        changed = getattr(self.module, "output_rate", None) if hasattr(type(self.module), "kind") else None
        return rate if changed is None else changed(rate)

    def lines(self) -> list[str]:
        """Return the module's class and parameters."""
        return [f"{shown(self.module)}  called as it is"]


class FeatureStep(Step):
    """A processor that makes features of samples, or takes features; see `torchfx.spectral`."""

    def __init__(self, module: Any, rate: float | None, name: str) -> None:
        self.module = module
        self.rate = rate
        self.name = name
        self.gives = module.gives
        self.operator = f"{type(module).__name__}.features"
        why = module.refusal()
        self.refusal = f"{name or shown(module)} {why}" if why else ""

    def run(self, x: Tensor) -> Tensor:
        """Return the features of a whole signal."""
        found: Tensor = self.module.features(x, self.rate)
        return found

    def init_state(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> State:
        """Return the state before the first sample."""
        state: State = () if self.refusal else self.module.init_state(shape, self.rate, dtype, device)
        return state

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the frames that a block completes."""
        if self.refusal:
            raise StreamError(self.refusal)
        found: tuple[Tensor, State] = self.module.step(x, state, self.rate)
        return found

    def running(self, state: State) -> Running | None:
        """Return what the processor keeps its state in between blocks; None: it does not."""
        found: Running | None = None if self.refusal else self.module.running(state, self.rate)
        return found

    def finish(self, state: State) -> Tensor | None:
        """Return the frames that reach beyond the signal's end; None: there can be none."""
        found: Tensor | None = self.module.finish(state, self.rate)
        return found

    def leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions of the features but frames."""
        found: tuple[int, ...] = self.module.output_shape(shape)
        return found

    def frozen(self) -> Step:
        """Return the step with its own values."""
        return FeatureStep(_copied(self.module), self.rate, self.name)

    def lines(self) -> list[str]:
        """Return the processor and its parameters."""
        return [f"{shown(self.module)}  {self.gives}"]


class ParallelStep(Step):
    """Plans side by side, added; those that lag less than others are delayed in a stream."""

    operator = "the branches' operators"

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = tuple(plans)
        self.latency = max(plan.latency for plan in self.plans)
        self.settling = max(sum(step.settling for step in plan.steps) for plan in self.plans)
        self.refusal = next((plan.refusal for plan in self.plans if plan.refusal), "")
        dimensions = {sum(step.added_dimensions for step in plan.steps) for plan in self.plans}
        if len(dimensions) > 1:
            raise ArgumentError("the branches of a sum must all give bands, (..., bands, time), or none of them")
        self.added_dimensions = dimensions.pop()

    def run(self, x: Tensor) -> Tensor:
        """Process a whole signal (..., time) in every branch and return the sum."""
        total = self.plans[0].run(x)
        for plan in self.plans[1:]:
            total = total + plan.run(x)
        return total

    def init_state(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> State:
        """Return the branches' states, each with its delay line after it where it has to wait."""
        state: list[Tensor] = []
        for plan in self.plans:
            state += plan.init_state(shape, dtype, device)
            if plan.latency < self.latency:
                missing = self.latency - plan.latency
                state.append(torch.zeros(*plan.leading(shape), missing, dtype=dtype, device=device))
        return tuple(state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Process a block in every branch and return the sum."""
        total: Tensor | None = None
        after: list[Tensor] = []
        for plan in self.plans:
            size = plan.state_size(tuple(x.shape[:-1]), x.dtype, x.device)
            y, inner = plan.step(x, state[:size])
            state = state[size:]
            after += inner
            if plan.latency < self.latency:
                both = torch.cat([state[0], y], dim=-1)
                y, state = both[..., : y.shape[-1]], state[1:]
                after.append(both[..., y.shape[-1] :])
            total = y if total is None else total + y
        assert total is not None
        return total, tuple(after)

    def leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions."""
        return tuple(torch.broadcast_shapes(*(plan.leading(shape) for plan in self.plans)))

    def frozen(self) -> ParallelStep:
        """Return the sum of branches with separate values."""
        return ParallelStep([plan.frozen() for plan in self.plans])

    def emit(self, program: Program, source: int, state: State) -> int | None:
        """Append all branches and their sum."""
        total: int | None = None
        for plan in self.plans:
            size = plan.state_size(program.shape, program.dtype, torch.device("cpu"))
            target = plan.emit(program, source, state[:size])
            state = state[size:]
            if target is None:
                return None
            if plan.latency < self.latency:
                target = program.delay(target, state[0])
                state = state[1:]
            total = target if total is None else program.add(total, target)
        return total

    def wait_from_rest(self, shape: tuple[int, ...], rate: float | None) -> int:
        """Return the longest time of the branches, those that have to wait for others included."""
        return max(wait_of(plan.steps, shape, rate) + self.latency - plan.latency for plan in self.plans)

    def lines(self) -> list[str]:
        """Return the branches' steps, indented."""
        text = [f"sum of {len(self.plans)} branches"]
        for i, plan in enumerate(self.plans):
            text.append(f"branch {i + 1}:")
            text += [f"    {line}" for line in plan.lines()]
        return text

    def whole_by(self, shape: tuple[int, ...]) -> list[str]:
        """Return what runs the branches' steps."""
        return [f"branch {i}, {line}" for i, plan in enumerate(self.plans, 1) for line in plan.runs(shape, False)]

    def calls(self) -> int:
        """Return the calls of all branches and the additions."""
        return sum(plan.calls() for plan in self.plans) + len(self.plans) - 1


class LateStep(Step):
    """A step whose output lags behind its input in a stream.

    What it yields before its input begins is left out, so that the next step begins where it does in whole signals.
    The last tensor of the state counts the samples received and given.
    """

    def __init__(self, step: Step, ratio: tuple[int, int]) -> None:
        self.inner, self.ratio, self.latency = step, ratio, step.latency
        self.name, self.refusal, self.measures, self.settling = step.name, step.refusal, step.measures, step.settling
        self.added_dimensions = step.added_dimensions

    def run(self, x: Tensor) -> Tensor:
        """Process a whole signal (..., time) from rest, aligned with its input."""
        return self.inner.run(x)

    def again(self, x: Tensor) -> Again | None:
        """Return what the inner step returns."""
        return self.inner.again(x)

    def init_state(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> State:
        """Return the state of rest."""
        return (*self.inner.init_state(shape, dtype, device), torch.zeros(2, dtype=torch.int64))

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Process a block; the first ones give fewer samples than they have, by `latency` in all."""
        y, after = self.inner.step(x, state[:-1])
        received, given = state[-1].tolist()
        counts = torch.tensor([received + x.shape[-1], given + y.shape[-1]])
        return self.begun(y, given), (*after, counts)

    def begun(self, y: Tensor, given: int) -> Tensor:
        """Leave out of the inner step's output for a block what comes before the input's beginning.

        Args:
            y: the output.
            given: the samples of output before it.
        """
        late = max(0, min(y.shape[-1], self.latency - given))
        return y[..., late:] if late else y

    def frozen(self) -> LateStep:
        """Return the inner step with its own values."""
        return LateStep(self.inner.frozen(), self.ratio)

    def finish(self, silence: Tensor, state: State) -> Tensor:
        """Return what is left once the signal has ended.

        Args:
            silence: zeros (..., `latency` samples at the input's rate).
            state: after the last block.
        """
        received, given = state[-1].tolist()
        y, _ = self.inner.step(silence, state[:-1])
        return y[..., max(0, self.latency - given) : self.latency + resampled_length(received, *self.ratio) - given]

    def measure(self, x: Tensor, state: State) -> State:
        """Take a block of the first pass into account."""
        return (*self.inner.measure(x, state[:-1]), state[-1])

    def leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions."""
        return self.inner.leading(shape)

    def output_rate(self, rate: float | None) -> float | None:
        """Return the output's sample rate."""
        return self.inner.output_rate(rate)

    def state_size(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> int:
        """Return how many tensors a state holds."""
        return self.inner.state_size(shape, dtype, device) + 1

    def wait_from_rest(self, shape: tuple[int, ...], rate: float | None) -> int:
        """Return the inner step's time."""
        return self.inner.wait_from_rest(shape, rate)

    def lines(self) -> list[str]:
        """Return the inner step's lines."""
        return self.inner.lines()

    def calls(self) -> int:
        """Return the inner step's calls."""
        return self.inner.calls()


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The steps that a module runs at one sample rate.

    Attributes:
        fs: sample rate, Hz, or None where nothing depends on it.
        steps: what is done, in order.
        modules: how many modules the steps stand for.
        device: where the filters were moved to, or None: coefficients go where the signal is.
        output_rate: the output's sample rate, Hz.
        latency: latency of the output, in output samples.
        refusal: why the plan cannot run in a stream; "" if it can.
        keeps_rate: whether all steps do.
        gives: whether the result is "samples" or "features".
    """

    fs: float | None
    steps: tuple[Step, ...]
    modules: int
    device: torch.device | None
    output_rate: float | None
    latency: int
    refusal: str
    keeps_rate: bool = True
    gives: str = "samples"

    def run(self, x: Tensor) -> Tensor:
        """Process a whole signal (..., time), float32 or float64, from rest; latencies are compensated."""
        if self.device is not None:
            self._check_device(x)
        try:
            for step in self.steps:
                x = step.run(x)
        except TorchFXError as error:
            raise named_error(step.name, error) from error.__cause__
        return x

    def again(self, x: Tensor) -> Again | None:
        """Return what `run` does with signals like this one, which has just been processed; see `Program.again`."""
        if len(self.steps) != 1 or (self.device is not None and x.device != self.device):
            return None
        return self.steps[0].again(x)

    def run_each(self, signals: Sequence[Tensor]) -> list[Tensor] | None:
        """Return the result of `run` for each of many signals on the CPU, by one native call; None if no native call
        can do it.
        """
        step = self.steps[0] if len(self.steps) == 1 else None
        if not isinstance(step, LTIStep):
            return None
        if self.device is not None:
            self._check_device(signals[0])
        try:
            return step.run_each(signals)
        except TorchFXError as error:
            raise named_error(step.name, error) from error.__cause__

    def init_state(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> State:
        """Return the state of rest for a signal with these leading dimensions: all steps' states in a row."""
        state: list[Tensor] = []
        for step in self.steps:
            state += step.init_state(shape, dtype, device)
            shape = step.leading(shape)
        return tuple(state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Process a block (..., time) and return it with the state for the next one."""
        if self.device is not None:
            self._check_device(x)
        if self.refusal:
            raise StreamError(self.refusal)
        after: list[Tensor] = []
        time = x.shape[-1]
        for step in self.steps:
            size = step.state_size(tuple(x.shape[:-1]), x.dtype, x.device)
            x, inner = step.step(x, state[:size])
            state = state[size:]
            after += inner
        return self.filled(x, time), tuple(after)

    def filled(self, y: Tensor, time: int) -> Tensor:
        """Return a block's output with silence in front, instead of what late steps have left out.

        Args:
            y: what the steps made of the block.
            time: the block's length. Where a step changes the sample rate, nothing is filled in.
        """
        missing = time - y.shape[-1] if self.latency and self.keeps_rate else 0
        return pad(y, (missing, 0)) if missing > 0 else y

    def leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions for a signal with these."""
        for step in self.steps:
            shape = step.leading(shape)
        return shape

    def state_size(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> int:
        """Return how many tensors a state holds."""
        size = 0
        for step in self.steps:
            size += step.state_size(shape, dtype, device)
            shape = step.leading(shape)
        return size

    def frozen(self) -> Plan:
        """Return the plan with its own values, which later assignments to processors leave alone."""
        return replace(self, steps=tuple(step.frozen() for step in self.steps))

    def states(
        self, state: State, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
    ) -> list[tuple[Step, State]]:
        """Return each step with its own part of a state."""
        found: list[tuple[Step, State]] = []
        for step in self.steps:
            size = step.state_size(shape, dtype, device)
            found.append((step, state[:size]))
            state, shape = state[size:], step.leading(shape)
        return found

    def emit(self, program: Program, source: int, state: State) -> int | None:
        """Append all steps to a native program; return the buffer the last one writes, or None if one cannot."""
        for step, own in self.states(state, program.shape, program.dtype, torch.device("cpu")):
            target = step.emit(program, source, own)
            if target is None:
                return None
            source = target
        return source

    def calls(self) -> int:
        """Return how many operator calls a whole signal takes."""
        return sum(step.calls() for step in self.steps)

    def lines(self) -> list[str]:
        """Return the steps as numbered lines."""
        text = []
        for i, step in enumerate(self.steps):
            head, *rest = step.lines()
            text.append(f"{i + 1}. {head}")
            text += [f"   {line}" for line in rest]
        return text or ["nothing to do"]

    def runs(self, shape: tuple[int, ...], streams: bool = True) -> list[str]:
        """Return in numbered lines what runs each step, for signals with these leading dimensions, or why it can't."""
        text, whole, i = [], "whole signals: " if streams else "", 0
        try:
            for i, each in enumerate(self.steps, 1):
                step = each.inner if isinstance(each, LateStep) else each
                text += [f"{i}. {whole}{line}" for line in step.whole_by(shape)]
                text += [f"{i}. streams: {step.blocks_by(shape)}"] if streams and not step.refusal else []
                shape = step.leading(shape)
        except TorchFXError as error:
            text.append(f"{i}. {error}")
        return text

    def __repr__(self) -> str:
        """Return the plan as text."""
        rate = "any sample rate" if self.fs is None else f"{self.fs:g} Hz"
        head = f"plan at {rate}: {plural(self.modules, 'module')} -> {plural(self.calls(), 'operator call')}"
        return "\n".join([head, *(f"  {line}" for line in self.lines())])

    def _check_device(self, x: Tensor) -> None:
        if x.device != self.device:
            raise ArgumentError(
                f"the filters were moved to {self.device} but the signal is on {x.device}; move one of them with .to()"
            )


def lasting(*made_of: object) -> AbstractContextManager[object]:
    """Let tensors be made that serve any later call, unless they are made of tensors that a transform follows.

    Those made in inference mode are barred from training, and torch.func's transforms wrap what is made inside them.
    """
    if torch.compiler.is_compiling() or any(isinstance(each, Tensor) and is_wrapped(each) for each in made_of):
        return nullcontext()
    if transforms_active():
        outside: AbstractContextManager[object] = torch._C._DisableFuncTorch()
        return outside
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext()


def shown(module: Any) -> str:
    """Return a module's class and parameters, as its repr does for a module without children."""
    return f"{module._get_name()}({module.extra_repr()})"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _copied(module: Any) -> Any:
    """Return a copy of a processor and the processors in it, with separate values; other modules are shared."""
    if not hasattr(type(module), "lti"):
        return module
    twin = copy.copy(module)
    own = vars(twin)
    for name in ("_parameters", "_buffers"):
        own[name] = {key: None if value is None else value.detach().clone() for key, value in own[name].items()}
    own.update({name: value.detach().clone() for name, value in own.items() if isinstance(value, Tensor)})
    own["_modules"] = {name: None if child is None else _copied(child) for name, child in module._modules.items()}
    return twin


def named_error(name: str, error: TorchFXError) -> TorchFXError:
    """Return an error that names the module it comes from; "" for a module called by itself."""
    return type(error)(f"{name}: {error}") if name else error


def wait_of(steps: Sequence[Step], shape: tuple[int, ...], rate: float | None) -> int:
    """Return how many samples steps in a row run unheard where they are new in a running signal."""
    found = 0
    for step in steps:
        found += step.wait_from_rest(shape, rate)
        shape, rate = step.leading(shape), step.output_rate(rate)
    return found


def _may_have_program(x: Tensor) -> bool:
    """Return whether a native program may run on a whole signal: nothing records its gradient or follows operators."""
    return not torch.compiler.is_compiling() and native.library is not None and _runs_native(x)


def _may_run(program: Program, x: Tensor) -> bool:
    """Return whether an existing program may run; while compiling, no program exists."""
    return is_native(x) and x.is_cpu and program.serves(x) and not (x.requires_grad and torch.is_grad_enabled())


def _runs_native(x: Tensor) -> bool:
    return x.is_cpu and is_native(x) and not (x.requires_grad and torch.is_grad_enabled())


def _scaled(x: Tensor, gain: float | Tensor) -> Tensor:
    if isinstance(gain, Tensor):
        leading_dimensions("gain", gain, 0, x)
        return x * gain.to(x.dtype)[..., None]
    return x * gain
