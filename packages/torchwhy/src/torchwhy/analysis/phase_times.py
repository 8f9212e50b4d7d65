"""Times of an inference server: its rounds by phase and batch size."""

from __future__ import annotations

import msgspec

from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.phases import phases

__all__ = ["PhaseTimes", "phase_times"]


class PhaseTimes(msgspec.Struct, frozen=True):
    """The rounds of one phase and batch size of an inference server; the columns of `trace.phases()`.

    Attributes:
        phase: "prefill", "decode", "mixed", or another mode of the server.
        requests: in the batch of each round; None where the server's labels do not say.
        steps: how many rounds.
        tokens: of prompts and answers, of all rounds; None where the server's labels do not say.
        time_us: of all rounds; median_us, p90_us: of one.
        device_us: how long the device worked for a round, the median.
        us_per_token, tokens_per_s: time by tokens, and the inverse.
    """

    phase: str
    requests: int | None
    steps: int
    tokens: int | None
    time_us: float
    median_us: float
    p90_us: float
    device_us: float
    us_per_token: float | None
    tokens_per_s: float | None


def phase_times(trace: Trace) -> tuple[PhaseTimes, ...]:
    """Return the rounds by phase and batch size, the most time first; () for what is no inference server."""
    return tuple(PhaseTimes(**row) for row in phases(trace))
