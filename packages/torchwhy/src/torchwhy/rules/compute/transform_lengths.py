"""Fourier transforms of lengths with large prime factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import work_of
from torchwhy.trace.derived.shapes import shapes, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import FOURIER, INVERSE_FOURIER
from torchwhy.trace.meaning.frames import own_frame
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["transform_lengths"]

SLOWER: Final = 10.0
"""A prime length takes at most this many times as long: 3 to 10 with MKL, from 4,000 to 33,000 points."""


@rule("D40", "transform-length", source="MKL's time for prime lengths and the next power of two", frees="device")
def transform_lengths(trace: Trace, *, prime: int = 127, share: float = 0.05) -> Iterator[Finding]:
    """A Fourier transform has a length with a large prime factor.

    Sees: transforms along one axis whose length has a prime factor above 127, in 5% of the window or more. Needs
    recorded shapes; the axis is the last one where its number was not recorded.

    Costs: transforms are fast for lengths made of small factors. A prime length is computed by several transforms of
    another one, and takes 3 to 10 times as long.

    Fix: pad to the next length with small factors (`scipy.fft.next_fast_len`); for convolutions any length from the sum
    of both lengths on will do.

    Known problems: where the spectrum's bins must lie at multiples of rate / length, another length is no choice.
    """
    window, events = trace.derived(steady_window), trace.events
    rows = events.of(FOURIER)
    rows = rows[trace.in_steps(rows) & (events.ts[rows] >= window.start)]
    lengths = {row: _length(trace, row) for row in rows.tolist()}
    slow = {row: length for row, length in lengths.items() if largest_factor(length) > prime}
    chosen = np.array(sorted(slow), np.int32)
    when = work_of(trace, chosen)
    part = window.share(when)
    if not len(chosen) or part < share:
        return
    (length, _), *others = Counter(slow.values()).most_common()
    factor = largest_factor(length)
    seen = evidence(trace, chosen)
    line = own_frame(seen[0].stack)
    also = f" and {len(others)} more lengths" if len(others) > 1 else f" and {others[0][0]:,}" if others else ""
    yield Finding(
        title=f"Fourier transforms of length {length:,}{also} take {percent(part)} of the time",
        confidence="medium",
        time_us=when.total / 1000 * (1 - 1 / SLOWER),
        stretches=when,
        window=window,
        evidence=seen,
        cause=f"{length:,} {'is a prime number' if factor == length else f'has the prime factor {factor:,}'}: such a "
        "length takes 3 to 10 times as long as one with small factors." + (f" It is called in {line}." if line else ""),
        fix=f"Pad to a length with small factors, such as {_next(length):,} (scipy.fft.next_fast_len).",
    )


def _length(trace: Trace, row: int) -> int:
    """How many points a transform has; 0 where that wasn't recorded, or it is along several axes."""
    taken, given = next(iter(shapes(trace, row)), ()), values(trace, row)
    axes = parse_list(given[1]) if len(given) > 1 else [-1]
    if not taken or len(axes) != 1 or not isinstance(axes[0], int):
        return 0
    if trace.events.are(INVERSE_FOURIER, [row])[0]:
        return int(given[3]) if len(given) > 3 and given[3].isdigit() else 0
    axis = axes[0]
    return taken[axis] if -len(taken) <= axis < len(taken) else 0


@lru_cache(maxsize=256)
def largest_factor(number: int) -> int:
    """Return a whole number's largest prime factor; 1 below 2."""
    largest, divisor = 1, 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            number, largest = number // divisor, divisor
        divisor += 1
    return max(largest, number) if number > 1 else largest


def _next(length: int) -> int:
    """The next length without other factors than 2, 3 and 5."""
    while largest_factor(length) > 5:
        length += 1
    return length
