"""Blocks on a GPU as replays of one captured CUDA graph: the host issues a single call per block."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from torchfx.checks import sample_rate as checked_rate
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError
from torchfx.plan import plan_of
from torchfx.rate import ambient_rate
from torchfx.realtime.runner import Runner
from torchfx.tensors import check_signal

__all__ = ["CudaGraphRunner"]

DEVICE = "cuda"
WARM_UP = 3
"""Runs before the capture: kernels are compiled and libraries make their workspaces in the first ones."""


class CudaGraphRunner:
    """Run a processor on blocks of a fixed shape, captured once as a CUDA graph and replayed for every block.

    The blocks give the same result as the whole signal; the graph holds the state. The parameters are fixed at
    construction. No gradient is recorded. For CPU tensors each block runs directly, without a graph, with the same
    results and errors, so programs can be developed without a GPU.

    Args:
        module: a filter, an effect or a chain, as for `Stream`. No step may synchronize with the device; `torchfx info`
            shows which operators have a kernel there.
        example: a block (..., time) on a CUDA device or the CPU; all blocks must have its shape, type and device.
        fs: sample rate, Hz; None uses the filters' rate.

    Raises:
        ArgumentError: the example is on another kind of device or has no samples, or the sample rate is unknown.
        StreamError: a part of the processor needs the whole signal, has latency, or cannot be captured.

    Examples:
        >>> import torch, torchfx as fx
        >>> chain = fx.filter.HiButterworth(80, fs=48_000) | fx.effect.Gain(0.5)
        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
        >>> runner = fx.realtime.CudaGraphRunner(chain, torch.zeros(2, 512, device=device))
        >>> runner.run(torch.randn(2, 512, device=device)).shape
        torch.Size([2, 512])
    """

    def __init__(self, module: nn.Module, example: Tensor, fs: float | None = None) -> None:
        """Warm up, capture, and reset the state."""
        if not isinstance(module, nn.Module):
            raise ArgumentTypeError(f"module must be an nn.Module, got {module!r} ({type(module).__name__})")
        check_signal(example)
        if example.device.type not in {DEVICE, "cpu"}:
            raise ArgumentError(
                f"example must lie on a CUDA device or the CPU, got {example.device}; torchfx.realtime.Stream runs on "
                f"any device"
            )
        plan = plan_of(FilterChain(module), ambient_rate() if fs is None else checked_rate(fs)).frozen()
        if plan.refusal:
            raise StreamError(plan.refusal)
        if plan.latency:
            raise StreamError(
                f"the processor lags by {plan.latency} samples, which only torchfx.realtime.Stream handles"
            )
        self._block = example.detach().clone(memory_format=torch.contiguous_format)
        self._steps = plan.steps
        self._runner = self._at_rest()
        if example.device.type != DEVICE:
            return
        self._rest = self._runner.state
        with torch.no_grad():
            try:
                self._result, self._replay = _captured(lambda: self._runner.process(self._block), example.device)
            except RuntimeError as error:
                raise StreamError(f"the processor can't be captured as a CUDA graph: {error}") from error
        self.reset_state()

    def run(self, chunk: Tensor) -> Tensor:
        """Process the next block.

        Args:
            chunk: a block with the example's shape, type and device.

        Returns:
            A new tensor, on the current stream.
        """
        like = self._block
        if (chunk.shape, chunk.dtype, chunk.device) != (like.shape, like.dtype, like.device):
            raise ArgumentError(
                f"chunk must be {like.dtype} of shape {tuple(like.shape)} on {like.device}, as the example was, got "
                f"{chunk.dtype} of shape {tuple(chunk.shape)} on {chunk.device}"
            )
        with torch.no_grad():
            if like.device.type != DEVICE:
                return self._runner.process(chunk.detach())
            like.copy_(chunk)
            self._replay()
            return self._result.clone()

    def reset_state(self) -> None:
        """Reset the state."""
        if self._block.device.type != DEVICE:
            self._runner = self._at_rest()
        else:
            self._runner.restore(self._rest)

    def _at_rest(self) -> Runner:
        like = self._block
        return Runner(self._steps, tuple(like.shape[:-1]), like.dtype, like.device)


def _captured(step: Callable[[], Tensor], device: torch.device) -> tuple[Tensor, Callable[[], None]]:
    """Warm up on a separate stream, as capturing requires; return the step's result, and what replays it."""
    with torch.cuda.device(device):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = step()
    return result, graph.replay
