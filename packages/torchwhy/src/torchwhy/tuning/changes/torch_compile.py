"""Compiled modules."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from torchwhy.tuning.change import Change, changes
from torchwhy.tuning.records import Facts

__all__ = ["torch_compile"]


@changes(
    "overhead-bound", "elementwise-chain", "dispatch-flood", "compile-missing", "native-dispatch-count", "small-steps",
    "view-dispatch", "gelu-by-hand", "norm-by-hand",
)  # fmt: skip
def torch_compile(facts: Facts) -> Iterator[Change]:
    """Modules are compiled."""
    if facts.modules and facts.steps and not facts.compiled:
        names = " and ".join(facts.modules)
        yield Change("torch.compile", (f"model.compile()  # once, before the loop; model: {names}",), apply=_compile)


def _compile(observer: Any) -> None:
    def act(module: Any) -> None:
        compiled = observer.compile(module._call_impl)  # as `module.compile()` does

        @functools.wraps(compiled)
        def call(*args: Any, **named: Any) -> Any:
            result = compiled(*args, **named)
            observer.keep_output(module, result)
            return result

        module._compiled_call_impl = call

    observer.after_first_step.append(act)
