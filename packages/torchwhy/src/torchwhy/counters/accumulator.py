"""Numbers that grow while a program runs; frozen into `Counts` at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from torchwhy.counters.operators import Facts, copy_of, waits
from torchwhy.counters.program_line import Line, user_line

__all__ = ["Tally"]


@dataclass
class Tally:
    """The counts up to now."""

    operators: Counter[str] = field(default_factory=Counter)
    native: Counter[str] = field(default_factory=Counter)
    syncs: Counter[tuple[str, Line]] = field(default_factory=Counter)
    lines: Counter[tuple[str, Line]] = field(default_factory=Counter)  # of operators, and of kinds of copies
    copies: Counter[str] = field(default_factory=Counter)
    copied_bytes: Counter[str] = field(default_factory=Counter)
    flops: Counter[str] = field(default_factory=Counter)
    allocations: int = 0
    allocated_bytes: int = 0

    def called(self, facts: Facts) -> None:
        """Count a call before it runs, so that one that raises is counted too."""
        self.operators[facts.name] += 1
        self.lines[facts.name, user_line()] += 1
        if facts.native:
            self.native[facts.name] += 1

    def returned(self, facts: Facts, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Count what a call has done, from its arguments and its result."""
        if facts.makes_tensors:
            self._allocated(result)
        if facts.flops is not None:
            with suppress(AssertionError, TypeError, ValueError, IndexError):  # arguments that a formula doesn't expect
                self.flops[facts.name] += facts.flops(*args, **kwargs, out_val=result)
        if facts.moves:
            self._moved(facts.name, args, kwargs, result)

    def waited(self, operator: str) -> None:
        """Count a wait of the host, with the line that caused it."""
        self.syncs[operator, user_line()] += 1

    def _moved(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        if waits(name, args, kwargs, result):
            self.waited(name)
        copy = copy_of(name, args, result)
        if copy is not None:
            self.copies[copy[0]] += 1
            self.lines[copy[0], user_line()] += 1
            self.copied_bytes[copy[0]] += copy[1]

    def _allocated(self, result: Any) -> None:
        if isinstance(result, (tuple, list)):
            for part in result:
                self._allocated(part)
        elif isinstance(result, torch.Tensor) and result.layout is torch.strided and result.device.type != "meta":
            size = result.untyped_storage().nbytes()
            self.allocations += size > 0
            self.allocated_bytes += size
