"""Rounds of an inference server by phase and batch size: `trace.phases()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torchwhy.trace.derived.server_steps import RoundGroup, server_rounds
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["phases"]

COLUMNS: Final = (
    "phase",
    "requests",
    "steps",
    "tokens",
    "time_us",
    "median_us",
    "p90_us",
    "device_us",
    "us_per_token",
    "tokens_per_s",
)


def phases(trace: Trace) -> Table:
    """The rounds of an inference server by phase and batch size, the most time first; no rows for other programs.

    Returns:
        `phase`: "prefill", "decode", "mixed" or another mode of the server; `requests` in the batch of each round and
        `tokens` of all rounds, of prompts and answers: None where the server's labels do not say; `steps`: how many
        rounds; `time_us` of all, `median_us` and `p90_us` of one, from its beginning to the next round that generates,
        or to the end of its work; `device_us`: how long the device worked for one, the median; `us_per_token` and
        `tokens_per_s`: time by tokens and the inverse.
    """
    return Table.of([_row(group) for group in trace.derived(server_rounds)], COLUMNS)


def _row(group: RoundGroup) -> dict[str, Any]:
    time_us = int(group.times.sum()) / 1000
    per_token = time_us / group.tokens if group.tokens and time_us else None
    return {
        "phase": group.phase,
        "requests": group.requests,
        "steps": len(group.times),
        "tokens": group.tokens,
        "time_us": time_us,
        "median_us": float(np.median(group.times)) / 1000,
        "p90_us": float(np.quantile(group.times, 0.9)) / 1000,
        "device_us": float(np.median(group.device)) / 1000,
        "us_per_token": per_token,
        "tokens_per_s": 1e6 / per_token if per_token else None,
    }
