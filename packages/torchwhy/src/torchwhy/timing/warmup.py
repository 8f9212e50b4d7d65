"""Call a function until its times have settled."""

from __future__ import annotations

from collections.abc import Callable

from torchwhy.timing.quantiles import quantile

__all__ = ["settle"]

WINDOW = 5  # calls per window; a median of five survives two outliers
STILL_FALLING = 0.97  # a window's median below this share of the one before: not settled
SHORTEST_S = 0.02  # clocks ramp up within a few ms, caches and branch predictors sooner


def settle(call: Callable[[], float], first_s: float, limit_s: float) -> tuple[float, ...]:
    """Call until the median of the last five calls is no longer below that of the five before; return all times.

    Args:
        call: runs the function once and returns how long it took, in s.
        first_s: what the very first call took, in s; it compiles, allocates and loads, and never counts as settled.
        limit_s: stop when the calls after the first took this long together, settled or not; one is always made.

    >>> times = iter([8.0, 4.0, 2.0] + [1.0] * 20)
    >>> len(settle(lambda: next(times), first_s=90.0, limit_s=100.0))
    12
    """
    times = [first_s]
    total_s = 0.0
    while True:
        times.append(call())
        total_s += times[-1]
        if total_s >= limit_s or (total_s >= SHORTEST_S and _settled(times[1:])):
            return tuple(times)


def _settled(times: list[float]) -> bool:
    if len(times) < 2 * WINDOW:
        return False
    return quantile(times[-WINDOW:], 0.5) >= STILL_FALLING * quantile(times[-2 * WINDOW : -WINDOW], 0.5)
