"""The finding on operators of whose work a part isn't needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.trace.derived.forward_pass import needless_work
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["needless"]


def needless(
    trace: Trace,
    parts: Mapping[int, float],
    share: float,
    title: str,
    *,
    cause: str,
    fix: str,
    confidence: str = "medium",
) -> Iterator[Finding]:
    """Yield the finding, if these operators take a share of the window or more with their backward pass.

    Args:
        trace: where the operators are from.
        parts: which part of each row's work isn't needed, from 0 to 1.
        share: of the window.
        title: without the share.
        cause, fix, confidence: see `Finding`.
    """
    window = trace.derived(steady_window)
    when, needless_us = needless_work(trace, dict(parts))
    part = window.share(when)
    if parts and part >= share:
        yield Finding(
            title=f"{title}: {percent(part)} of the time",
            confidence=confidence,
            time_us=needless_us,
            stretches=when,
            window=window,
            evidence=evidence(trace, np.array(sorted(parts), np.int32)),
            cause=cause,
            fix=fix,
        )
