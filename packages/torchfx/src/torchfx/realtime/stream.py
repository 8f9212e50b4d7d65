"""Signals block by block, as they come."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from torchfx.checks import sample_rate as checked_rate
from torchfx.checks import whole_number
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError
from torchfx.plan import Plan, State, kind_of, plan_of, runs_children
from torchfx.realtime.runner import Runner

__all__ = ["Stream", "surely_equal"]

GLIDE_MS = 10.0
"""How long a stream takes to cross from the result of old parameters to that of new ones."""


class Stream:
    """A processor at work on a signal that comes in blocks: any split gives what the whole signal gives.

    Parameters of the processor may be assigned between blocks. The stream follows them without a click: within 10 ms it
    crosses from the old result to the new one (for other taps, once as many samples have passed). The new filter takes
    the old one's state over where the structure is the same, and starts from rest where modules were added or removed.
    What is assigned in the meantime is followed next.

    Gradients are not recorded: `Processor.step` is the differentiable form.

    Args:
        processor: a filter, an effect, a chain; what is no `torchfx.Processor` has to be pointwise (`nn.Tanh`) or
            wrapped in `torchfx.Memoryless` or `torchfx.WithContext`.
        fs: sample rate, Hz.
        channels: of the blocks, >= 1.

    Raises:
        StreamError: a part of the processor needs the whole signal; the message says which and why.
        ArgumentError: a rate or a number of channels out of range, a parameter that does not fit the rate.

    Examples:
        >>> import torch, torchfx as fx
        >>> chain = fx.filter.HiButterworth(80) | fx.effect.Gain(0.5)
        >>> stream = fx.realtime.Stream(chain, fs=48_000, channels=2)
        >>> x = torch.randn(2, 1000)
        >>> y = torch.cat([stream.process(x[:, :300]), stream.process(x[:, 300:])], dim=-1)
        >>> bool((y - (fx.Wave(x, 48_000) | chain).ys).abs().max() < 1e-6)
        True
    """

    def __init__(self, processor: nn.Module, fs: float, channels: int) -> None:
        """Make the plan; the first block decides type and device."""
        if not isinstance(processor, nn.Module):
            raise ArgumentTypeError(f"processor must be an nn.Module, got {processor!r} ({type(processor).__name__})")
        self.fs = checked_rate(fs)
        self.channels = whole_number("channels", channels, 1)
        self.processor = processor
        is_container = runs_children(processor, called=True) or kind_of(processor) == "parallel"
        self._watched = processor if is_container else FilterChain(processor)
        self._plan = self._followed = plan_of(self._watched, self.fs)
        if self._plan.refusal:
            raise StreamError(self._plan.refusal)
        self._blocks: tuple[tuple[int, ...], torch.dtype, torch.device] | None = None
        self._runner: Runner | None = None
        self._fade: _Fade | None = None
        self._spare: tuple[Plan, Runner] | None = None  # what ran before the last change
        self._start: Sequence[Tensor] | None = None

    @property
    def latency_samples(self) -> int:
        """By how many samples the output lags behind the input."""
        return self._plan.latency

    def process(self, block: Tensor) -> Tensor:
        """Process the next block.

        Args:
            block: float32 or float64, (channels, time), or (time,) for one channel; time may be 0. Leading dimensions
                are signals side by side. All blocks have one type and device, and all dimensions but time in common.

        Returns:
            As many samples, `latency_samples` late. The last ones come from `flush`. Where the processor changes the
            sample rate, the samples that are complete: the first one is the result's first.
        """
        runner = self._runner
        if runner is None or (block.shape[:-1], block.dtype, block.device) != self._blocks:
            runner = self._begin(block)
        if self._fade is None:
            plan = plan_of(self._watched, self.fs)
            if plan is not self._followed:
                self._follow(plan)
        if self._fade is not None:
            return self._cross(block)
        return self._plan.filled(runner.process(block), block.shape[-1])

    def flush(self) -> Tensor:
        """Return the last `latency_samples` samples, and begin anew."""
        if self._blocks is None:
            return torch.zeros(self.channels, 0)
        shape, dtype, device = self._blocks
        late = self.latency_samples
        if self._fade is not None:
            tail = self.process(torch.zeros(*shape, late, dtype=dtype, device=device))
        else:
            assert self._runner is not None
            parts = [torch.zeros(*self._plan.leading(tuple(shape)), 0, dtype=dtype, device=device)]
            tail = self._plan.filled(torch.cat([*parts, *self._runner.flush()], dim=-1), late)
        self.reset()
        return tail

    def reset(self) -> None:
        """Begin anew, from rest."""
        self._start = self._fade = None
        self._followed = plan_of(self._watched, self.fs)
        if self._blocks is not None:
            self._run(self._followed.frozen(), None)

    @property
    def state(self) -> State:
        """The state after the last block: copies, to be saved or given to another stream of the same processor."""
        if self._fade is not None:
            return self._fade.new.state
        if self._runner is not None:
            return self._runner.state
        if self._start is not None:
            return tuple(self._start)
        return self._plan.init_state((self.channels,), torch.float32, torch.device("cpu"))

    @state.setter
    def state(self, state: Sequence[Tensor]) -> None:
        self._fade = None
        self._start = tuple(state)
        if self._blocks is not None:
            self._run(self._plan, self._start)

    # --- blocks ---------------------------------------------------------------------------------------------

    def _begin(self, block: Tensor) -> Runner:
        """Check a block that is unlike the one before; the first one decides what all are like."""
        if not isinstance(block, Tensor):
            raise ArgumentTypeError(f"block must be a tensor (channels, time), got {type(block).__name__}")
        if block.dtype not in {torch.float32, torch.float64}:
            raise ArgumentTypeError(f"block must be float32 or float64, got {block.dtype}")
        channels = block.shape[-2] if block.dim() > 1 else 1
        if block.dim() == 0 or channels != self.channels:
            raise ArgumentError(f"block must have the shape ({self.channels}, time), got {tuple(block.shape)}")
        if self._blocks is not None:
            shape, dtype, device = self._blocks
            raise ArgumentError(
                f"block must be like those before, {dtype} of shape {(*shape, 'time')} on {device}, "
                f"got {block.dtype} of shape {tuple(block.shape)} on {block.device}; reset() does not change that"
            )
        self._blocks = (block.shape[:-1], block.dtype, block.device)
        return self._run(plan_of(self._watched, self.fs).frozen(), self._start)

    def _run(self, plan: Plan, state: Sequence[Tensor] | None) -> Runner:
        assert self._blocks is not None
        shape, dtype, device = self._blocks
        self._plan = plan
        if state is not None:
            state = [value.to(device) for value in state]
        self._runner = Runner(plan.steps, tuple(shape), dtype, device, state)
        return self._runner

    # --- parameters that change -----------------------------------------------------------------------------

    def _follow(self, plan: Plan) -> None:
        """Begin to cross to new parameters."""
        if plan.refusal:
            raise StreamError(plan.refusal)
        assert self._runner is not None
        assert self._blocks is not None
        before, old = self._plan, self._runner
        was, is_now = (each.leading(tuple(self._blocks[0])) for each in (before, plan))
        if len(was) != len(is_now) or any(a not in {1, b} for a, b in zip(was, is_now, strict=True)):
            raise StreamError(f"a running stream's output cannot change its shape, from {was} to {is_now}")
        self._followed = plan
        state, waiting = None, sum(step.settling for step in plan.steps)
        same = plan.signature() == before.signature()
        if not same and not (plan.keeps_rate and before.keeps_rate):
            raise StreamError(
                "a stream that changes the sample rate cannot take modules, rates or qualities that changed: reset() "
                "begins anew with them"
            )
        if same:
            if surely_equal(plan, before):
                return
            state, waiting = plan.take_over(before, old.state)
        new = self._spare
        if new is None or state is None or new[0].signature() != plan.signature() or not new[1].assign(plan, state):
            frozen = plan.frozen()
            new = frozen, self._run(frozen, state)
        self._plan, self._runner = new
        self._fade = _Fade((before, old), new, waiting, max(1, round(self.fs * GLIDE_MS / 1000)))

    def _cross(self, block: Tensor) -> Tensor:
        """Process a block on the way from old parameters to new ones."""
        fade = self._fade
        assert fade is not None
        time = block.shape[-1]
        inside = min(time, fade.left)
        y = fade.process(block if inside == time else block[..., :inside])
        if fade.left == 0:
            self._fade, self._spare = None, (fade.plans[0], fade.old)
            if inside < time:
                rest = self._plan.filled(fade.new.process(block[..., inside:]), time - inside)
                y = torch.cat([y, rest], dim=-1)
        return y


class _Fade:
    """The way from one runner's output to another's, along a straight line, once the new one has warmed up."""

    def __init__(self, old: tuple[Plan, Runner], new: tuple[Plan, Runner], waiting: int, length: int) -> None:
        self.plans, (self.old, self.new) = (old[0], new[0]), (old[1], new[1])
        self.waiting, self.length = waiting, length
        self.left = waiting + length

    def process(self, x: Tensor) -> Tensor:
        """Process a block no longer than what is left."""
        time = x.shape[-1]
        begin = 1 - self.left / self.length
        self.left -= time
        end = 1 - self.left / self.length
        old, new = self.plans[0].filled(self.old.process(x), time), self.plans[1].filled(self.new.process(x), time)
        # As many as of the block, or at another rate.
        count = new.shape[-1]
        first = begin + (end - begin) / max(1, count)
        along = torch.linspace(first, end, count, dtype=new.dtype, device=new.device)
        return torch.lerp(old, new, along if begin >= 0 else along.clamp_(min=0))


def surely_equal(a: Plan, b: Plan) -> bool:
    """Return whether two plans of one signature surely do the same."""
    if a is b:
        return True
    systems = [[getattr(step, "system", None) for step in plan.steps] for plan in (a, b)]
    if None in systems[0]:
        return False
    return all(x is not None and y is not None and x.equals(y) for x, y in zip(*systems, strict=True))
