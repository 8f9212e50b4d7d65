"""Comparisons inside this process, for ratios that the way between processes would blur."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch.utils.benchmark.utils.common import set_torch_threads

import torchwhy

__all__ = ["compare"]

LIMIT_S = 20.0
MORE = 20  # times the requested rounds, until the ratios are known to a percent


def compare(works: Mapping[str, Callable[[], Any]], rounds: int, threads: int) -> dict[str, list[float]]:
    """Time works alternately by `torchwhy.compare`; return seconds per call by name, as many for each.

    Each call finds the caches as the other works have left them. There are `rounds` rounds or more, but none starts
    after 20 s.
    """
    with set_torch_threads(threads):
        found = torchwhy.compare(works, min_runs=rounds, max_runs=MORE * rounds, max_time_s=LIMIT_S)
    return {name: list(found[name].times_s) for name in works}
