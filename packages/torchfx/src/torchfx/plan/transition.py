"""Transitions from one plan to another while a signal runs.

Each step that differs is replaced where it stands: the old and the new step run side by side, with a crossfade between
their outputs. All other steps continue with their states. The steps after a replaced one get a signal without jumps, so
a reverberator after a filter keeps its tail, and the start of the new filter does not enter it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from torchfx._ops.program import Program
from torchfx.errors import StreamError
from torchfx.plan.handover import Handover, Move, eased, samples
from torchfx.plan.steps import (
    CausalStep,
    FeatureStep,
    LateStep,
    LTIStep,
    ModuleStep,
    ParallelStep,
    Plan,
    State,
    Step,
    wait_of,
)

__all__ = ["Copy", "Transition", "TransitionStep", "equal", "settled", "steps_handover", "transition"]


class TransitionStep(Step):
    """An old and a new step side by side, with a crossfade from the output of one to that of the other.

    The state is that of the old step, that of the new one, and the number of samples so far at output and input.

    Args:
        old, new: the steps; their outputs have one shape.
        sizes: how many tensors the state of each holds.
        handover: how many samples only the old one is output, and whether the new one's input rises from silence.
        length: samples of the crossfade.
    """

    def __init__(self, old: Step, new: Step, sizes: tuple[int, int], handover: Handover, length: int) -> None:
        self.old, self.new, self.sizes = old, new, sizes
        self.waiting, self.rises, self.length = handover.waiting, handover.rises, length
        self.latency, self.name, self.measures = new.latency, new.name, new.measures
        self.settling, self.added_dimensions = new.settling, new.added_dimensions

    def split(self, state: State) -> tuple[State, State, Tensor]:
        """Return the old step's state, the new one's, and the number of samples that have passed."""
        old, new = self.sizes
        return state[:old], state[old : old + new], state[old + new]

    def run(self, x: Tensor) -> Tensor:
        """Process a whole signal as the new step does."""
        return self.new.run(x)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Process a block with both."""
        of_old, of_new, passed = self.split(state)
        out, into = passed.tolist()
        a, of_old = self.old.step(x, of_old)
        b, of_new = self.new.step(self._crossed(torch.zeros_like(x), x, into) if self.rises else x, of_new)
        passed = passed + torch.tensor([b.shape[-1], x.shape[-1]])
        return self._crossed(a, b, out - self.waiting), (*of_old, *of_new, passed)

    def _crossed(self, a: Tensor, b: Tensor, begin: int) -> Tensor:
        time = b.shape[-1]
        if begin + time <= 0:
            return a
        if begin >= self.length:
            return b
        along = torch.arange(begin + 1, begin + time + 1, dtype=torch.float64, device=b.device) / self.length
        along = eased(along)
        crossed = torch.lerp(a.double(), b.double(), along)  # one that is not output may be infinite
        return torch.where(along == 0, a, torch.where(along == 1, b, crossed.to(b.dtype)))

    def init_state(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> State:
        """Return the state of rest after the crossfade: from rest there is nothing to fade from."""
        both = (each.init_state(shape, dtype, device) for each in (self.old, self.new))
        over = torch.tensor([self.waiting + self.length, self.length])
        return (*(value for state in both for value in state), over)

    def state_size(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> int:
        """Return how many tensors a state holds."""
        return sum(self.sizes) + 1

    def leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions."""
        return self.new.leading(shape)

    def output_rate(self, rate: float | None) -> float | None:
        """Return the output's sample rate."""
        return self.new.output_rate(rate)

    def emit(self, program: Program, source: int, state: State) -> int | None:
        """Append both steps and the way between them."""
        of_old, of_new, passed = self.split(state)
        a = self.old.emit(program, source, of_old)
        if a is not None and self.rises:
            source = program.crossfade(program.gain(source, 0.0), source, passed[1:], 0, self.length)
        b = None if a is None else self.new.emit(program, source, of_new)
        return None if a is None or b is None else program.crossfade(a, b, passed[:1], self.waiting, self.length)

    def lines(self) -> list[str]:
        """Return the new step's lines."""
        return self.new.lines()


class _PlanStep(Step):
    """A plan as one step, whose blocks are as long as its input: none of its steps leaves anything out at the start."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.latency = plan, plan.latency

    @staticmethod
    def of(steps: Sequence[Step], plan: Plan) -> _PlanStep:
        """Return some of a plan's steps as one."""
        inner = tuple(step.inner if isinstance(step, LateStep) else step for step in steps)
        return _PlanStep(replace(plan, steps=inner, latency=sum(step.latency for step in inner)))

    def run(self, x: Tensor) -> Tensor:
        """Process a whole signal."""
        return self.plan.run(x)

    def init_state(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> State:
        """Return all steps' states of rest."""
        return self.plan.init_state(shape, dtype, device)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Process a block."""
        return self.plan.step(x, state)

    def leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions."""
        return self.plan.leading(shape)

    def output_rate(self, rate: float | None) -> float | None:
        """Return the output's sample rate."""
        for step in self.plan.steps:
            rate = step.output_rate(rate)
        return rate

    def frozen(self) -> _PlanStep:
        """Return the steps with separate coefficients."""
        return _PlanStep(self.plan.frozen())

    def wait_from_rest(self, shape: tuple[int, ...], rate: float | None) -> int:
        """Return the sum of all steps' times."""
        return wait_of(self.plan.steps, shape, rate)

    def emit(self, program: Program, source: int, state: State) -> int | None:
        """Append all steps."""
        return self.plan.emit(program, source, state)

    def lines(self) -> list[str]:
        """Return all steps' lines."""
        return self.plan.lines()


@dataclass(frozen=True, eq=False)
class Copy:
    """A tensor of the new state, and the tensor of the old state that it is filled from when the plan changes."""

    source: Tensor
    target: Tensor
    move: Move

    def run(self) -> None:
        """Copy."""
        move, source, target = self.move, self.source, self.target
        if move.matrices is not None:
            target.copy_((move.matrices.to(source.device) @ source[..., None])[..., 0])
            return
        if move.parts is None:
            target.copy_(source)
            return
        for begin, to, count in move.parts:
            rows = source
            if move.rows is not None:
                rows = source.reshape(-1, source.shape[-1])[list(move.rows)].view(*target.shape[:-1], -1)
            target[..., to : to + count] = rows[..., begin : begin + count]
            if move.ramp:
                ramp = min(move.ramp, count // 2)
                rise = eased(torch.arange(1, ramp + 1, dtype=target.dtype, device=target.device) / (ramp + 1))
                target[..., to : to + ramp] *= rise
                target[..., to + count - ramp : to + count] *= rise.flip(0)


@dataclass(frozen=True, eq=False)
class Transition:
    """How a running plan becomes another one.

    Attributes:
        plan: what runs meanwhile: the steps that stay, and a `TransitionStep` for each that is replaced.
        state: all its tensors. Steps that stay share theirs with the running plan.
        copies: how the states of new steps are filled at the moment of the change.
        ways: for each replaced step the tensor that counts its samples, and the count at which the crossfade has ended.
    """

    plan: Plan
    state: State
    copies: tuple[Copy, ...]
    ways: tuple[tuple[Tensor, int], ...]

    @property
    def is_done(self) -> bool:
        """Whether all crossfades have ended."""
        return all(int(passed[0]) >= count for passed, count in self.ways)


def transition(
    before: Plan,
    state: State,
    after: Plan,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    fade_s: float,
) -> Transition | None:
    """Return the transition from a running plan to another one, or None if both surely give the same output.

    Args:
        before: the running plan, without any `TransitionStep`: see `settled`.
        state: its tensors. Only `Copy.run` reads their values.
        after: the new plan.
        shape, dtype, device: the signal's.
        fade_s: how long old and new outputs are crossed, seconds.

    Raises:
        StreamError: a step cannot be replaced while a signal runs.
    """
    ways: list[tuple[Tensor, int]] = []
    copies: list[Copy] = []

    def crossed(old: Plan, state: State, new: Plan, shape: tuple[int, ...]) -> tuple[Plan, State]:
        steps: list[Step] = []
        found: list[Tensor] = []
        rate = old.fs
        for a, of_a, b in _pairs(old, state, new, shape, dtype, device):
            step, inner = replaced(a, of_a, b, shape, rate)
            steps.append(step)
            found += inner
            shape, rate = step.leading(shape), step.output_rate(rate)
        return replace(new, steps=tuple(steps)), tuple(found)

    def replaced(a: Step, of_a: State, b: Step, shape: tuple[int, ...], rate: float | None) -> tuple[Step, State]:
        if equal(a, b):
            return a, of_a
        if _makes_features(a) or _makes_features(b):
            raise StreamError(
                "a stream of features cannot take parameters of theirs that changed: reset() starts again"
            )
        if isinstance(a, LateStep) or isinstance(b, LateStep):
            return late(a, of_a, b, shape, rate)
        if isinstance(a, ParallelStep) and isinstance(b, ParallelStep) and _alike(a, b):
            return branches(a, of_a, b, shape)
        if not (_keeps_rate(a, rate) and _keeps_rate(b, rate)):
            raise StreamError(
                "a stream that changes the sample rate cannot take modules, rates or qualities that changed: reset() "
                "starts again with them"
            )
        was, is_now = a.leading(shape), b.leading(shape)
        if was != is_now:
            raise StreamError(f"a running stream's output cannot change its shape, from {was} to {is_now}")
        fresh = b.frozen()
        of_b = tuple(value.contiguous() for value in fresh.init_state(shape, dtype, device))
        handover = _handover(a, of_a, fresh, of_b, shape, rate)
        for value, move in zip(of_b, handover.moves, strict=True):
            if move is not None:
                copies.append(Copy(of_a[move.source], value, move))
        length = max(1, samples(fade_s, rate))
        passed = torch.zeros(2, dtype=torch.int64)
        ways.append((passed, handover.waiting + length))
        sizes = len(of_a), len(of_b)
        return TransitionStep(a, fresh, sizes, handover, length), (*of_a, *of_b, passed)

    def late(a: Step, of_a: State, b: Step, shape: tuple[int, ...], rate: float | None) -> tuple[Step, State]:
        counts = torch.full((2,), max(a.latency, b.latency))  # more than what is left out at the beginning
        if isinstance(a, LateStep):
            a, of_a, counts = a.inner, of_a[:-1], of_a[-1] + (b.latency - a.latency)  # as much is left out as before
        if not isinstance(b, LateStep):
            return replaced(a, of_a, b, shape, rate)
        step, inner = replaced(a, of_a, b.inner, shape, rate)
        return LateStep(step, b.ratio), (*inner, counts)

    def branches(a: ParallelStep, of_a: State, b: ParallelStep, shape: tuple[int, ...]) -> tuple[Step, State]:
        plans: list[Plan] = []
        found: list[Tensor] = []
        for old, of_old, new in zip(a.plans, _split(a, of_a, shape, dtype, device), b.plans, strict=True):
            plan, inner = crossed(old, of_old, new, shape)
            plans.append(plan)
            found += [*inner, *of_old[len(of_old) - (old.latency < a.latency) :]]
        return ParallelStep(plans), tuple(found)

    plan, found = crossed(before, state, after, shape)
    return Transition(plan, found, tuple(copies), tuple(ways)) if ways else None


def steps_handover(
    before: Sequence[Step], after: Sequence[Step], shape: tuple[int, ...], old: State, new: State, rate: float | None
) -> Handover:
    """Return how steps in a row inside a processor take over: one by one where they correspond, else from rest.

    Args:
        before, after: the steps.
        shape: the signal's leading dimensions.
        old, new: their states, in a row; the values do not matter.
        rate: sample rate, Hz.
    """
    if len(before) != len(after) or not all(map(_corresponds, before, after)):
        return Handover((None,) * len(new), wait_of(after, shape, rate))
    moves: list[Move | None] = []
    at = waiting = 0
    for a, b in zip(before, after, strict=True):
        sizes = [step.state_size(shape, torch.float32, torch.device("cpu")) for step in (a, b)]
        own = new[len(moves) : len(moves) + sizes[1]]
        found = b.take_over(a, shape, old[at : at + sizes[0]], own, rate)
        moves += [move if move is None else replace(move, source=move.source + at) for move in found.moves]
        at, waiting, shape = at + sizes[0], waiting + found.waiting, b.leading(shape)
    return Handover(tuple(moves), waiting)


def settled(
    plan: Plan, state: State, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> tuple[Plan, State]:
    """Return a plan and its state with each `TransitionStep` replaced by its new step.

    Tensors after those of the steps, such as a delay line around a branch, stay.
    """

    def of_step(step: Step, state: State, shape: tuple[int, ...]) -> list[tuple[Step, State]]:
        if isinstance(step, TransitionStep):
            return of_step(step.new, step.split(state)[1], shape)
        if isinstance(step, _PlanStep):
            return step.plan.states(state, shape, dtype, device)
        if isinstance(step, LateStep):
            inner = of_step(step.inner, state[:-1], shape)
            if len(inner) == 1 and inner[0][0] is step.inner:
                return [(step, state)]
            if len(inner) == 1:
                return [(LateStep(inner[0][0], step.ratio), (*inner[0][1], state[-1]))]
            return [_late_again(*each) for each in inner]
        if isinstance(step, ParallelStep):
            branches = zip(step.plans, _split(step, state, shape, dtype, device), strict=True)
            both = [settled(branch, own, shape, dtype, device) for branch, own in branches]
            return [(ParallelStep([branch for branch, _ in both]), tuple(value for _, own in both for value in own))]
        return [(step, state)]

    steps: list[Step] = []
    found: list[Tensor] = []
    taken = 0
    for step, inner in plan.states(state, shape, dtype, device):
        for new, own in of_step(step, inner, shape):
            steps.append(new)
            found += own
        taken, shape = taken + len(inner), step.leading(shape)
    return replace(plan, steps=tuple(steps)), (*found, *state[taken:])


def _late_again(step: Step, state: State) -> tuple[Step, State]:
    """Return a step with latency as a `LateStep` that is past its start, any other step as it is."""
    if not step.latency:
        return step, state
    return LateStep(step, (1, 1)), (*state, torch.full((2,), step.latency))


def equal(a: Step, b: Step) -> bool:
    """Return whether two steps surely do the same."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, LTIStep) and isinstance(b, LTIStep):
        return a.system.equals(b.system)
    if isinstance(a, CausalStep) and isinstance(b, CausalStep):
        return a.rate == b.rate and _same(a.module, b.module)
    if isinstance(a, FeatureStep) and isinstance(b, FeatureStep):
        return a.rate == b.rate and _same(a.module, b.module)
    if isinstance(a, LateStep) and isinstance(b, LateStep):
        return a.ratio == b.ratio and equal(a.inner, b.inner)
    if isinstance(a, ParallelStep) and isinstance(b, ParallelStep):
        plans = zip(a.plans, b.plans, strict=False)
        return _alike(a, b) and all(all(map(equal, p.steps, q.steps)) for p, q in plans)
    return isinstance(a, ModuleStep) and isinstance(b, ModuleStep) and a.module is b.module


def _same(a: Any, b: Any) -> bool:
    """Return whether two modules, or values that they hold, are surely alike."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and a.device == b.device and torch.equal(a, b)
    if isinstance(a, nn.Module):
        return _same(_values(a), _values(b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(value, b[name]) for name, value in a.items())
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, (bool, int, float, complex, str, bytes, torch.device, torch.dtype)) and a == b


def _values(module: nn.Module) -> dict[str, Any]:
    own = {name: value for name, value in vars(module).items() if name not in _BOOKKEEPING}
    return {**own, **module._parameters, **module._buffers, **module._modules}


_BOOKKEEPING = frozenset(vars(nn.Module())) | {"_stamp"}


def _alike(a: ParallelStep, b: ParallelStep) -> bool:
    """Return whether the branches of two sums correspond, step by step."""
    return len(a.plans) == len(b.plans) and all(
        len(p.steps) == len(q.steps) and p.latency == q.latency for p, q in zip(a.plans, b.plans, strict=True)
    )


def _corresponds(a: Step, b: Step) -> bool:
    """Return whether two steps differ in parameters only."""
    a, b = (step.inner if isinstance(step, LateStep) else step for step in (a, b))
    if isinstance(a, CausalStep) and isinstance(b, CausalStep):
        return type(a.module) is type(b.module)
    if isinstance(a, ModuleStep) and isinstance(b, ModuleStep):
        return a.module is b.module
    return type(a) is type(b) and not isinstance(a, ModuleStep)


def _pairs(
    old: Plan, state: State, new: Plan, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> list[tuple[Step, State, Step]]:
    """Return old steps with their states, each with the new step that replaces it.

    Steps correspond one by one from both ends of the plans. What lies between is replaced as a whole, together with the
    linear steps beside it that differ: an effect that has become linear is part of one, and must not be left out before
    that one is output.
    """
    a, b = old.states(state, shape, dtype, device), new.steps
    fewest = min(len(a), len(b))
    first = last = 0
    while first < fewest and _corresponds(a[first][0], b[first]):
        first += 1
    while last < fewest - first and _corresponds(a[-1 - last][0], b[-1 - last]):
        last += 1
    if first + last < max(len(a), len(b)):  # what lies between may have become part of a linear step, or left one
        while first and _has_other_parts(a[first - 1][0], b[first - 1]):
            first -= 1
        while last and _has_other_parts(a[-last][0], b[-last]):
            last -= 1
    from_a, from_b = len(a) - last, len(b) - last
    found = [(*step, other) for step, other in zip(a[:first], b[:first], strict=True)]
    if first < max(from_a, from_b):
        gone, come = a[first:from_a], b[first:from_b]
        inner = [value for step, own in gone for value in (own[:-1] if isinstance(step, LateStep) else own)]
        row: Step = _PlanStep.of(come, new)
        if row.latency:
            row = LateStep(row, (1, 1))
        found.append((_PlanStep.of([step for step, _ in gone], old), tuple(inner), row))
    return [*found, *((*step, other) for step, other in zip(a[from_a:], b[from_b:], strict=True))]


def _has_other_parts(a: Step, b: Step) -> bool:
    """Return whether two steps are linear ones that may be made of other modules."""
    return isinstance(a, LTIStep) and isinstance(b, LTIStep) and not equal(a, b)


def _split(
    step: ParallelStep, state: State, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> list[State]:
    """Return the state of each branch of a sum, with the delay line after it where there is one."""
    found = []
    for plan in step.plans:
        size = plan.state_size(shape, dtype, device) + (plan.latency < step.latency)
        found.append(state[:size])
        state = state[size:]
    return found


def _makes_features(step: Step) -> bool:
    """Return whether a step makes features of samples, or takes them."""
    return any(isinstance(each, FeatureStep) for each in (step.plan.steps if isinstance(step, _PlanStep) else (step,)))


def _keeps_rate(step: Step, rate: float | None) -> bool:
    """Return whether a step keeps the sample rate throughout."""
    return all(each.output_rate(rate) == rate for each in (step.plan.steps if isinstance(step, _PlanStep) else (step,)))


def _handover(a: Step, of_a: State, b: Step, of_b: State, shape: tuple[int, ...], rate: float | None) -> Handover:
    """Return the `take_over` of a step, or rest if the other step is of another kind."""
    if _corresponds(a, b) and not isinstance(a, (_PlanStep, ParallelStep)):
        return b.take_over(a, shape, of_a, of_b, rate)
    return Handover((None,) * len(of_b), b.wait_from_rest(shape, rate), rises=True)
