"""Seeing every operator call, forward and backward, without wrapping anything by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from torchwhy.counters.accumulator import Tally
from torchwhy.counters.operators import facts_of

__all__ = ["OperatorMode", "WatchingMode"]


class WatchingMode(TorchDispatchMode):
    """A mode that only looks: compiled code runs compiled, and higher-order operators run as they are."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let compiled code run compiled: without this, `torch.compile` turns itself off under a dispatch mode."""
        return True

    if not hasattr(TorchDispatchMode, "ignore_compile_internals"):

        @classmethod
        def is_infra_mode(cls) -> bool:
            """Say the same to older versions of PyTorch."""
            return True


class OperatorMode(WatchingMode):
    """Tallies operators below autograd while it is active.

    Active in the thread that entered it, and in the threads in which autograd runs that thread's backward pass.
    """

    def __init__(self, tally: Tally) -> None:
        """Count into `tally`."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.tally = tally

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count the operator and run it."""
        kwargs = kwargs or {}
        facts = facts_of(func)
        if facts.silent:
            return func(*args, **kwargs)
        if facts.composite:  # inference_mode hands over whole recipes; unfolded, they count as they do elsewhere
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        self.tally.called(facts)
        result = func(*args, **kwargs)
        self.tally.returned(facts, args, kwargs, result)
        return result
