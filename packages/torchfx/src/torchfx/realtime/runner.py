"""Run a plan on blocks: the state, and native programs for the steps that have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.again import Again
from torchfx._ops.operator import is_native
from torchfx._ops.program import Program
from torchfx.errors import ArgumentError
from torchfx.plan import FeatureStep, LateStep, Running, State, Step
from torchfx.rate import resampled_length

__all__ = ["Runner", "works_of"]


class RunningProgram:
    """Neighbouring steps that run as one program.

    Args:
        program: the program of the steps.
        late: the last step, if it has latency.
        counts: samples that it received and returned, as in its state (see `LateStep`).
    """

    def __init__(self, program: Program, late: LateStep | None, counts: Tensor | None) -> None:
        self.program, self._late, self._counts = program, late, counts
        self._received = self._given = 0
        self.resume()

    def run(self, x: Tensor) -> Tensor:
        """Process a block."""
        y = self.program.run(x)
        if self._late is None:
            return y
        given = self._given
        self._received += x.shape[-1]
        self._given = given + y.shape[-1]
        return y if given >= self._late.latency else self._late.begun(y, given)

    @property
    def begins(self) -> bool:
        """Whether blocks give fewer samples than they have, because the last step's latency has not passed."""
        return self._late is not None and self._given < self._late.latency

    def again(self, x: Tensor) -> Again | None:
        """Return a fast call for blocks like this one, after the beginning; see `Program.again`."""
        run, time = self.program.again(x), x.shape[-1]
        if self._late is None or run is None:
            return run

        def again(x: Any) -> Tensor | None:
            y = run(x)
            if y is not None:
                self._received += time
                self._given += time
            return y

        return again

    def settle(self) -> None:
        """Write the program's progress into the state."""
        self.program.settle()
        if self._counts is not None:
            self._counts.copy_(torch.tensor([self._received, self._given]))

    def resume(self) -> None:
        """Continue from the current state."""
        if self._counts is not None:
            self._received, self._given = self._counts.tolist()


class Runner:
    """Run the steps of a plan on blocks of one shape and type.

    Neighbouring native steps form one program, which makes one call per block, without Python. A step with latency ends
    its program, because it initially returns fewer samples than it gets.

    Args:
        steps: the steps of the plan.
        shape: the signal's leading dimensions.
        dtype, device: of the signal.
        state: the states of all steps, concatenated; None starts from rest. It is copied, unless it belongs to another
            runner.
        before: the previous runner; tensors that it shares with the state now belong to this runner.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        shape: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
        state: Sequence[Tensor] | None = None,
        before: Runner | None = None,
    ) -> None:
        self.steps = tuple(steps)
        self.works: dict[int, Tensor] = {} if before is None else works_of(before.works, before._state)
        self._state: list[Tensor] = []
        self._shapes: list[tuple[int, ...]] = []
        self._like = torch.empty(0, dtype=dtype, device=device)
        self._slices: list[slice] = []
        given = None if state is None else list(state)
        self._running: dict[int, Running] = {}  # by the first step
        self._ends: dict[int, int] = {}  # likewise: the step after them
        native_here = device.type == "cpu" and native.library is not None
        program: Program | None = None
        first = source = 0
        programs: dict[int, tuple[Program, int]] = {}
        for i, step in enumerate(self.steps):
            self._shapes.append(shape)
            rest = step.init_state(shape, dtype, device)
            own = rest if given is None else given[: len(rest)]
            given = None if given is None else given[len(rest) :]
            self._slices.append(slice(len(self._state), len(self._state) + len(rest)))
            if step.measures and given is not None:  # a measurement may be longer than that of silence
                rest = tuple(own)
            given_on = before is not None and state is not None
            self._state += own if given_on else [_copied(value, like) for value, like in zip(own, rest, strict=True)]
            if native_here:
                if program is None or program.shape != shape:
                    program, first, source = Program(shape, dtype, self.works, in_rings=True), i, 0
                kept = tuple(self._state[self._slices[i]])
                late = step if isinstance(step, LateStep) else None
                emit, kept = (step.emit, kept) if late is None else (late.inner.emit, kept[:-1])
                target = program.attempt(emit, source, kept)
                if target is None:
                    program, alone = None, step.running(kept)
                    if alone is not None:
                        self._running[i], self._ends[i] = alone, i + 1
                else:
                    source = target
                    programs[first] = program, target
                    self._running[first] = RunningProgram(program, late, self._state[-1] if late else None)
                    self._ends[first] = i + 1
                    if late is not None:
                        program = None
            shape = step.leading(shape)
        for each, result in programs.values():
            each.finish(result)
        row, i = [], 0
        while i in self._running:
            row.append(self._running[i])
            i = self._ends[i]
        self._row = row if i == len(self.steps) else []

    def process(self, x: Tensor, first: int = 0) -> Tensor:
        """Process a block (..., time), beginning with the step `first`, and update the state.

        The first blocks return fewer samples if steps have latency, by their total latency.
        """
        native_here = x.is_cpu and is_native(x)
        if x.requires_grad:
            x = x.detach()
        if native_here and self._row and first == 0:
            for each in self._row:
                x = each.run(x)
            return x
        running = self._running if native_here else {}
        if not native_here:
            self._settle()
        i = first
        while i < len(self.steps):
            if i in running:
                x, i = running[i].run(x), self._ends[i]
            else:
                x = self._step(i, x)
                i += 1
        if not native_here:
            for each in self._running.values():
                each.resume()
        return x

    def again(self, x: Tensor) -> Again | None:
        """Return a fast call for blocks like this one, if programs and features run all steps; see `Program.again`."""
        if any(isinstance(each, RunningProgram) and each.begins for each in self._row):
            return None
        first = self._row[0].again(x) if self._row else None
        return first if first is None or len(self._row) == 1 else _in_a_row(first, self._row[1:])

    def _settle(self) -> None:
        for running in self._running.values():
            running.settle()

    def _step(self, i: int, x: Tensor) -> Tensor:
        with torch.no_grad():
            where = self._slices[i]
            x, after = self.steps[i].step(x, tuple(self._state[where]))
            for kept, value in zip(self._state[where], after, strict=True):
                kept.copy_(value)  # in place: programs know where it lies
        return x

    def flush(self) -> Iterator[Tensor]:
        """Yield the rest after the end of the signal: the last samples of each step with latency, through the steps
        after it.

        This includes frames that extend beyond the end.
        """
        for i, step in enumerate(self.steps):
            if isinstance(step, FeatureStep):
                self._settle()
                with torch.no_grad():
                    frames = step.finish(tuple(self._state[self._slices[i]]))
                if frames is not None:
                    yield self.process(frames, i + 1)
            if isinstance(step, LateStep):
                self._settle()  # each time: the steps after a late one have just gone on
                silence = self._like.new_zeros(*self._shapes[i], resampled_length(step.latency, *reversed(step.ratio)))
                with torch.no_grad():
                    y = step.finish(silence, tuple(self._state[self._slices[i]]))
                yield self.process(y, i + 1)

    @property
    def own_state(self) -> State:
        """The states of all steps, concatenated: the tensors themselves, which blocks modify."""
        self._settle()
        return tuple(self._state)

    @property
    def state(self) -> State:
        """The states of all steps, concatenated, as copies."""
        return tuple(value.clone() for value in self.own_state)

    def restore(self, state: Sequence[Tensor]) -> None:
        """Set the states of all steps in place; only for steps that run in Python."""
        for kept, value in zip(self._state, state, strict=True):
            kept.copy_(value)


def _in_a_row(first: Again, later: Sequence[Running]) -> Again:
    """Return a fast call for steps in a row. Blocks of one length give blocks of few lengths to the later ones."""
    calls: list[dict[int, Again]] = [{} for _ in later]

    def again(x: Any) -> Tensor | None:
        y = first(x)
        if y is None:
            return None
        for each, known in zip(later, calls, strict=True):
            call = known.get(y.shape[-1])
            result = None if call is None else call(y)
            if result is None:
                result, call = each.run(y), each.again(y)
                if call is not None:
                    known[y.shape[-1]] = call
            y = result
        return y

    return again


def works_of(works: dict[int, Tensor], state: Sequence[Tensor]) -> dict[int, Tensor]:
    """Return the buffers that programs hold for states in use; the addresses of freed states may be reused."""
    alive = {value.data_ptr() for value in state}
    return {at: work for at, work in works.items() if at in alive}


def _copied(value: Tensor, like: Tensor) -> Tensor:
    if value.shape != like.shape or value.dtype != like.dtype:
        raise ArgumentError(
            f"state must hold {like.dtype} of shape {tuple(like.shape)}, "
            f"got {value.dtype} of shape {tuple(value.shape)}"
        )
    return torch.empty_like(like, memory_format=torch.contiguous_format).copy_(value.detach())
