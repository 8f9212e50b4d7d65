"""A job as tables: its ranks, its collectives, and who is waited for. Times are microseconds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from torchfx.profiler.trace.derived.collectives import bus_factor
from torchfx.profiler.trace.tables.table import Table

if TYPE_CHECKING:
    from torchfx.profiler.ranks.job import Job

__all__ = ["collectives_of_job", "ranks_of_job", "stragglers_of_job"]


def ranks_of_job(job: Job) -> Table:
    """See `Job.ranks`."""
    every = job.summaries
    table = job.stragglers().sorted("rank", descending=False)

    def times(name: str) -> list[float]:
        return [getattr(s, name) / 1000 for s in every]

    return Table(
        {
            "rank": np.array(job.numbers, np.int64),
            "steps": np.array([len(s.steps) for s in every], np.int64),
            "step_us": [float(np.median(s.step_duration)) / 1000 if len(s.steps) else None for s in every],
            "window_us": np.array(times("duration")),
            "busy_us": np.array(times("busy")),
            "compute_us": np.array(times("compute")),
            "communication_us": np.array(times("communication")),
            "exposed_us": np.array(times("exposed")),
            "collectives": np.array([len(s.exchanges) for s in every], np.int64),
            "waited_us": job.waiting[1] / 1000,
            "waited_for_us": table["waited_for_us"],
            "device": [s.device for s in every],
            "file": [Path(s.file).name for s in every],
        }
    )


def collectives_of_job(job: Job) -> Table:
    """See `Job.collectives`."""
    m = job.matched
    keys = sorted({(m.names[n], int(s)) for n, s in zip(m.name.tolist(), m.size.tolist(), strict=True)})
    shortest, waited = m.shortest, m.waited
    rows = []
    for kind, size in keys:
        mine = (m.name == m.names.index(kind)) & (m.size == size)
        each = np.isin(np.arange(len(mine)), m.firsts) & mine
        sizes, transfer = m.bytes[each], shortest[each]
        known = (sizes > 0) & (transfer > 0)
        speed = float(np.median(sizes[known] / transfer[known])) if known.any() else None
        part = max(1, len(np.unique(m.rank[mine])))
        factor = bus_factor(kind, size)
        rows.append(
            {
                "name": kind,
                "group_size": size,
                "count": round(int(mine.sum()) / part, 1),
                "median_bytes": int(np.median(sizes[sizes >= 0])) if (sizes >= 0).any() else None,
                "time_us": float(m.duration[mine].sum()) / 1000 / part,
                "waiting_us": float(waited[mine].sum()) / 1000 / part,
                "algorithm_gb_s": speed,
                "bus_gb_s": None if speed is None or math.isnan(factor) else speed * factor,
            }
        )
    rows.sort(key=lambda row: -row["time_us"])
    columns = ("name", "group_size", "count", "median_bytes", "time_us", "waiting_us", "algorithm_gb_s", "bus_gb_s")
    return Table({name: [row[name] for row in rows] for name in columns})


def stragglers_of_job(job: Job) -> Table:
    """See `Job.stragglers`."""
    m, n = job.matched, len(job)
    counted = job.waited_for
    last = m.last & counted
    others = np.bincount(m.instance, minlength=1)[m.instance] - 1
    lost = np.bincount(m.instance, weights=m.waited, minlength=1)[m.instance] / np.maximum(others, 1)
    steps, step = np.unique(m.step[last], return_inverse=True)
    by_step = np.zeros((len(steps), n))
    np.add.at(by_step, (step, m.rank[last]), lost[last])
    return Table(
        {
            "rank": np.array(job.numbers, np.int64),
            "last": np.bincount(m.rank[last], minlength=n),
            "of": np.bincount(m.rank[counted], minlength=n),
            "waited_for_us": job.waiting[0] / 1000,
            "most": np.bincount(by_step.argmax(axis=1), minlength=n),
            "of_steps": np.full(n, len(steps)),
        }
    ).sorted("waited_for_us")
