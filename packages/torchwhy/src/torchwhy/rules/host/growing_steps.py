"""Steps that become longer over the run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.run_times import run_times
from torchwhy.trace.derived.steady_state import unrecorded_by_number
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration

__all__ = ["growing_steps"]

PARTS: Final = 10
"""The timed steps are divided into this number of parts, in order. Nine in ten pairs of parts are in order by chance
less than once in 2,000."""

IN_ORDER: Final = 0.9
"""Share of the pairs of parts."""

DOUBLE: Final = 2.0
"""The severity is high if late steps take at least this many times as long as early ones: then a trace of early steps
lacks most of a late step."""


@rule("B48", "growing-steps", source="medians of ten parts of the steps that weren't recorded", frees="nothing")
def growing_steps(trace: Trace, *, ratio: float = 1.5, steps: int = 100) -> Iterator[Finding]:
    """Steps become longer while the program runs.

    Sees: 100 steps or more that `torchwhy profile` timed without recording them, the first 1,000 of the run. Of ten
    parts by their order, nine in ten pairs have the longer median later, and the last takes 1.5 times as long as the
    first.

    Costs: what each step does besides its own work grows with the number of steps, so the run takes a time that grows
    with the square of it. The recorded steps, which are early ones, show little of it.

    Fix: let a step work on what is new: append to the file or list, keep a running sum. Or do the whole once, after the
    loop. Record later steps to see it large: `torchwhy profile --wait N`.

    Known problems: longer batches later on (a curriculum, sorted lengths), a processor that becomes hot, and another
    program that starts meanwhile look the same.
    """
    timed = sorted(trace.derived(unrecorded_by_number).items())
    if len(timed) < steps:
        return
    parts = np.array_split(np.array([us for _, us in timed]), PARTS)
    usual = [float(np.median(part)) for part in parts]
    in_order = np.mean([later > early for early, later in combinations(usual, 2)])
    if in_order < IN_ORDER or usual[-1] < ratio * usual[0]:
        return
    run, last = trace.derived(run_times), timed[-1][0]
    more = run.outside.lines[:1] if run is not None else ()
    where = f" Outside of the recording, {more[0].line} takes a larger part of the time than in it." if more else ""
    yield Finding(
        title=f"Steps become longer: {duration(usual[0])} at first, {duration(usual[-1])} by step {last:,} (medians)",
        severity="high" if usual[-1] >= DOUBLE * usual[0] else "medium",
        confidence="medium",
        window=trace.window,
        evidence=(
            *(
                Evidence(one.line, 1, one.time_us, stack=(one.line,), note="outside of the recording, by samples")
                for one in more
            ),
            Evidence(f"steps up to {timed[len(parts[0]) - 1][0]:,}", len(parts[0]), float(parts[0].sum())),
            Evidence(f"steps up to {last:,}", len(parts[-1]), float(parts[-1].sum())),
        ),
        cause=f"Something that a step does grows with the number of steps.{where}",
        fix="Process only the new data in each step: append to the file or list instead of rewriting all of it, keep "
        f"running sums. To see it clearly: torchwhy profile --wait {last // 2} records later steps.",
    )
