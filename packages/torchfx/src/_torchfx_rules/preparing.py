"""Rules about the work of an audio loop besides filtering: reading files, and computing coefficients again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from _torchfx_rules.vocabulary import (
    DECODE_AUDIO,
    DESIGN_AGAIN,
    DESIGN_FILTER,
    LEARNED_FILTER,
    READ_AUDIO_FRAME,
)
from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.kinds import Meaning
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["audio_load", "coefficients_recomputed"]


@rule(
    "G5",
    "coefficients-recomputed-per-call",
    source="filters designed in every step with the coefficients of an earlier design, as torchfx records them",
    frees="host",
)
def coefficients_recomputed(trace: Trace, *, share: float = 0.01, steps: int = 3) -> Iterator[Finding]:
    """Filters are designed again in every step.

    Sees: in three or more steps, and all but the first, designs of torchfx's filters, also in compiled code, each with
    the same coefficients as an earlier design. Silent where coefficients are learned, and where any design of a step
    has new ones, as with random cutoffs.

    Costs: a design takes 0.1 to 1 millisecond, often more than the filtering.

    Fix: make filters and chains once, before the loop, and call them in it.

    Known problems: designs of SciPy outside of torchfx's filters are not recognized, since a trace does not show
    whether their parameters change. Of more than 4,096 different filters the repeated designs may be missed.
    """
    events = trace.events
    if events.any_of(LEARNED_FILTER):
        return
    rows = _on_main(trace, DESIGN_FILTER)
    step, is_new = trace.step_of(rows), np.ones(len(rows), np.bool_)
    again = events.ts[_on_main(trace, DESIGN_AGAIN)]
    around = np.searchsorted(events.ts[rows], again, "right") - 1
    again, around = again[around >= 0], around[around >= 0]
    is_new[around[again < events.ts[rows[around]] + events.dur[rows[around]]]] = False  # other operators design, too
    where = np.setdiff1d(step[step >= 0], step[is_new])
    if len(where) < max(steps, len(trace.steps_found) - 1):
        return
    rows = rows[np.isin(step, where)]
    taken = trace.when(rows)
    spent = at_stake(trace, taken)
    if not spent or trace.window.share(spent) < share:
        return
    yield Finding(
        title=f"Filters are designed again in {len(where)} of {len(trace.steps_found)} steps, "
        f"{percent(trace.window.share(spent))} of the time",
        confidence="high",
        stretches=taken,
        window=trace.window,
        evidence=evidence(trace, rows, times=events.covered(rows, spent)),
        cause="Filters are made inside the loop, so their coefficients are computed each time.",
        fix="Make the chain once before the loop and use it in each step; a filter designs itself once per sampling "
        "rate.",
        linked=True,
    )


@rule(
    "G9",
    "audio-load",
    source="frames and operators that decode audio on the loop's own thread; 5% of the window",
    frees="host",
)
def audio_load(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Audio files are read and decoded on the loop's own thread.

    Sees: frames of torchfx, soundfile, torchaudio, librosa, torchcodec or SciPy that read audio, and operators that
    decode it, on the thread of the steps; with a GPU only while it has no work.

    Costs: nothing is computed while a file is decoded: 1 to 50 milliseconds per minute of audio, more for MP3.

    Fix: read ahead in worker processes (a DataLoader with num_workers), or decode once and keep arrays.

    Known problems: readers without a known frame or operator name, such as an in-house library, are not detected.
    """
    rows = _on_main(trace, DECODE_AUDIO, READ_AUDIO_FRAME)
    rows = rows[trace.in_steps(rows)]
    if not len(rows):
        return
    taken = trace.when(rows)
    spent = at_stake(trace, taken)
    if not spent or trace.window.share(spent) < share:
        return
    yield Finding(
        title=f"Reading audio files takes {percent(trace.window.share(spent))} of the time",
        confidence="high",
        stretches=taken,
        window=trace.window,
        evidence=evidence(trace, rows, times=trace.events.covered(rows, spent)),
        cause="Files are decoded between two rounds of the loop, on its own thread.",
        fix="Let worker processes read ahead (torch.utils.data.DataLoader, num_workers=4), or decode once and cache.",
        linked=True,
    )


def _on_main(trace: Trace, *meanings: Meaning) -> Int32:
    """Operators and Python frames that mean these, on the thread of the loop; by start."""
    events = trace.events
    rows = np.concatenate([events.of(meaning) for meaning in meanings]).astype(np.int32)
    rows = rows[np.argsort(events.ts[rows], kind="stable")]
    mine: Int32 = rows[events.lane[rows] == trace.main_lane] if trace.main_lane >= 0 else rows
    return mine
