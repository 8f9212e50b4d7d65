"""Streams: process a signal block by block."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from torchfx._ops.again import Again
from torchfx._ops.checks import not_float
from torchfx.checks import number_text, whole_number
from torchfx.checks import sample_rate as checked_rate
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError
from torchfx.other_names import checks_names
from torchfx.plan import FeatureStep, Plan, State, changes, kind_of, lapses_by_changes, plan_of, runs_children
from torchfx.plan.transition import Transition, settled, transition
from torchfx.realtime.runner import Runner
from torchfx.tensors import lacks_float64, through_cpu

__all__ = ["GLIDE_MS", "Stream"]

GLIDE_MS = 10.0
"""How long a step takes to cross from the result of old parameters to that of new ones."""


class Stream:
    """Process a signal in blocks. Any block size gives the same result as the whole signal.

    Parameters of the processor may be assigned between blocks. Changes do not click: each changed step crossfades to
    its new result within 10 ms. After a small change a filter keeps its state. After a large change it starts from
    rest, and the crossfade begins once the start-up transient has decayed: after a few ms for cutoffs above 200 Hz,
    after at most half a second for lower cutoffs, and after the length of the response for new FIR taps. Assignments
    during a change take effect afterwards.

    Gradients are not recorded; `Processor.step` is differentiable.

    Args:
        processor: a filter, an effect or a chain. A module that is not a `torchfx.Processor` must be pointwise
            (`nn.Tanh`) or wrapped in `torchfx.Memoryless` or `torchfx.WithContext`.
        fs: sample rate, Hz.
        channels: number of channels, >= 1.

    Raises:
        StreamError: a part of the processor needs the whole signal; the message names it and the reason.
        ArgumentError: the rate or the number of channels is out of range, or a parameter is invalid at this rate.

    Examples:
        >>> import torch, torchfx as fx
        >>> chain = fx.filter.HiButterworth(80) | fx.effect.Gain(0.5)
        >>> stream = fx.realtime.Stream(chain, fs=48_000, channels=2)
        >>> x = torch.randn(2, 1000)
        >>> y = torch.cat([stream.process(x[:, :300]), stream.process(x[:, 300:])], dim=-1)
        >>> bool((y - (fx.Wave(x, 48_000) | chain).ys).abs().max() < 1e-6)
        True
    """

    @checks_names
    def __init__(self, processor: nn.Module, fs: float | str, channels: int) -> None:
        """Build the plan; the first block determines type and device."""
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
        self._last: tuple[tuple[int, ...], torch.dtype, torch.device] | None = None  # the same, with the block's time
        self._runner: Runner | None = None
        self._transition: Transition | None = None
        self._start: Sequence[Tensor] | None = None
        # What the next block goes straight to, if it is like the last one and no attribute was assigned since.
        self._again: Again | None = None
        self._number = changes.number

    def __repr__(self) -> str:
        """Return the processor, the rate, the number of channels and the latency."""
        channels = f"{self.channels} channel" + ("" if self.channels == 1 else "s")
        rate, late = number_text(self.fs), self.latency_samples
        return f"Stream({self.processor!r}, {rate} Hz, {channels}, latency {late} samples)"

    @property
    def latency_samples(self) -> int:
        """Latency of the output in samples."""
        return self._plan.latency

    def process(self, block: Tensor) -> Tensor:
        """Process the next block.

        Args:
            block: float32 or float64, (channels, time), or (time,) for one channel; time may be 0. Leading dimensions
                are independent signals. All blocks must have the same type, device and dimensions, except time. If the
                first processor takes features, the shape is (channels, bins, frames), complex if it takes complex
                features.

        Returns:
            As many samples, delayed by `latency_samples`; `flush` returns the last samples. If the processor changes
            the sample rate, all samples that are complete, without a delay.
        """
        again = self._again
        if again is not None and changes.number == self._number:
            y = again(block)
            if y is not None:
                return y
        number = changes.number  # before the plan is looked up
        runner, is_tensor = self._runner, isinstance(block, Tensor)
        if runner is None or not is_tensor or (block.shape, block.dtype, block.device) != self._last:
            if is_tensor and lacks_float64(block):
                return through_cpu(self.process, block)
            runner = self._begin(block)
        if self._transition is None or self._transition.is_done:
            plan = plan_of(self._watched, self.fs)
            if plan is not self._followed:
                runner = self._follow(plan)
            elif self._transition is not None:
                runner = self._settle()
        y = runner.process(block)
        if self._transition is None and block.is_cpu and lapses_by_changes(self._watched):
            self._again, self._number = runner.again(block), number
        return self._plan.filled(y, block.shape[-1]) if self._plan.latency else y

    def continued(self, block: Tensor) -> Tensor:
        """Process a block, ignoring parameters assigned since the last block."""
        assert self._runner is not None
        return self._plan.filled(self._runner.process(block), block.shape[-1])

    def check_change(self, plan: Plan) -> None:
        """Raise `StreamError` if the stream cannot change to another plan. Any thread may call this."""
        if self._blocks is not None:
            shape, dtype, device = self._blocks
            state = self._plan.init_state(tuple(shape), dtype, device)
            running = settled(self._plan, state, tuple(shape), dtype, device)
            transition(*running, plan, tuple(shape), dtype, device, GLIDE_MS / 1000)

    def rest(self) -> None:
        """Reset the state, ignoring parameters assigned since the last block."""
        assert self._blocks is not None
        shape, dtype, device = self._blocks
        self._settle()
        self._run(self._plan, self._plan.init_state(tuple(shape), dtype, device))

    def flush(self) -> Tensor:
        """Return the last `latency_samples` samples, and reset the stream."""
        if self._blocks is None:
            return torch.zeros(self.channels, 0)
        shape, dtype, device = self._blocks
        late = self.latency_samples
        assert self._runner is not None
        parts = [torch.zeros(*self._plan.leading(tuple(shape)), 0, dtype=dtype, device=device)]
        tail = self._plan.filled(torch.cat([*parts, *self._runner.flush()], dim=-1), late)
        self.reset()
        return tail

    def reset(self) -> None:
        """Reset the stream to its initial state."""
        self._start = self._transition = None
        self._followed = plan_of(self._watched, self.fs)
        if self._blocks is not None:
            self._run(self._followed.frozen(), None)

    @property
    def state(self) -> State:
        """A copy of the state after the last block, to save or to assign to another stream of the processor."""
        if self._runner is not None and self._blocks is not None:
            shape, dtype, device = self._blocks
            return settled(self._plan, self._runner.state, tuple(shape), dtype, device)[1]
        if self._start is not None:
            return tuple(self._start)
        return self._plan.init_state((self.channels,), torch.float32, torch.device("cpu"))

    @state.setter
    def state(self, state: Sequence[Tensor]) -> None:
        self._start = tuple(state)
        if self._blocks is not None:
            if self._transition is not None:
                self._settle()
            self._run(self._plan, self._start)

    # --- blocks ---------------------------------------------------------------------------------------------

    def _begin(self, block: Tensor) -> Runner:
        """Check a block that is unlike the one before; the first one decides what all are like."""
        if not isinstance(block, Tensor):
            raise ArgumentTypeError(f"block must be a tensor (channels, time), got {type(block).__name__}")
        first = self._plan.steps[0] if self._plan.steps else None
        if isinstance(first, FeatureStep) and first.module.takes == "features":
            if block.is_complex() != first.module.takes_complex:
                needed = "complex" if first.module.takes_complex else "real"
                raise ArgumentTypeError(f"block must be {needed}, got {block.dtype}")
            if block.dim() < 3 or block.shape[-3] != self.channels:
                raise ArgumentError(
                    f"block must have the shape ({self.channels}, bins, frames), got {tuple(block.shape)}"
                )
            like = (block.shape[:-1], block.real.dtype, block.device)
        else:
            channels = block.shape[-2] if block.dim() > 1 else 1
            if block.dim() == 0 or channels != self.channels:
                raise ArgumentError(f"block must have the shape ({self.channels}, time), got {tuple(block.shape)}")
            like = (block.shape[:-1], block.dtype, block.device)
        if like[1] not in {torch.float32, torch.float64}:
            raise not_float("block", block.dtype)
        if self._blocks is not None and like != self._blocks:
            shape, dtype, device = self._blocks
            raise ArgumentError(
                f"block must be like those before, {dtype} of shape {(*shape, 'time')} on {device}, "
                f"got {block.dtype} of shape {tuple(block.shape)} on {block.device}; reset() does not change that"
            )
        self._blocks, self._last = like, (block.shape, block.dtype, block.device)
        if self._runner is not None:
            return self._runner
        return self._run(plan_of(self._watched, self.fs).frozen(), self._start)

    def _run(self, plan: Plan, state: Sequence[Tensor] | None, before: Runner | None = None) -> Runner:
        assert self._blocks is not None
        shape, dtype, device = self._blocks
        self._plan = plan
        if state is not None:
            state = [value.to(device) if value.dtype.is_floating_point else value for value in state]
        self._again = None
        self._runner = Runner(plan.steps, tuple(shape), dtype, device, state, before)
        return self._runner

    # --- parameters that change -----------------------------------------------------------------------------

    def _follow(self, plan: Plan) -> Runner:
        """Begin to cross to new parameters; raise before anything has changed where that is not possible."""
        if plan.refusal:
            raise StreamError(plan.refusal)
        runner = self._settle()
        assert self._blocks is not None
        shape, dtype, device = self._blocks
        found = transition(self._plan, runner.own_state, plan, tuple(shape), dtype, device, GLIDE_MS / 1000)
        self._followed = plan
        if found is None:
            return runner
        for each in found.copies:
            each.run()
        self._transition = found
        return self._run(found.plan, found.state, runner)

    def _settle(self) -> Runner:
        """Drop the old steps of a transition that has ended."""
        runner = self._runner
        assert runner is not None
        assert self._blocks is not None
        if self._transition is None:
            return runner
        self._transition = None
        shape, dtype, device = self._blocks
        plan, state = settled(self._plan, runner.own_state, tuple(shape), dtype, device)
        return self._run(plan, state, runner)
