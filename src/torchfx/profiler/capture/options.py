"""What is recorded besides names and times, and how `torch.profiler` is asked for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """What to record.

    Attributes:
        shapes: sizes of the operators' inputs; cheap.
        memory: every allocation and release.
        stacks: the Python calls that lead to each operator; expensive, times on the CPU grow.
        flops: estimated floating point operations of matrix products and convolutions.
        modules: the module hierarchy, where TorchScript knows it.
        cuda: record the GPU; None records it where there is one.
        sync_events: record when the CPU waits for the GPU, and streams for each other.
        tensorboard: also write what TensorBoard's profiler plugin reads.
    """

    shapes: bool = True
    memory: bool = False
    stacks: bool = False
    flops: bool = False
    modules: bool = False
    cuda: bool | None = None
    sync_events: bool = True
    tensorboard: bool = False

    def light(self) -> Options:
        """The same without what would be too much for a whole run."""
        return replace(self, memory=False, stacks=False, modules=False)

    def for_torch(self, cuda: bool) -> dict[str, Any]:
        """Arguments for `torch.profiler.profile`."""
        from torch._C._profiler import _ExperimentalConfig
        from torch.profiler import ProfilerActivity

        # Without verbose, events carry no stacks even where stacks were recorded.
        config = _ExperimentalConfig(verbose=self.stacks, enable_cuda_sync_events=cuda and self.sync_events)
        return {
            "activities": [ProfilerActivity.CPU, ProfilerActivity.CUDA] if cuda else [ProfilerActivity.CPU],
            "record_shapes": self.shapes,
            "profile_memory": self.memory,
            "with_stack": self.stacks,
            "with_flops": self.flops,
            "with_modules": self.modules,
            "experimental_config": config,
        }
