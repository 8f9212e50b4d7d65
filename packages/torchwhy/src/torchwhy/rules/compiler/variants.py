"""More compiled graphs than the program has functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compiler.logged import failed_guard, remedy
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.compiled import Compiled, compiled_of
from torchwhy.trace.model.trace import Trace

__all__ = ["hash_churn"]

LIMIT = 8
"""torch._dynamo.config.recompile_limit: variants of one function, then it runs uncompiled."""


@rule(
    "E8",
    "hash-churn",
    source="K/M of regions and the hashes of called graphs; PyTorch's recompile_limit is 8",
    frees="nothing",
)
def hash_churn(trace: Trace, *, variants: int = 4, steps: int = 3) -> Iterator[Finding]:
    """One function has many compiled variants.

    Sees: regions K/M with four or more different M for one K; in traces without these numbers, graphs whose hash
    first appears after the first step, in three or more steps.

    Costs: a lookup tries one variant after the other, each variant was compiled, and past the limit of eight PyTorch
    runs the function uncompiled.

    Fix: as for recompiles: mark varying sizes as dynamic, pad to fewer sizes, keep varying Python numbers out. The
    same hash in two runs means that Inductor's cache was used.

    Known problems: variants made before the recording began are counted by their number only.
    """
    compiled = trace.derived(compiled_of)
    for frame in np.unique(compiled.frame[compiled.frame >= 0]).tolist():
        mine = compiled.frame == frame
        found = np.unique(compiled.version[mine])
        if len(found) < variants:
            continue
        reached = int(found.max()) + 1
        left = f"{LIMIT - reached} more until" if reached < LIMIT else "at or beyond"
        again = [f"{frame}/{version}" for version in range(1, reached)]
        guard = failed_guard(trace, again)
        yield Finding(
            title=f"One compiled function runs in {len(found)} variants ({frame}/{found.min()}-{found.max()})",
            severity="low",
            confidence="high",
            window=trace.window,
            evidence=evidence(trace, compiled.regions[mine]),
            cause=f"It was compiled {reached} times, for inputs that differ; {left} PyTorch's limit of {LIMIT}."
            + (f" {guard}" if guard else ""),
            fix=remedy(trace, again),
            linked=True,
        )
    late = [] if (compiled.frame >= 0).any() else _late(trace, compiled)
    if len(late) >= steps:
        yield Finding(
            title=f"New compiled graphs appear in {len(late)} steps after the first",
            severity="low",
            confidence="medium",
            window=trace.window,
            evidence=evidence(trace, late),
            cause="The hash of a graph names its code: each of these was made for inputs not met before.",
            fix="TORCH_LOGS=recompiles names what differs; mark varying sizes as dynamic or pad to few sizes.",
        )


def _late(trace: Trace, compiled: Compiled) -> list[int]:
    """The first call of each graph not called in the first step, one per step."""
    seen: set[int] = set()
    found: dict[int, int] = {}
    steps = trace.step_of(compiled.graphs).tolist()
    for row, step in zip(compiled.graphs.tolist(), steps, strict=True):
        name = int(trace.events.name[row])
        if name not in seen and step > 0:
            found.setdefault(step, row)
        seen.add(name)
    return list(found.values())
