"""Compare traces or jobs: `torchwhy.diff`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, overload

from torchwhy.difference.compare import compare
from torchwhy.difference.difference import Difference
from torchwhy.difference.jobs import JobDifference, between_jobs, pace_setter, paired
from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.loading.job import ALONE, load_job
from torchwhy.loading.trace import load
from torchwhy.present.comparison import comparison
from torchwhy.present.formats import render
from torchwhy.ranks.folder import single_trace
from torchwhy.ranks.job import Job
from torchwhy.rules.catalogue import all_rules
from torchwhy.rules.rule import Rule
from torchwhy.trace.file.remote import path_of
from torchwhy.trace.model.trace import Trace

__all__ = ["ShownDifference", "ShownJobDifference", "diff"]

Thresholds: TypeAlias = Mapping[str, Mapping[str, Any]]
PathLike: TypeAlias = "str | os.PathLike[str]"


class ShownDifference(Difference):
    """A difference of two traces that prints as text and displays as a page in notebooks."""

    def __str__(self) -> str:
        return render(comparison(self)).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render(comparison(self), "html")


class ShownJobDifference(JobDifference):
    """A difference of two jobs that prints as text and displays as a page in notebooks."""

    def __str__(self) -> str:
        return render(comparison(self)).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render(comparison(self), "html")


@overload
def diff(
    a: Trace, b: Trace, *, rules: Iterable[Rule] | None = None, thresholds: Thresholds | None = None
) -> ShownDifference: ...
@overload
def diff(
    a: Job, b: Job, *, rules: Iterable[Rule] | None = None, thresholds: Thresholds | None = None
) -> ShownJobDifference: ...
@overload
def diff(
    a: Trace | Job | PathLike,
    b: Trace | Job | PathLike,
    *,
    rules: Iterable[Rule] | None = None,
    thresholds: Thresholds | None = None,
) -> ShownDifference | ShownJobDifference: ...
def diff(
    a: Trace | Job | PathLike,
    b: Trace | Job | PathLike,
    *,
    rules: Iterable[Rule] | None = None,
    thresholds: Thresholds | None = None,
) -> ShownDifference | ShownJobDifference:
    """Compare recording B with recording A: what takes longer, what was added or removed, which findings are fixed.

        print(profiler.diff("before.json", "after.json"))

    All figures are per step, so recordings with different numbers of steps can be compared. Step times differ only if
    the difference exceeds their noise; with fewer than three steps on a side there is no verdict. Figures of different
    programs are compared, but neither program is called faster. For two jobs the ranks are compared with each other,
    and the rank that computes longest in B is compared in full, because the others wait for it.

    Args:
        a: the recording before: a trace of `load`, a job of `load_job`, or the path of either.
        b: the recording after.
        rules: rules whose findings are compared; None: all.
        thresholds: thresholds of rules, as for `diagnose`.

    Raises:
        ArgumentTypeError: a side has another type.
        ArgumentError: one side is a job and the other a trace, the jobs have no rank in common, or a threshold belongs
            to no rule.
        TraceError: a path cannot be read, or a folder has traces of several programs.
    """
    first, second = _read("a", a, thresholds), _read("b", b, thresholds)
    if isinstance(first, Trace) and isinstance(second, Trace):
        return ShownDifference(**vars(compare(first, second, rules=rules, thresholds=thresholds)))
    if isinstance(first, Trace) or isinstance(second, Trace):
        job = second if isinstance(first, Trace) else first
        assert isinstance(job, Job)
        raise ArgumentError(
            f"a and b must be two traces or two jobs, got one of each; a trace of the job is {job.summaries[0].file}"
        )
    pairs = paired(first, second)
    limit = pace_setter(pairs)
    asked = [rule for rule in (all_rules() if rules is None else rules) if rule.slug not in ALONE]
    between = compare(load(limit.a.file), load(limit.b.file), rules=asked, thresholds=thresholds)
    return ShownJobDifference(**vars(between_jobs(first, second, pairs, between)))


def _read(name: str, source: Trace | Job | PathLike, thresholds: Thresholds | None) -> Trace | Job:
    if isinstance(source, Trace | Job):
        return source
    if not isinstance(source, str | os.PathLike):
        wanted = "a trace of load, a job of load_job, or a path"
        raise ArgumentTypeError(f"{name} must be {wanted}, got {type(source).__name__}")
    path = path_of(source)
    is_job = os.fspath(source) != "-" and path.is_dir() and single_trace(path) is None
    return load_job(source, thresholds=thresholds) if is_job else load(source)
