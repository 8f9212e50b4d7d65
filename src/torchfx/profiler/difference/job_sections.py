"""A difference of jobs as sections: the ranks' times, then the difference of the rank that sets the pace."""

from __future__ import annotations

from torchfx.profiler.difference.jobs import JobDifference
from torchfx.profiler.difference.sections import Section, sections_of
from torchfx.profiler.wording import duration

__all__ = ["job_sections"]

_MOST = 16


def job_sections(found: JobDifference, *, verbose: bool = False) -> list[Section]:
    """Return the report's parts.

    Args:
        found: what to show.
        verbose: list everything.
    """
    head, *others = sections_of(found.difference, verbose=verbose)
    return [head, _ranks(found, verbose), *others]


def _ranks(found: JobDifference, verbose: bool) -> Section:
    shown = found.pairs if verbose else found.pairs[:_MOST]
    rows = tuple(
        (
            str(pair.rank),
            *(_change(pair.per_step_us(part)) for part in ("duration", "compute", "exposed")),
        )
        for pair in shown
    )
    sentences = [f"Rank {found.rank} computes longest on B: the verdict above and all below are of its two recordings."]
    for which, alone in (("A", found.only_a), ("B", found.only_b)):
        if alone:
            sentences.append(f"Only on {which}: rank {', '.join(map(str, alone))}.")
    if len(shown) < len(found.pairs):
        sentences.append(f"{len(found.pairs) - len(shown)} more ranks with -v.")
    header = ("rank", "a step", "computes", "only communicates")
    return Section("Ranks, per step", tuple(sentences), header, rows, (0, 1, 2, 3))


def _change(times: tuple[float, float]) -> str:
    return f"{duration(times[0])} -> {duration(times[1])}"
