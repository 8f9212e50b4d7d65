"""Recorded data besides names and times, and the arguments of `torch.profiler` that request them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from torchwhy.errors import ArgumentError, ArgumentTypeError

__all__ = ["ACTIVITIES", "PYTORCHS_NAMES", "Options", "activities_of", "can_record_all_threads"]

ACTIVITIES: Final = ("cpu", "cuda", "xpu")


def activities_of(values: Iterable[Any]) -> tuple[str, ...]:
    """Return the activities to record, names of `ACTIVITIES`, from names or `torch.profiler.ProfilerActivity`.

    Raises:
        ArgumentError: the list is empty, or has an unknown name.
        ArgumentTypeError: the argument is not a list.

    >>> activities_of(["CUDA", "cpu"])
    ('cpu', 'cuda')
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ArgumentTypeError(f"activities must be a list of {', '.join(ACTIVITIES)}, got {values!r}")
    given = list(values)
    names = {(value if isinstance(value, str) else str(getattr(value, "name", value))).lower() for value in given}
    if not names or not names <= {*ACTIVITIES}:
        raise ArgumentError(f"activities must be some of {', '.join(ACTIVITIES)}, got {given!r}")
    return tuple(name for name in ACTIVITIES if name in names)


PYTORCHS_NAMES: Final = {
    "record_shapes": "shapes",
    "profile_memory": "memory",
    "with_stack": "stacks",
    "with_flops": "flops",
    "with_modules": "modules",
}
"""How `torch.profiler.profile` calls these arguments."""


ALL_THREADS: Final = "profile_all_threads"
"""The setting of PyTorch's that records all threads."""


def can_record_all_threads() -> bool:
    """Whether this PyTorch can; 2.6 can't."""
    from torch._C._profiler import _ExperimentalConfig

    return ALL_THREADS in (_ExperimentalConfig.__init__.__doc__ or "")


@dataclass(frozen=True)
class Options:
    """The options of a recording.

    Attributes:
        shapes: sizes of the operators' inputs; cheap.
        memory: every allocation and release.
        stacks: the Python calls that lead to each operator; None records them if a step
            grows by less than 5 %, because it makes few calls.
        flops: estimated floating point operations of matrix products and convolutions.
        modules: the module hierarchy, where TorchScript knows it.
        cuda: record the GPU; None records it where there is one.
        sync_events: record when the CPU waits for the GPU, and streams for each other.
        tensorboard: also write what TensorBoard's profiler plugin reads.
        activities: what is recorded, of `ACTIVITIES`, instead of what `cuda` says; () leaves it to that.
        power: also read clock, power and temperature of NVIDIA's GPUs every 20 ms.
        all_threads: record the operators of all threads, not only of the one that starts recording.
        contents: in steps after the windows, examine the contents of tensors; see `contents`.
    """

    shapes: bool = True
    memory: bool = False
    stacks: bool | None = None
    flops: bool = False
    modules: bool = False
    cuda: bool | None = None
    sync_events: bool = True
    tensorboard: bool = False
    activities: tuple[str, ...] = ()
    all_threads: bool = False
    power: bool = False
    contents: bool = False

    def __post_init__(self) -> None:
        """Check what contradicts itself.

        Raises:
            ArgumentError: both `activities` and `cuda` say what is recorded.
        """
        if self.activities and self.cuda is not None:
            raise ArgumentError(f"activities say whether the GPU is recorded: cuda must be None then, got {self.cuda}")

    @property
    def device_asked(self) -> bool:
        """Whether a GPU was requested by name."""
        return bool(self.cuda) or bool({*self.activities} - {"cpu"})

    def wants(self, activity: str) -> bool:
        """Whether to record an activity where it is possible."""
        if self.activities:
            return activity in self.activities
        return activity == "cpu" or self.cuda is not False

    def light(self) -> Options:
        """The same without what would be too much for a whole run."""
        return replace(self, memory=False, stacks=False, modules=False)

    def for_torch(self, activities: tuple[str, ...]) -> dict[str, Any]:
        """Arguments for `torch.profiler.profile`, which records these activities."""
        from torch._C._profiler import _ExperimentalConfig
        from torch.profiler import ProfilerActivity

        # Without verbose, events carry no stacks even where stacks were recorded.
        wanted: dict[str, Any] = {ALL_THREADS: True} if self.all_threads else {}
        sync = "cuda" in activities and self.sync_events
        config = _ExperimentalConfig(verbose=bool(self.stacks), enable_cuda_sync_events=sync, **wanted)
        return {
            "activities": [getattr(ProfilerActivity, name.upper()) for name in activities],
            # What other threads are calling when recording ends has written only some of its shapes.
            "record_shapes": self.shapes and not self.all_threads,
            "profile_memory": self.memory,
            "with_stack": bool(self.stacks),
            "with_flops": self.flops,
            "with_modules": self.modules,
            "experimental_config": config,
        }
