"""Seeing every operator call, forward and backward, without wrapping anything by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchwhy.counters.accumulator import Tally
from torchwhy.counters.operators import facts_of

__all__ = ["OperatorMode", "WatchingMode"]


_COMPILER: Final[Any] = getattr(torch._C._dynamo, "eval_frame", None)
_CAN_LEAVE_OUT: Final = hasattr(_COMPILER, "set_code_exec_strategy")


class WatchingMode(TorchDispatchMode):
    """A mode that only looks: compiled code runs compiled, and higher-order operators run as they are.

    The compiler leaves its own code uncompiled: of a compiled function that is run uncompiled in part, it would take
    the frames that operators call, count them among the program's and run them slowly.
    """

    supports_higher_order_operators = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Mark the code, which needs no import of the compiler."""
        super().__init_subclass__(**options)  # type: ignore[no-untyped-call]
        if _CAN_LEAVE_OUT and "__torch_dispatch__" in vars(cls):
            leave_out = _COMPILER._FrameExecStrategy(_COMPILER._FrameAction.SKIP, _COMPILER._FrameAction.SKIP)
            _COMPILER.set_code_exec_strategy(cls.__torch_dispatch__.__code__, leave_out)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Do without PyTorch's wrapper for the same, which imports the compiler at the first operator."""
        return not _CAN_LEAVE_OUT

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
